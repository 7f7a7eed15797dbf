//! How one task is shown to people: as a row, as a page.

use crate::output::{clean, paint};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::Task;
use protocol::team_config::Member;
use serde_json::json;
use std::borrow::Borrow;

/// Id, status, owner, subject, blocked by.
pub(super) fn row<T: Borrow<Task>>(task: &Task, all: &[T], members: &[Member]) -> Vec<String> {
    vec![
        task.id.to_string(),
        clean(&status(task)),
        task.owner.as_ref().map_or_else(|| "-".to_owned(), |owner| owner_of(owner, members)),
        clean(&one_line(&task.subject)),
        ids(&task.open_blockers(all)),
    ]
}

/// All that is known, a line each, the description last.
pub(super) fn page<T: Borrow<Task>>(task: &Task, all: &[T]) -> String {
    let mut lines = vec![format!("{}: {}", task.id, one_line(&task.subject)), line("status", &status(task))];
    let optional = [
        ("owner", task.owner.as_ref().map(ToString::to_string)),
        ("active form", task.active_form.clone()),
        ("failure", task.failure().map(str::to_owned)),
        ("blocks", listed(&task.blocks)),
        ("blocked by", listed(&task.blocked_by)),
        ("of these open", listed(&task.open_blockers(all))),
        ("metadata", task.metadata.as_ref().map(|metadata| json!(metadata).to_string())),
    ];
    lines.extend(optional.iter().filter_map(|(name, text)| Some(line(name, text.as_deref()?))));
    if !task.description.is_empty() {
        lines.push(format!("\n{}", task.description));
    }
    clean(&lines.join("\n"))
}

/// A failed task stays in progress: that is worth a word.
fn status(task: &Task) -> String {
    let failed = if task.failure().is_some() { " (failed)" } else { "" };
    format!("{}{failed}", task.status)
}

fn owner_of(owner: &AgentName, members: &[Member]) -> String {
    let color =
        members.iter().find(|member| member.name == *owner).and_then(|member| member.color.as_deref());
    paint(color.unwrap_or_default(), &clean(&one_line(owner.as_str())))
}

fn line(name: &str, text: &str) -> String {
    format!("  {name}: {}", one_line(text))
}

fn listed(tasks: &[TaskId]) -> Option<String> {
    (!tasks.is_empty()).then(|| ids(tasks))
}

fn ids(tasks: &[TaskId]) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_the_list_is_told_with_the_task() {
        let parse = |text: &str| Task::parse(text).unwrap();
        let all = [
            parse(r#"{"id":"1","subject":"a","status":"in_progress","metadata":{"failure":"exit 1"}}"#),
            parse(r#"{"id":"2","subject":"b\nc","status":"pending","blockedBy":["1"]}"#),
        ];
        let object = all[1].to_json(&all);
        assert_eq!((&object["available"], &object["open_blockers"]), (&json!(false), &json!(["1"])));
        assert_eq!(row(&all[0], &all, &[])[1], "in_progress (failed)");
        assert_eq!(row(&all[1], &all, &[]), ["2", "pending", "-", "b c", "1"]);
        assert!(page(&all[0], &all).contains("  failure: exit 1"));
    }
}
