//! `up --resume`: who rests is started again, and each is told of once it runs, or will not.

use super::{budget_line, daemon_line};
use crate::context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::error::unexpected_reply;
use client::team_context::team_by_name;
use protocol::control::{
    MemberStatus, PastMember, Reply, Request, ResumeMembersReply, ResumeMembersRequest, StatusReply,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longer than the daemon takes to give a start up.
const RESUME_TIMEOUT: Duration = Duration::from_secs(90);

/// What became of one.
enum ResumeResult {
    Running {
        pane: Option<String>,
        pid: u32,
    },
    /// And rests on.
    StillSuspended(String),
    Exited(String),
}

pub(super) fn resume_members(
    here: &CommandContext,
    status: &StatusReply,
    how: &str,
) -> Result<ExitCode, ErrorReport> {
    // Armed before anything can happen.
    let mut follow = DirectoryWatcher::new(&[here.directories()?.state_dir])?;
    let team = match &here.args.team {
        Some(name) => Some(team_by_name(&here.root()?, name)?),
        None => None,
    };
    let reply = here.call_daemon(Request::ResumeMembers(ResumeMembersRequest { team }))?;
    let Reply::ResumeMembers(ResumeMembersReply { members }) = reply else { return Err(unexpected_reply()) };
    let members: Vec<(TeamName, AgentName)> = members
        .into_iter()
        .flat_map(|(team, names)| names.into_iter().map(move |name| (team.clone(), name)))
        .collect();
    let became = wait_for_all(here, &members, &mut follow)?;
    print_results(here, status, how, &members, &became);
    let failed = became.iter().any(|became| !matches!(became, ResumeResult::Running { .. }));
    Ok(if failed { ExitCode::from(ErrorKind::Partial.exit_code()) } else { ExitCode::SUCCESS })
}

/// Waits until each of them runs, or is not started any more.
fn wait_for_all(
    here: &CommandContext,
    members: &[(TeamName, AgentName)],
    follow: &mut DirectoryWatcher,
) -> Result<Vec<ResumeResult>, ErrorReport> {
    let until = Instant::now() + RESUME_TIMEOUT;
    loop {
        let Reply::Status(status) = here.daemon_status()? else { return Err(unexpected_reply()) };
        let became: Option<Vec<ResumeResult>> =
            members.iter().map(|(team, name)| member_result(&status, team, name)).collect();
        if let Some(became) = became {
            return Ok(became);
        }
        if follow.wait(Some(until))? == WatchEvent::TimedOut {
            let message = "cannot wait any longer: not all who rested run again";
            return Err(ErrorReport::new(ErrorKind::Timeout, message).with_help("see: teamctl status"));
        }
    }
}

/// None while it starts.
fn member_result(status: &StatusReply, team: &TeamName, name: &AgentName) -> Option<ResumeResult> {
    let Some(team) = status.teams.iter().find(|status| status.name == *team) else {
        return Some(ResumeResult::Exited("its team is gone".to_owned()));
    };
    if let Some(MemberStatus { pane, pid: Some(pid), .. }) =
        team.members.iter().find(|agent| agent.name == *name && agent.lifecycle != "starting")
    {
        return Some(ResumeResult::Running { pane: pane.clone(), pid: *pid });
    }
    let starts = team.members.iter().any(|agent| agent.name == *name);
    let past = team.past_members.iter().find(|past| past.name == *name);
    match past {
        Some(PastMember { is_suspended: true, description: how, .. }) if !starts => {
            Some(ResumeResult::StillSuspended(how.clone()))
        }
        Some(PastMember { respawns_at: None, description: how, .. }) if !starts => {
            Some(ResumeResult::Exited(how.clone()))
        }
        None if !starts => Some(ResumeResult::Exited("it has ended".to_owned())),
        _ => None,
    }
}

fn print_results(
    here: &CommandContext,
    status: &StatusReply,
    how: &str,
    members: &[(TeamName, AgentName)],
    became: &[ResumeResult],
) {
    let each = members.iter().zip(became);
    let mut lines = vec![daemon_line(status, how)];
    lines.extend(each.clone().map(|((team, name), became)| result_line(team, name, became)));
    lines.extend(status.teams.iter().filter_map(|team| budget_line(here, team)));
    if lines.len() == 1 {
        lines.push("Nobody rests.".to_owned());
    }
    let all: Vec<Value> = each.map(|((team, name), became)| result_json(team, name, became)).collect();
    let whole = json!({"daemon": status.daemon, "members": all});
    output::print_result(here, &whole, &output::sanitize(&lines.join("\n")));
}

fn result_line(team: &TeamName, name: &AgentName, became: &ResumeResult) -> String {
    match became {
        ResumeResult::Running { pane: Some(pane), pid } => {
            format!("{name} runs again in pane {pane} of {team}, pid {pid}.")
        }
        ResumeResult::Running { pane: None, pid } => {
            format!("{name} of {team} runs again without a pane, pid {pid}.")
        }
        ResumeResult::StillSuspended(why) => {
            format!("{name} of {team} could not be started, and rests on: {why}")
        }
        ResumeResult::Exited(why) => format!("{name} of {team} was started, and has ended: {why}"),
    }
}

fn result_json(team: &TeamName, name: &AgentName, became: &ResumeResult) -> Value {
    match became {
        ResumeResult::Running { pane, pid } => json!({"team": team, "name": name, "pane": pane, "pid": pid}),
        ResumeResult::StillSuspended(why) | ResumeResult::Exited(why) => {
            json!({"team": team, "name": name, "error": why})
        }
    }
}
