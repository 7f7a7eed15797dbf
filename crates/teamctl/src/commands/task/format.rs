//! How one task is shown to people: as a row, as a page.

use crate::output::{paint, sanitize};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::Task;
use protocol::team_config::Member;
use serde_json::json;
use std::borrow::Borrow;

/// Id, status, owner, subject, blocked by.
pub(super) fn task_row<T: Borrow<Task>>(task: &Task, all: &[T], members: &[Member]) -> Vec<String> {
    vec![
        task.id.to_string(),
        sanitize(&status(task)),
        task.owner.as_ref().map_or_else(|| "-".to_owned(), |owner| colored_owner(owner, members)),
        sanitize(&one_line(&task.subject)),
        join_ids(&task.open_blockers(all)),
    ]
}

/// All that is known, a line each, the description last.
pub(super) fn task_page<T: Borrow<Task>>(task: &Task, all: &[T]) -> String {
    let mut lines =
        vec![format!("{}: {}", task.id, one_line(&task.subject)), field_line("status", &status(task))];
    let optional = [
        ("owner", task.owner.as_ref().map(ToString::to_string)),
        ("active form", task.active_form.clone()),
        ("failure", task.failure().map(str::to_owned)),
        ("blocks", id_list(&task.blocks)),
        ("blocked by", id_list(&task.blocked_by)),
        ("of these open", id_list(&task.open_blockers(all))),
        ("metadata", task.metadata.as_ref().map(|metadata| json!(metadata).to_string())),
    ];
    lines.extend(optional.iter().filter_map(|(name, text)| Some(field_line(name, text.as_deref()?))));
    if !task.description.is_empty() {
        lines.push(format!("\n{}", task.description));
    }
    sanitize(&lines.join("\n"))
}

/// A failed task stays in progress: that is worth a word.
fn status(task: &Task) -> String {
    let failed = if task.failure().is_some() { " (failed)" } else { "" };
    format!("{}{failed}", task.status)
}

fn colored_owner(owner: &AgentName, members: &[Member]) -> String {
    let color =
        members.iter().find(|member| member.name == *owner).and_then(|member| member.color.as_deref());
    paint(color.unwrap_or_default(), &sanitize(&one_line(owner.as_str())))
}

fn field_line(name: &str, text: &str) -> String {
    format!("  {name}: {}", one_line(text))
}

fn id_list(tasks: &[TaskId]) -> Option<String> {
    (!tasks.is_empty()).then(|| join_ids(tasks))
}

fn join_ids(tasks: &[TaskId]) -> String {
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
        assert_eq!(task_row(&all[0], &all, &[])[1], "in_progress (failed)");
        assert_eq!(task_row(&all[1], &all, &[]), ["2", "pending", "-", "b c", "1"]);
        assert!(task_page(&all[0], &all).contains("  failure: exit 1"));
    }
}
