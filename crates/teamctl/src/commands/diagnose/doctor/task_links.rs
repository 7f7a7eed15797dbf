//! A team's tasks: whether each can be read, and whether every link stands at both its ends. A writer that
//! was killed between two files leaves one end; with that the task waits already, so adding the other changes
//! nothing but who can see it.

use super::FixMode;
use super::report::DoctorReport;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use std::collections::BTreeSet;
use store::{TaskUpdate, Team, UNREADABLE_STATUS};

/// `blocked` waits for `blocker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TaskLink {
    blocker: TaskId,
    blocked: TaskId,
}

pub(super) fn check(team: &Team, treatment: FixMode, report: &mut DoctorReport) {
    let tasks = match team.tasks().list().map_err(ErrorReport::from) {
        Ok(tasks) => tasks,
        Err(fault) => return report.fail_with_error("tasks", &fault),
    };
    check_highwatermark(team, &tasks, report);
    let unreadable = |task: &&Task| task.status == TaskStatus::Other(UNREADABLE_STATUS.to_owned());
    for task in tasks.iter().filter(unreadable) {
        report.fail(
            "tasks",
            format!("task {} of {}: {}", task.id, team.name(), task.subject),
            "mend the file, or remove it",
        );
    }
    let broken = tasks.iter().filter(unreadable).count();
    report.ok("tasks", format!("{} has {} that can be read", team.name(), tasks.len() - broken));
    half_links(&tasks).into_iter().for_each(|half| report_link(team, half, treatment, report));
}

/// Without the number in it nobody knows which ids were given, and none is given anew.
fn check_highwatermark(team: &Team, tasks: &[Task], report: &mut DoctorReport) {
    let Err(error) = team.tasks().high_water_mark() else { return };
    let highest = tasks.iter().map(|task| task.id.to_string()).next_back().unwrap_or_else(|| "0".to_owned());
    let message = format!("{error}: no task can be made");
    let fix =
        format!("write the highest id into it that there ever was; of those that are left it is {highest}");
    report.fail("tasks", message, fix);
}

fn report_link(team: &Team, half: TaskLink, treatment: FixMode, report: &mut DoctorReport) {
    let TaskLink { blocker, blocked } = half;
    let message =
        format!("task {blocked} of {} waits for {blocker}, but only one of them says so", team.name());
    if treatment == FixMode::ReportOnly {
        return report.warn("links", message, "teamctl doctor --fix");
    }
    let update = TaskUpdate { add_blocked_by: vec![blocker], ..TaskUpdate::default() };
    match team.tasks().update(&blocked, update, &AgentName::lead()).map_err(ErrorReport::from) {
        Ok(_) => report
            .ok("links", format!("task {blocked} of {} waits for {blocker}: now both say so", team.name())),
        Err(fault) => report.warn("links", message, format!("it stays so: {fault}")),
    }
}

/// Links between two tasks that are there, of which only one end is. To a task that is gone there is no
/// other end, and that is normal.
fn half_links(tasks: &[Task]) -> Vec<TaskLink> {
    let there: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
    let down = |task: &Task| {
        task.blocks.iter().map(|blocked| TaskLink { blocker: task.id, blocked: *blocked }).collect::<Vec<_>>()
    };
    let up = |task: &Task| {
        task.blocked_by
            .iter()
            .map(|blocker| TaskLink { blocker: *blocker, blocked: task.id })
            .collect::<Vec<_>>()
    };
    let down: BTreeSet<TaskLink> = tasks.iter().flat_map(down).collect();
    let up: BTreeSet<TaskLink> = tasks.iter().flat_map(up).collect();
    let known = |link: &&TaskLink| there.contains(&link.blocker) && there.contains(&link.blocked);
    down.symmetric_difference(&up).filter(known).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_link_is_found_from_either_end_and_a_dead_one_is_none() {
        let parse = |text: &str| Task::parse(text).unwrap();
        let tasks = [
            parse(r#"{"id":"1","subject":"","status":"pending","blocks":["2","9"]}"#),
            parse(r#"{"id":"2","subject":"","status":"pending","blockedBy":["1","3"]}"#),
            parse(r#"{"id":"3","subject":"","status":"pending"}"#),
        ];
        let found = half_links(&tasks);
        assert_eq!(found, [TaskLink { blocker: tasks[2].id, blocked: tasks[1].id }]);
    }
}
