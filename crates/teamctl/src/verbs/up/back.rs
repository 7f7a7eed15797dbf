//! `up --resume`: who rests is started again, and each is told of once it runs, or will not.

use super::{spent, told};
use crate::here::{Here, misunderstood, named_team};
use crate::output;
use protocol::control::{
    MemberStatus, PastMember, Reply, Request, ResumeMembersReply, ResumeMembersRequest, StatusReply,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use view::directory_watcher::{DirectoryWatcher, WatchEvent};

/// Longer than the daemon takes to give a start up.
const PATIENCE: Duration = Duration::from_secs(90);

/// What became of one.
enum Became {
    Runs {
        pane: Option<String>,
        pid: u32,
    },
    /// And rests on.
    Rests(String),
    Gone(String),
}

pub(super) fn bring(here: &Here, status: &StatusReply, how: &str) -> Result<ExitCode, ErrorReport> {
    // Armed before anything can happen.
    let mut follow = DirectoryWatcher::new(&[here.place()?.state_dir])?;
    let team = match &here.global.team {
        Some(name) => Some(named_team(&here.root()?, name)?),
        None => None,
    };
    let reply = here.ask(Request::ResumeMembers(ResumeMembersRequest { team }))?;
    let Reply::ResumeMembers(ResumeMembersReply { members }) = reply else { return Err(misunderstood()) };
    let members: Vec<(TeamName, AgentName)> = members
        .into_iter()
        .flat_map(|(team, names)| names.into_iter().map(move |name| (team.clone(), name)))
        .collect();
    let became = all(here, &members, &mut follow)?;
    tell(here, status, how, &members, &became);
    let failed = became.iter().any(|became| !matches!(became, Became::Runs { .. }));
    Ok(if failed { ExitCode::from(ErrorKind::Partial.exit_code()) } else { ExitCode::SUCCESS })
}

/// Waits until each of them runs, or is not started any more.
fn all(
    here: &Here,
    members: &[(TeamName, AgentName)],
    follow: &mut DirectoryWatcher,
) -> Result<Vec<Became>, ErrorReport> {
    let until = Instant::now() + PATIENCE;
    loop {
        let Reply::Status(status) = here.ask_for_status()? else { return Err(misunderstood()) };
        let became: Option<Vec<Became>> =
            members.iter().map(|(team, name)| one(&status, team, name)).collect();
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
fn one(status: &StatusReply, team: &TeamName, name: &AgentName) -> Option<Became> {
    let Some(team) = status.teams.iter().find(|status| status.name == *team) else {
        return Some(Became::Gone("its team is gone".to_owned()));
    };
    if let Some(MemberStatus { pane, pid: Some(pid), .. }) =
        team.members.iter().find(|agent| agent.name == *name && agent.lifecycle != "starting")
    {
        return Some(Became::Runs { pane: pane.clone(), pid: *pid });
    }
    let starts = team.members.iter().any(|agent| agent.name == *name);
    let past = team.past_members.iter().find(|past| past.name == *name);
    match past {
        Some(PastMember { is_suspended: true, description: how, .. }) if !starts => {
            Some(Became::Rests(how.clone()))
        }
        Some(PastMember { respawns_at: None, description: how, .. }) if !starts => {
            Some(Became::Gone(how.clone()))
        }
        None if !starts => Some(Became::Gone("it has ended".to_owned())),
        _ => None,
    }
}

fn tell(here: &Here, status: &StatusReply, how: &str, members: &[(TeamName, AgentName)], became: &[Became]) {
    let each = members.iter().zip(became);
    let mut lines = vec![told(status, how)];
    lines.extend(each.clone().map(|((team, name), became)| line(team, name, became)));
    lines.extend(status.teams.iter().filter_map(|team| spent(here, team)));
    if lines.len() == 1 {
        lines.push("Nobody rests.".to_owned());
    }
    let all: Vec<Value> = each.map(|((team, name), became)| object(team, name, became)).collect();
    let whole = json!({"daemon": status.daemon, "members": all});
    output::done(here, &whole, &output::clean(&lines.join("\n")));
}

fn line(team: &TeamName, name: &AgentName, became: &Became) -> String {
    match became {
        Became::Runs { pane: Some(pane), pid } => {
            format!("{name} runs again in pane {pane} of {team}, pid {pid}.")
        }
        Became::Runs { pane: None, pid } => format!("{name} of {team} runs again without a pane, pid {pid}."),
        Became::Rests(why) => format!("{name} of {team} could not be started, and rests on: {why}"),
        Became::Gone(why) => format!("{name} of {team} was started, and has ended: {why}"),
    }
}

fn object(team: &TeamName, name: &AgentName, became: &Became) -> Value {
    match became {
        Became::Runs { pane, pid } => json!({"team": team, "name": name, "pane": pane, "pid": pid}),
        Became::Rests(why) | Became::Gone(why) => json!({"team": team, "name": name, "error": why}),
    }
}
