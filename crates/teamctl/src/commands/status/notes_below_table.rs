//! The lines below a team's table: what needs attention, and what to do about it.

use crate::commands::daemon_suspension_and_budget_lines::suspended_line;
use crate::commands::status::past_members_in_table::shown_past_members;
use crate::commands::status::table_cells::{age, clip_cell};
use crate::output::sanitize;
use client::suggested_commands::SuggestedCommands;
use client::task_counts_and_failures::{AbandonedTask, FailedTask};
use client::team_view::TeamView;
use protocol::control_socket::{HostContact, HostStatus};
use protocol::single_line::single_line;
use protocol::task::WaitCycle;

/// What keeps a host from working with this machine. `None` if nothing does.
pub(in crate::commands) fn no_contact_line(host: &HostStatus) -> Option<String> {
    match &host.contact {
        HostContact::Connected => {
            let reason = single_line(host.storage_error.as_ref()?);
            Some(format!("host {} stores nothing: {reason}", host.host))
        }
        HostContact::IsHome { since, epoch } => Some(format!(
            "the home is {} since {}, with epoch {epoch}: this machine changes the team no more",
            host.host,
            age(*since)
        )),
        HostContact::BecomesHome { since } => Some(format!(
            "the home moves to {} since {}: this machine changes the team no more",
            host.host,
            age(*since)
        )),
        HostContact::NoContact { since, reason } => {
            let (time, reason) = (age(*since), single_line(reason));
            Some(format!("host {}: no contact for {time}: {reason}", host.host))
        }
    }
}

/// The lines below the table: what needs attention, such as an unreadable config.json, failed tasks
/// or suspended members, and how many past members the table leaves out.
pub(super) fn team_notes(team: &TeamView, commands: &SuggestedCommands) -> Vec<String> {
    let abandoned = |task: &AbandonedTask| abandoned_task_line(task, commands);
    let suspended = team.past_members.iter().filter(|past_member| past_member.is_suspended).count();
    let note = match team.budget.as_ref().and_then(|budget| budget.exhausted_reason.as_ref()) {
        Some(reason) => Some(budget_line(reason, suspended, commands)),
        None => suspended_line(suspended, commands),
    };
    let json = || commands.command(&["status", "--json"]);
    let omitted = match team.past_members.len() - shown_past_members(team).count() {
        0 => None,
        1 => Some(format!("1 past member is not shown: {}", json())),
        count => Some(format!("{count} past members are not shown: {}", json())),
    };
    let abandoned = team.abandoned_tasks.iter().map(abandoned);
    let doctor = || commands.without_team().command(&["doctor"]);
    let damage = team.config_error.as_ref().map(|error| format!("{error}; what is damaged: {}", doctor()));
    let lines = damage
        .into_iter()
        .chain(team.hosts.iter().filter_map(no_contact_line))
        .chain(omitted)
        .chain(abandoned)
        .chain(team.failed_tasks.iter().map(failed_task_line))
        .chain(team.lead_session_ended_at.map(|at| lead_session_line(team, at, commands)))
        .chain(team.task_cycles.iter().map(|cycle| task_cycle_line(cycle, commands)))
        .chain(note);
    lines.map(|line| sanitize(&line)).collect()
}

fn lead_session_line(team: &TeamView, ended_at: u64, commands: &SuggestedCommands) -> String {
    let lead = commands.without_team().command(&["lead", team.name.as_str()]);
    format!("the session that led the team ended {} ago; lead it from here: {lead}", age(ended_at))
}

fn task_cycle_line(cycle: &WaitCycle, commands: &SuggestedCommands) -> String {
    format!("{cycle}, so none of them can start: {}", commands.command_to_cut(cycle))
}

pub(in crate::commands) fn abandoned_task_line(task: &AbandonedTask, commands: &SuggestedCommands) -> String {
    let release = commands.command(&["task", "release", &task.id.to_string()]);
    format!("task {} was left by {}: {release}", task.id, task.owner)
}

/// The note about an exhausted budget, with the commands that let members start again.
fn budget_line(reason: &str, suspended_count: usize, commands: &SuggestedCommands) -> String {
    let raise = commands.command(&["policy", "FILE"]);
    let resume = commands.command(&["up", "--resume"]);
    let next_step = match suspended_count {
        0 => String::new(),
        _ => format!("; then resume the suspended members with: {resume}"),
    };
    format!("No member is started: {reason}; give it more with: {raise}{next_step}")
}

fn failed_task_line(task: &FailedTask) -> String {
    format!("task {} failed ({})", task.id, clip_cell(&task.failure))
}
