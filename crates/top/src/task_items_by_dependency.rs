//! Orders the tasks for the screen by their dependencies. Each open task is listed below one of the
//! tasks that it waits for. Closed tasks are at the end.

use crate::team_snapshot_for_screen::{TaskItem, TaskState};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The greatest depth in the tree that is shown. Tasks at a greater depth are shown at this depth.
const MAX_DEPTH: usize = 8;

/// The list items of all tasks, except the tracking tasks that Claude Code creates for its own use.
/// `abandoned` has the ids of the tasks in progress whose owner has exited.
pub(crate) fn task_items<T: Borrow<Task>>(all: &[T], abandoned: &[TaskId]) -> Vec<TaskItem> {
    let shown: Vec<&Task> = all.iter().map(Borrow::borrow).filter(|task| !task.is_internal()).collect();
    let (done, open): (Vec<&Task>, Vec<&Task>) = shown.into_iter().partition(|task| task.status.is_closed());
    let blockers: BTreeMap<TaskId, Vec<TaskId>> =
        open.iter().map(|task| (task.id, task.open_blockers(all))).collect();
    let by_id: BTreeMap<TaskId, &Task> = open.iter().map(|task| (task.id, *task)).collect();
    let mut rows = Vec::with_capacity(open.len() + done.len());
    let placements = depth_first_order(&open, &blockers);
    let branches = branches(&placements.iter().map(|placement| placement.depth).collect::<Vec<_>>());
    for (placement, branch) in placements.iter().zip(branches) {
        if let Some(task) = by_id.get(&placement.id) {
            let open_blockers = &blockers[&placement.id];
            let others = open_blockers.iter().filter(|id| Some(**id) != placement.parent);
            let state = task_state(task, open_blockers, abandoned);
            rows.push(task_item(task, graph_cell(&branch, task.id, others), state, all));
        }
    }
    rows.extend(done.iter().rev().map(|task| task_item(task, format!("#{}", task.id), TaskState::Done, all)));
    rows
}

/// The place of a task in the tree.
struct Placement {
    id: TaskId,
    depth: usize,
    /// The task that this task is listed below, one of its blockers. `None` at the top level.
    parent: Option<TaskId>,
}

/// The place of each open task, from top to bottom.
fn depth_first_order(open: &[&Task], blockers: &BTreeMap<TaskId, Vec<TaskId>>) -> Vec<Placement> {
    let mut waiting: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for (id, blockers) in blockers {
        blockers.iter().for_each(|blocker| waiting.entry(*blocker).or_default().push(*id));
    }
    let (mut ordered, mut visited) = (Vec::new(), BTreeSet::new());
    // Every task of a cycle has a blocker, so the cycle has no root. Its first task is used.
    let roots = open.iter().filter(|task| blockers[&task.id].is_empty()).chain(open);
    for root in roots {
        let mut next = vec![Placement { id: root.id, depth: 0, parent: None }];
        while let Some(placement) = next.pop() {
            let (parent, depth) = (placement.id, (placement.depth + 1).min(MAX_DEPTH));
            if visited.insert(parent) {
                ordered.push(placement);
                let below = waiting.get(&parent).into_iter().flatten().rev();
                next.extend(below.map(|id| Placement { id: *id, depth, parent: Some(parent) }));
            }
        }
    }
    ordered
}

/// The lines of the graph before each task, for tasks at these depths from top to bottom.
fn branches(depths: &[usize]) -> Vec<String> {
    // Whether a later task is at the same level below the same task, for each level.
    let mut has_next = [false; MAX_DEPTH + 1];
    let branch = |depth: &usize| {
        let levels = (1..=*depth).map(|level| match (level == *depth, has_next[level]) {
            (false, false) => "  ",
            (false, true) => "│ ",
            (true, false) => "└ ",
            (true, true) => "├ ",
        });
        let branch = levels.collect();
        has_next[*depth] = true;
        has_next[depth + 1..].fill(false);
        branch
    };
    let mut branches: Vec<String> = depths.iter().rev().map(branch).collect();
    branches.reverse();
    branches
}

/// A task after its branch, with the other tasks that it waits for.
fn graph_cell<'a>(branch: &str, id: TaskId, others: impl Iterator<Item = &'a TaskId>) -> String {
    let others = others.map(ToString::to_string).collect::<Vec<_>>().join(",");
    let arrow = if others.is_empty() { "" } else { " ←" };
    format!("{branch}#{id}{arrow}{others}")
}

fn task_state(task: &Task, blockers: &[TaskId], abandoned: &[TaskId]) -> TaskState {
    match &task.status {
        _ if task.failure().is_some() => TaskState::Failed,
        TaskStatus::InProgress if abandoned.contains(&task.id) => TaskState::Abandoned,
        TaskStatus::InProgress => TaskState::Working,
        TaskStatus::Pending if !blockers.is_empty() => TaskState::Blocked,
        TaskStatus::Pending => TaskState::Ready,
        _ => TaskState::Unknown,
    }
}

fn task_item<T: Borrow<Task>>(task: &Task, graph: String, state: TaskState, all: &[T]) -> TaskItem {
    let owner = task.owner.as_ref().map(ToString::to_string);
    let details = details(task, state, all);
    TaskItem { id: task.id, graph, state, owner, subject: task.title().to_owned(), details }
}

fn details<T: Borrow<Task>>(task: &Task, state: TaskState, all: &[T]) -> String {
    let mut lines = vec![format!("task {}: {}", task.id, task.subject.replace('\n', " "))];
    lines.push(format!("{} ({})", state.label(), task.status));
    let reference_lines = |ids: &[TaskId]| {
        let lines = ids.iter().map(|id| format!("  {id}: {}", task_reference(*id, all)));
        lines.collect::<Vec<_>>().join("\n")
    };
    lines.extend(task.owner.as_ref().map(|owner| format!("owner: {owner}")));
    lines.extend(task.failure().map(|failure| format!("failure: {failure}")));
    lines.extend(task.command().map(|command| format!("command: {command}")));
    for (label, ids) in [("waits for:", &task.blocked_by), ("blocks:", &task.blocks)] {
        if !ids.is_empty() {
            lines.push(format!("{label}\n{}", reference_lines(ids)));
        }
    }
    if !task.description.is_empty() {
        lines.push(format!("\n{}", task.description));
    }
    lines.join("\n")
}

fn task_reference<T: Borrow<Task>>(id: TaskId, all: &[T]) -> String {
    protocol::task::find_task(all, id).map_or_else(
        || "gone".to_owned(),
        |task| format!("{} ({})", task.subject.replace('\n', " "), task.status),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, status: &str, blocked_by: &[u32], fields: &str) -> Task {
        let blocked: Vec<String> = blocked_by.iter().map(|id| format!("\"{id}\"")).collect();
        let blocked = blocked.join(",");
        let text = format!(
            r#"{{"id":"{id}","subject":"s{id}","status":"{status}","blockedBy":[{blocked}]{fields}}}"#
        );
        Task::parse(&text).unwrap()
    }

    fn row_texts(all: &[Task], abandoned: &[u32]) -> Vec<String> {
        let abandoned: Vec<TaskId> = abandoned.iter().map(|id| TaskId::from_number(*id).unwrap()).collect();
        let rows = task_items(all, &abandoned);
        rows.iter().map(|row| format!("{} {}", row.graph, row.state.label())).collect()
    }

    #[test]
    fn tasks_are_listed_below_their_blockers_and_done_ones_last() {
        let all = [
            task(1, "completed", &[], ""),
            task(2, "in_progress", &[1], r#","owner":"ann""#),
            task(3, "pending", &[1], ""),
            task(4, "pending", &[2, 3], ""),
            task(5, "pending", &[4], ""),
            task(6, "in_progress", &[], r#","metadata":{"failure":"exit 1"}"#),
            task(7, "in_progress", &[], r#","metadata":{"_internal":true}"#),
            task(8, "in_progress", &[], r#","owner":"bob""#),
        ];
        let expected =
            ["#2 working", "└ #4 ←3 waits", "  └ #5 waits", "#3 ready", "#6 failed", "#8 left", "#1 done"];
        assert_eq!(row_texts(&all, &[8]), expected);
        let details = &task_items(&all, &[])[1].details;
        assert!(details.contains("waits for:\n  2: s2 (in_progress)\n  3: s3 (pending)"), "{details}");
    }

    #[test]
    fn branches_lead_to_each_task() {
        let all = [
            task(1, "pending", &[], ""),
            task(2, "pending", &[1], ""),
            task(3, "pending", &[2], ""),
            task(4, "pending", &[2, 6, 7], ""),
            task(5, "pending", &[1], ""),
            task(6, "pending", &[], ""),
            task(7, "pending", &[], ""),
        ];
        let expected = [
            "#1 ready",
            "├ #2 waits",
            "│ ├ #3 waits",
            "│ └ #4 ←6,7 waits",
            "└ #5 waits",
            "#6 ready",
            "#7 ready",
        ];
        assert_eq!(row_texts(&all, &[]), expected);
    }

    #[test]
    fn dependency_cycle_is_shown() {
        let all = [task(1, "pending", &[2], ""), task(2, "pending", &[1], "")];
        assert_eq!(row_texts(&all, &[]), ["#1 ←2 waits", "└ #2 waits"]);
    }
}
