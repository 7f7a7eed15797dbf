//! `teamctl up --resume`: starts the suspended members, waits for the starts, and prints how each
//! start ended.

use super::daemon_state::DaemonState;
use super::resume_on_other_hosts::{ResumedHost, resume_on_other_hosts};
use crate::command_context::CommandContext;
use crate::commands::daemon_suspension_and_budget_lines::{budget_line, daemon_line, panes_line};
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::root_socket_team_and_caller::team_by_name;
use protocol::control_socket::{
    MemberStatus, PastMember, Request, ResumeMembersReply, ResumeMembersRequest, StatusReply, TeamStatus,
};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long all starts may take together. The daemon gives up a start earlier.
const RESUME_TIMEOUT: Duration = Duration::from_secs(90);

/// A member that the daemon resumes.
struct ResumedMember {
    team: TeamName,
    name: MemberName,
}

/// How the start of a member ended.
enum ResumeResult {
    /// `pane` is `None` if the member has no pane.
    Running { pane: Option<String>, pid: u32 },
    /// The start failed for this reason, and the member stays suspended.
    StillSuspended(String),
    /// The member has exited for this reason, and is not suspended.
    Exited(String),
}

/// Resumes the members of the team in `-t`, or of all teams, here and on other hosts. `status` is
/// the daemon's status when the command began.
pub(super) fn resume_members(
    context: &CommandContext,
    status: &StatusReply,
    daemon_state: DaemonState,
) -> Result<ExitCode, ErrorReport> {
    // The state directory is watched before the request is sent, so that no change is missed.
    let mut watcher = DirectoryWatcher::new(&[context.directories()?.state_dir])?;
    let team = match &context.args.team {
        Some(name) => Some(team_by_name(&context.root()?, name)?),
        None => None,
    };
    let request = ResumeMembersRequest { team: team.clone() };
    let reply: ResumeMembersReply = context.request(Request::ResumeMembers(request))?;
    let members: Vec<ResumedMember> = reply
        .members
        .into_iter()
        .flat_map(|(team, names)| {
            names.into_iter().map(move |name| ResumedMember { team: team.clone(), name })
        })
        .collect();
    let results = wait_for_all(context, &members, &mut watcher)?;
    let is_meant = |other: &&TeamStatus| team.as_ref().is_none_or(|team| *team == other.name);
    let hosts = resume_on_other_hosts(context, status.teams.iter().filter(is_meant), daemon_state);
    print_results(context, (status, daemon_state), (&members, &results), &hosts);
    let all_run = results.iter().all(|result| matches!(result, ResumeResult::Running { .. }))
        && hosts.iter().all(ResumedHost::is_complete);
    Ok(if all_run { ExitCode::SUCCESS } else { ExitCode::from(ErrorKind::Partial.exit_code()) })
}

/// Waits until the start of each member has succeeded or failed.
fn wait_for_all(
    context: &CommandContext,
    members: &[ResumedMember],
    watcher: &mut DirectoryWatcher,
) -> Result<Vec<ResumeResult>, ErrorReport> {
    let deadline = Instant::now() + RESUME_TIMEOUT;
    loop {
        let status = context.daemon_status()?;
        let results: Option<Vec<ResumeResult>> =
            members.iter().map(|member| member_result(&status, member)).collect();
        if let Some(results) = results {
            return Ok(results);
        }
        if watcher.wait(Some(deadline))? == WatchEvent::TimedOut {
            let message = "cannot wait any longer: not all who rested run again";
            return Err(ErrorReport::new(ErrorKind::Timeout, message).with_help("see: teamctl status"));
        }
    }
}

/// How the member's start ended. `None`: it is not finished.
fn member_result(status: &StatusReply, member: &ResumedMember) -> Option<ResumeResult> {
    let Some(team) = status.teams.iter().find(|team| team.name == member.team) else {
        return Some(ResumeResult::Exited("its team is gone".to_owned()));
    };
    match team.members.iter().find(|status| status.name == member.name) {
        Some(MemberStatus { pane, pid: Some(pid), lifecycle, .. }) if lifecycle != "starting" => {
            Some(ResumeResult::Running { pane: pane.clone(), pid: *pid })
        }
        Some(_) => None,
        None => past_member_result(team, &member.name),
    }
}

/// The result of a member that is not running and not starting. `None`: it is about to respawn.
fn past_member_result(team: &TeamStatus, name: &MemberName) -> Option<ResumeResult> {
    match team.past_members.iter().find(|past_member| past_member.name == *name) {
        Some(PastMember { is_suspended: true, description, .. }) => {
            Some(ResumeResult::StillSuspended(description.clone()))
        }
        Some(PastMember { respawns_at: None, description, .. }) => {
            Some(ResumeResult::Exited(description.clone()))
        }
        Some(_) => None,
        None => Some(ResumeResult::Exited("it has ended".to_owned())),
    }
}

fn print_results(
    context: &CommandContext,
    (status, daemon_state): (&StatusReply, DaemonState),
    (members, results): (&[ResumedMember], &[ResumeResult]),
    hosts: &[ResumedHost],
) {
    let members_and_results = members.iter().zip(results);
    let mut lines = vec![daemon_line(status, daemon_state.text())];
    lines.extend(members_and_results.clone().map(|(member, result)| result_line(member, result)));
    lines.extend(hosts.iter().flat_map(ResumedHost::lines));
    lines.extend(status.teams.iter().filter_map(|team| budget_line(context, team)));
    if lines.len() == 1 {
        lines.push("no suspended members".to_owned());
    }
    lines.splice(1..1, panes_line(status));
    let members_here = members_and_results.map(|(member, result)| result_json(member, result));
    let members: Vec<Value> = members_here.chain(hosts.iter().flat_map(ResumedHost::objects)).collect();
    let object = json!({"daemon": status.daemon, "members": members});
    output::print_result(context, &object, &output::sanitize(&lines.join("\n")));
}

fn result_line(ResumedMember { team, name }: &ResumedMember, result: &ResumeResult) -> String {
    match result {
        ResumeResult::Running { pane: Some(pane), pid } => {
            format!("{name} runs again in pane {pane} of {team}, pid {pid}.")
        }
        ResumeResult::Running { pane: None, pid } => {
            format!("{name} of {team} runs again without a pane, pid {pid}.")
        }
        ResumeResult::StillSuspended(reason) => {
            format!("{name} of {team} could not be started, and is still suspended: {reason}")
        }
        ResumeResult::Exited(reason) => format!("{name} of {team} was started, and has ended: {reason}"),
    }
}

fn result_json(ResumedMember { team, name }: &ResumedMember, result: &ResumeResult) -> Value {
    match result {
        ResumeResult::Running { pane, pid } => json!({"team": team, "name": name, "pane": pane, "pid": pid}),
        ResumeResult::StillSuspended(reason) | ResumeResult::Exited(reason) => {
            json!({"team": team, "name": name, "error": reason})
        }
    }
}
