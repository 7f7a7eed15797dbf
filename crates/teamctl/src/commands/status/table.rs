//! Formats teams and members for people. Each team gets a table, whose usual rows fit into 80
//! columns. Notes below the table say what needs attention.

#[cfg(test)]
mod tests;

use crate::commands::status::past_members_in_table::shown_past_members;
use crate::commands::status::table_cells::{activity_name, age, clip_cell, dash};
use crate::output::{paint, sanitize};
use client::budget_text::{budget_text, time_budget_text};
use client::member_view::MemberView;
use client::task_counts_and_failures::TaskCounts;
use client::team_view::TeamView;
use protocol::control_socket::{Backend, PastMember};
use store::now;

/// The line above a table: the team, its task counts and its budget.
pub(super) fn team_heading(team: &TeamView) -> String {
    let TaskCounts { pending, in_progress, completed, failed } = team.tasks;
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let budget = team
        .budget
        .as_ref()
        .map(|budget| format!("; {}", budget_text(budget, time_budget_text(budget, now()))))
        .unwrap_or_default();
    format!(
        "\n{}: {pending} pending, {in_progress} in progress, {completed} completed{failed}{budget}",
        team.name
    )
}

/// Index of the column with tokens and cost.
const USAGE_COLUMN: usize = 7;

/// Index of the column with the hosts of members, in a table without it.
const HOST_COLUMN: usize = 1;

/// Returns the rows of the member table, the heading first. The table has a column with tokens and
/// cost if the program of at least one member reports them. The table has a column with hosts if at
/// least one member runs on another host.
pub(super) fn member_rows(team: &TeamView) -> Vec<Vec<String>> {
    let head = ["NAME", "STATE", "ACTIVITY", "SINCE", "UNREAD", "DELIVERY", "PANE", "USAGE", "TASK"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(team.members.iter().map(member_row));
    rows.extend(shown_past_members(team).map(past_row));
    let mut usages = team
        .members
        .iter()
        .map(|member| member.usage)
        .chain(shown_past_members(team).map(|past_member| past_member.usage));
    if usages.all(|usage| usage.is_zero()) {
        rows.iter_mut().for_each(|row| drop(row.remove(USAGE_COLUMN)));
    }
    if team.members.iter().any(|member| member.host.is_some()) {
        let hosts = team.members.iter().map(|member| member.host.as_deref().map_or_else(dash, sanitize));
        let cells = std::iter::once("HOST".to_owned()).chain(hosts).chain(std::iter::repeat_with(dash));
        rows.iter_mut().zip(cells).for_each(|(row, cell)| row.insert(HOST_COLUMN, cell));
    }
    rows
}

fn member_row(member: &MemberView) -> Vec<String> {
    vec![
        paint(&member.color, &sanitize(&member.name)),
        member.lifecycle_and_flags(),
        member.activity.map_or_else(dash, activity_name),
        member.activity_since.map_or_else(dash, age),
        member.unread.map_or_else(|| "?".to_owned(), |n| n.to_string()),
        member.delivery.map_or_else(dash, |delivery| delivery.as_str().to_owned()),
        pane_cell(member),
        member.usage.to_string(),
        member.task.as_deref().map_or_else(dash, |task| sanitize(&clip_cell(task))),
    ]
}

fn pane_cell(member: &MemberView) -> String {
    if member.backend.as_deref() == Some(Backend::Iterm2.as_str()) {
        // The id of a session is too long for a table.
        return "iterm2".to_owned();
    }
    let in_process = member.backend.as_deref().filter(|backend| *backend == "in-process");
    match (&member.pane, member.is_hidden) {
        (Some(pane), true) => format!("{pane} hidden"),
        (pane, _) => pane.as_deref().or(in_process).unwrap_or("-").to_owned(),
    }
}

fn past_row(past_member: &PastMember) -> Vec<String> {
    let seconds = past_member.respawns_at.map(|at| at.saturating_sub(now()).div_ceil(1000));
    let next_spawn = seconds.map(|seconds| format!(", again in {seconds} s"));
    let exhausted =
        past_member.respawns_exhausted_reason.as_ref().map(|reason| format!(", not started again: {reason}"));
    let next_spawn = next_spawn.or(exhausted).unwrap_or_default();
    let state = if past_member.is_suspended { "suspended" } else { &past_member.outcome };
    let mut row =
        vec![sanitize(past_member.name.as_str()), sanitize(state), dash(), age(past_member.ended_at)];
    row.extend([
        dash(),
        dash(),
        dash(),
        past_member.usage.to_string(),
        sanitize(&format!("{}{next_spawn}", clip_cell(&past_member.description))),
    ]);
    row
}
