//! Checks that each task of a team can be read, and that there is no cycle of tasks that wait for
//! each other. Also checks that each dependency is recorded twice: in the blocking task (`blocks`)
//! and in the blocked task (`blockedBy`).
//!
//! If a writer is killed between the two writes, only one of the tasks records the dependency. The
//! code calls this a half link. A half link already makes the blocked task wait. So `--fix` keeps
//! the dependency, and records it in the other task too.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use client::suggested_commands::SuggestedCommands;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus, wait_cycles};
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeSet;
use store::{TaskUpdate, Team, UNREADABLE_STATUS};

/// A dependency: `blocked` waits for `blocker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TaskLink {
    blocker: TaskId,
    blocked: TaskId,
}

pub(super) fn check(team: &Team, mode: FixMode, report: &mut DoctorReport) {
    let tasks = match team.tasks().list() {
        Ok(tasks) => tasks,
        Err(error) => return report.fail_with_error("tasks", error),
    };
    check_highwatermark(team, &tasks, report);
    let is_unreadable = |task: &&Task| task.status == TaskStatus::Other(UNREADABLE_STATUS.to_owned());
    for task in tasks.iter().filter(is_unreadable) {
        let message = format!("task {} of {}: {}", task.id, team.name(), task.subject);
        report.fail("tasks", message, "repair the file, or remove it");
    }
    for name in team.tasks().misnamed_files().unwrap_or_default() {
        let message =
            format!("{} of the tasks of {} has no number for a name: no program sees it", name, team.name());
        report.fail("tasks", message, "rename it to ID.json, or remove it");
    }
    let readable = tasks.len() - tasks.iter().filter(is_unreadable).count();
    report.ok("tasks", format!("{} has {readable} that can be read", team.name()));
    let cycles = wait_cycles(&tasks);
    let commands = SuggestedCommands::default().for_team(team.name());
    for cycle in &cycles {
        let message = format!("{}: {cycle}, so none of them can start", team.name());
        report.fail("links", message, commands.command_to_cut(cycle));
    }
    // A half link in a cycle of tasks cannot be completed: the cycle has to be cut first.
    let is_in_cycle = |link: &TaskLink| {
        cycles.iter().any(|cycle| [link.blocker, link.blocked].iter().all(|id| cycle.tasks().contains(id)))
    };
    let links = half_links(&tasks).into_iter().filter(|link| !is_in_cycle(link));
    links.for_each(|link| check_half_link(team, link, mode, report));
}

/// Checks that the file `.highwatermark` can be read. The file has the highest task id that was
/// ever used. If it cannot be read, no task can be created, because teamd must not use an id twice.
fn check_highwatermark(team: &Team, tasks: &[Task], report: &mut DoctorReport) {
    let Err(error) = team.tasks().high_water_mark() else { return };
    let highest = tasks.iter().map(|task| task.id.to_string()).next_back().unwrap_or_else(|| "0".to_owned());
    let message = format!("{error}: no task can be made");
    let fix =
        format!("write the highest id into it that there ever was; of those that are left it is {highest}");
    report.fail("tasks", message, fix);
}

fn check_half_link(team: &Team, link: TaskLink, mode: FixMode, report: &mut DoctorReport) {
    let TaskLink { blocker, blocked } = link;
    let dependency = format!("task {blocked} of {} waits for {blocker}", team.name());
    let message = format!("{dependency}, but only one of them says so");
    if mode == FixMode::ReportOnly {
        return report.warn("links", message, "teamctl doctor --fix");
    }
    let update = TaskUpdate { add_blocked_by: vec![blocker], ..TaskUpdate::default() };
    match team.tasks().update(&blocked, update, &MemberName::lead()) {
        Ok(_) => report.ok("links", format!("{dependency}: now both say so")),
        Err(error) => report.warn("links", message, format!("it stays so: {error}")),
    }
}

/// Returns the dependencies between two existing tasks that only one of the two tasks records.
/// Dependencies on deleted tasks are not returned, because these are normal.
fn half_links(tasks: &[Task]) -> Vec<TaskLink> {
    let task_ids: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
    let is_checked = |link: &&TaskLink| task_ids.contains(&link.blocker) && task_ids.contains(&link.blocked);
    let links_of_blockers: BTreeSet<TaskLink> = tasks
        .iter()
        .flat_map(|task| task.blocks.iter().map(|blocked| TaskLink { blocker: task.id, blocked: *blocked }))
        .collect();
    let links_of_blocked: BTreeSet<TaskLink> = tasks
        .iter()
        .flat_map(|task| {
            task.blocked_by.iter().map(|blocker| TaskLink { blocker: *blocker, blocked: task.id })
        })
        .collect();
    links_of_blockers.symmetric_difference(&links_of_blocked).filter(is_checked).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_links_are_found_and_links_to_deleted_tasks_are_not() {
        let parse = |text: &str| Task::parse(text).unwrap();
        let tasks = [
            parse(r#"{"id":"1","subject":"","status":"pending","blocks":["2","9"]}"#),
            parse(r#"{"id":"2","subject":"","status":"pending","blockedBy":["1","3"]}"#),
            parse(r#"{"id":"3","subject":"","status":"pending"}"#),
        ];
        let links = half_links(&tasks);
        assert_eq!(links, [TaskLink { blocker: tasks[2].id, blocked: tasks[1].id }]);
    }
}
