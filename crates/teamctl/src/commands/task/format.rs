//! Formats a task for people: as a table row, as a page, or with a sentence about a change.

use crate::command_context::CommandContext;
use crate::output::{self, paint, sanitize};
use protocol::member_task_and_request_ids::TaskId;
use protocol::single_line::single_line;
use protocol::task::{Task, find_task};
use protocol::team_and_member_names::MemberName;
use protocol::team_config::Member;
use serde_json::json;
use std::borrow::Borrow;

/// Prints a changed task: the task for scripts, `sentence` for people.
pub(super) fn print_task(context: &CommandContext, task: &Task, sentence: &str) {
    output::print_result(context, &json!({"task": task}), &sanitize(sentence));
}

/// The columns id, status, owner, blocked by, subject. The subject is last, because a narrow
/// terminal clips the last column. The blockers of `task` are looked up in `all_tasks`.
pub(super) fn task_row<T: Borrow<Task>>(task: &Task, all_tasks: &[T], members: &[Member]) -> Vec<String> {
    vec![
        task.id.to_string(),
        sanitize(&status(task)),
        task.owner.as_ref().map_or_else(|| "-".to_owned(), |owner| colored_owner(owner, members)),
        sanitize(&blocker_list(&task.open_blockers(all_tasks), all_tasks)),
        sanitize(&single_line(&task.subject)),
    ]
}

/// The branch on which the owner of a task works.
pub(super) struct OwnerBranch {
    pub(super) branch: String,
    /// Short hash and subject. `None` if git cannot read it.
    pub(super) last_commit: Option<String>,
}

impl OwnerBranch {
    fn text(&self) -> String {
        match &self.last_commit {
            Some(commit) => format!("{}, last commit {commit}", self.branch),
            None => self.branch.clone(),
        }
    }
}

/// Formats all fields of the task, one line each, and the description last. `all_tasks` contains
/// the tasks that may block this one.
pub(super) fn task_page<T: Borrow<Task>>(
    task: &Task,
    all_tasks: &[T],
    branch: Option<&OwnerBranch>,
) -> String {
    let mut lines =
        vec![format!("{}: {}", task.id, single_line(&task.subject)), field_line("status", &status(task))];
    let optional = [
        ("owner", task.owner.as_ref().map(ToString::to_string)),
        ("branch", branch.map(OwnerBranch::text)),
        ("active form", task.active_form.clone()),
        ("failure", task.failure().map(str::to_owned)),
        ("blocks", id_list(&task.blocks)),
        ("blocked by", (!task.blocked_by.is_empty()).then(|| blocker_list(&task.blocked_by, all_tasks))),
        ("metadata", task.metadata.as_ref().map(|metadata| json!(metadata).to_string())),
    ];
    lines.extend(optional.iter().filter_map(|(name, text)| Some(field_line(name, text.as_deref()?))));
    if !task.description.is_empty() {
        lines.push(format!("\n{}", task.description));
    }
    sanitize(&lines.join("\n"))
}

/// A failed task stays in progress, so the failure is shown too.
fn status(task: &Task) -> String {
    let failed = if task.failure().is_some() { " (failed)" } else { "" };
    format!("{}{failed}", task.status)
}

fn colored_owner(owner: &MemberName, members: &[Member]) -> String {
    let color =
        members.iter().find(|member| member.name == *owner).and_then(|member| member.color.as_deref());
    paint(color.unwrap_or_default(), &sanitize(&single_line(owner.as_str())))
}

fn field_line(name: &str, text: &str) -> String {
    format!("  {name}: {}", single_line(text))
}

fn id_list(tasks: &[TaskId]) -> Option<String> {
    (!tasks.is_empty()).then(|| join_ids(tasks))
}

/// The blockers with status, and open ones with owner: `1 (completed), 5 (in progress, ann)`.
fn blocker_list<T: Borrow<Task>>(blockers: &[TaskId], all_tasks: &[T]) -> String {
    let text = |id: &TaskId| match find_task(all_tasks, *id) {
        None => format!("{id} (deleted)"),
        Some(task) => {
            let status = if task.failure().is_some() { "failed".to_owned() } else { task.status.to_string() };
            let owner = task.owner.as_ref().filter(|_| !task.status.is_closed());
            let owner = owner.map_or_else(String::new, |owner| format!(", {}", single_line(owner.as_str())));
            format!("{id} ({}{owner})", status.replace('_', " "))
        }
    };
    blockers.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn join_ids(tasks: &[TaskId]) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blockers_and_failures_are_shown() {
        let parse = |text: &str| Task::parse(text).unwrap();
        let tasks = [
            parse(r#"{"id":"1","subject":"a","status":"in_progress","metadata":{"failure":"exit 1"}}"#),
            parse(r#"{"id":"2","subject":"b\nc","status":"pending","blockedBy":["1"]}"#),
        ];
        let object = tasks[1].to_json(&tasks);
        assert_eq!((&object["available"], &object["open_blockers"]), (&json!(false), &json!(["1"])));
        assert_eq!(task_row(&tasks[0], &tasks, &[])[1], "in_progress (failed)");
        assert_eq!(task_row(&tasks[1], &tasks, &[]), ["2", "pending", "-", "1 (failed)", "b c"]);
        assert!(task_page(&tasks[1], &tasks, None).contains("  blocked by: 1 (failed)"));
        let completed_task = parse(r#"{"id":"3","subject":"c","status":"completed","owner":"ann"}"#);
        let task_of_bob = parse(r#"{"id":"4","subject":"d","status":"in_progress","owner":"bob"}"#);
        let blocked_task = parse(r#"{"id":"5","subject":"e","status":"pending","blockedBy":["3","4","9"]}"#);
        let page = task_page(&blocked_task, &[completed_task, task_of_bob], None);
        assert!(page.contains("  blocked by: 3 (completed), 4 (in progress, bob), 9 (deleted)"), "{page}");
        assert!(task_page(&tasks[0], &tasks, None).contains("  failure: exit 1"));
    }
}
