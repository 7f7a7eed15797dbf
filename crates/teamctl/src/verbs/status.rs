//! `status`: teams and members. The daemon tells who lives; the files tell mail and tasks. Without a daemon
//! there are the files alone, and exit code 69.

use crate::here::{Here, fault, now};
use crate::output;
use protocol::control::{Activity, AgentStatus, Reply, Request, StatusReply};
use protocol::fault::{Fault, Kind};
use protocol::name::{AgentName, TeamName};
use protocol::task::TaskStatus;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use store::{Root, Team};

/// Show teams and members: phase, activity, task, unread mail, pane
///
/// Exit code 0 when teamd answers, 69 when there is none: then the files are told as they stand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl status\n  teamctl ps ann\n  teamctl status --json")]
pub(crate) struct Status {
    /// Only this member
    name: Option<String>,
    /// Also teams that Claude Code keeps for its own sessions
    #[arg(long)]
    all: bool,
}

/// One team, as shown and as JSON.
#[derive(Debug, Serialize)]
struct TeamView {
    name: TeamName,
    members: Vec<MemberView>,
    tasks: Counts,
}

#[derive(Debug, Serialize)]
struct MemberView {
    name: String,
    agent_id: String,
    phase: String,
    activity: Option<Activity>,
    since: Option<u64>,
    task: Option<String>,
    unread: Option<usize>,
    feed: Option<String>,
    pane: Option<String>,
    pid: Option<u32>,
    backend: Option<String>,
    color: String,
}

#[derive(Debug, Default, Serialize)]
struct Counts {
    pending: usize,
    in_progress: usize,
    completed: usize,
}

pub(crate) fn run(here: &Here, args: &Status) -> Result<ExitCode, Fault> {
    let asked = here.ask(Request::Status);
    let daemon = match asked {
        Ok(Reply::Status(status)) => Ok(status),
        Ok(_) => return Err(Fault::new(Kind::Internal, "cannot understand the daemon's answer")),
        Err(fault) if fault.kind == Kind::NoDaemon => Err(fault),
        Err(fault) => return Err(fault),
    };
    let root = here.root()?;
    let mut teams = views(here, &root, daemon.as_ref().ok(), args)?;
    if let Some(name) = &args.name {
        only(&mut teams, name)?;
    }
    let told = daemon.as_ref().ok().map(|status| &status.daemon);
    if here.global.json {
        let ok = daemon.is_ok();
        output::line(&json!({"ok": ok, "daemon": told, "teams": teams}).to_string());
    } else if !here.global.quiet {
        show(&teams, &daemon);
    }
    match daemon {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(fault) => {
            output::complain(&format!("{fault}; this is what the files say"));
            Ok(ExitCode::from(fault.kind.exit_code()))
        }
    }
}

fn views(
    here: &Here,
    root: &Root,
    daemon: Option<&StatusReply>,
    args: &Status,
) -> Result<Vec<TeamView>, Fault> {
    let named = here.global.team.is_some().then(|| here.team_name(root)).transpose()?;
    let shown = |team: &TeamName| match &named {
        Some(named) => team == named,
        None => args.all || !team.is_foreign(),
    };
    let names: Vec<TeamName> = root.teams().map_err(fault)?.into_iter().filter(shown).collect();
    Ok(names.into_iter().map(|name| view(root, name, daemon)).collect())
}

fn view(root: &Root, name: TeamName, daemon: Option<&StatusReply>) -> TeamView {
    let living = daemon.and_then(|status| status.teams.iter().find(|team| team.name == name));
    let living: &[AgentStatus] = living.map_or(&[], |team| &team.members);
    let Ok(team) = root.team(&name) else {
        return TeamView { name, members: Vec::new(), tasks: Counts::default() };
    };
    let mut members: Vec<MemberView> = living.iter().map(|agent| of_agent(&team, agent)).collect();
    members.extend(of_files(&team, living, daemon.is_some()));
    TeamView { tasks: counts(&team), name, members }
}

fn of_agent(team: &Team, agent: &AgentStatus) -> MemberView {
    MemberView {
        name: agent.name.to_string(),
        agent_id: agent.agent_id.clone(),
        phase: agent.phase.clone(),
        activity: Some(agent.activity),
        since: Some(agent.since),
        task: agent.task.clone(),
        unread: unread(team, &agent.name),
        feed: Some(agent.feed.clone()),
        pane: agent.pane.clone(),
        pid: agent.pid,
        backend: Some(agent.backend.clone()),
        color: agent.color.clone(),
    }
}

/// Members that config.json has and no daemon speaks for. The lead is nobody's to supervise.
fn of_files(team: &Team, living: &[AgentStatus], daemon: bool) -> Vec<MemberView> {
    let members = team.config().map(|config| config.members).unwrap_or_default();
    let unspoken = members.into_iter().filter(|member| !living.iter().any(|agent| agent.name == member.name));
    unspoken
        .map(|member| MemberView {
            phase: match (member.name.is_lead(), daemon) {
                (true, _) => "lead".to_owned(),
                (false, true) => "not ours".to_owned(),
                (false, false) => "unknown".to_owned(),
            },
            agent_id: member.agent_id,
            activity: member.is_active.map(|active| if active { Activity::Active } else { Activity::Idle }),
            since: None,
            task: None,
            unread: unread(team, &member.name),
            feed: None,
            pane: Some(member.tmux_pane_id).filter(|pane| pane.starts_with('%')),
            pid: None,
            backend: member.backend_type,
            color: member.color.unwrap_or_default(),
            name: member.name.to_string(),
        })
        .collect()
}

/// None where the inbox can't be read: that is not the same as nothing unread.
fn unread(team: &Team, name: &AgentName) -> Option<usize> {
    let entries = team.inbox(name).read().ok()?;
    Some(entries.iter().filter(|entry| entry.unread().is_some()).count())
}

fn counts(team: &Team) -> Counts {
    let tasks = team.tasks().list().unwrap_or_default();
    let count =
        |status: &TaskStatus| tasks.iter().filter(|t| !t.is_internal() && t.status == *status).count();
    Counts {
        pending: count(&TaskStatus::Pending),
        in_progress: count(&TaskStatus::InProgress),
        completed: count(&TaskStatus::Completed),
    }
}

fn only(teams: &mut Vec<TeamView>, name: &str) -> Result<(), Fault> {
    let bare = name.split('@').next().unwrap_or(name);
    let all: Vec<String> =
        teams.iter().flat_map(|team| team.members.iter().map(|m| m.name.clone())).collect();
    for team in teams.iter_mut() {
        team.members.retain(|member| member.name.eq_ignore_ascii_case(bare));
    }
    teams.retain(|team| !team.members.is_empty());
    if !teams.is_empty() {
        return Ok(());
    }
    let near = protocol::name::nearest(bare, all.iter().map(String::as_str));
    let fault = Fault::new(Kind::NotFound, format!("cannot find {bare}: no such member"));
    Err(if near.is_empty() { fault } else { fault.hinted(format!("did you mean {}?", near.join(", "))) })
}

fn show(teams: &[TeamView], daemon: &Result<StatusReply, Fault>) {
    if let Ok(status) = daemon {
        let about = &status.daemon;
        let tmux = about.tmux.as_ref().map_or_else(|| "gone".to_owned(), |path| path.display().to_string());
        output::line(&format!(
            "teamd {}, pid {}, root {}, tmux {tmux}",
            about.version,
            about.pid,
            about.root.display()
        ));
    }
    for team in teams {
        let Counts { pending, in_progress, completed } = team.tasks;
        output::line(&format!(
            "\n{}: {pending} pending, {in_progress} in progress, {completed} completed",
            team.name
        ));
        output::table(&rows(team));
    }
    if teams.is_empty() {
        output::line("No teams. Make one with: teamctl create NAME");
    }
}

fn rows(team: &TeamView) -> Vec<Vec<String>> {
    let head = ["NAME", "PHASE", "ACTIVITY", "SINCE", "UNREAD", "FEED", "PANE", "PID", "TASK"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let dash = || "-".to_owned();
    rows.extend(team.members.iter().map(|member| {
        vec![
            output::paint(&member.color, &output::clean(&member.name)),
            member.phase.clone(),
            member.activity.map_or_else(dash, word),
            member.since.map_or_else(dash, ago),
            member.unread.map_or_else(|| "?".to_owned(), |n| n.to_string()),
            member.feed.clone().unwrap_or_else(dash),
            member.pane.clone().unwrap_or_else(dash),
            member.pid.map_or_else(dash, |pid| pid.to_string()),
            output::clean(member.task.as_deref().unwrap_or("-")),
        ]
    }));
    rows
}

fn word(activity: Activity) -> String {
    match activity {
        Activity::Active => "active".to_owned(),
        Activity::Idle => "idle".to_owned(),
    }
}

fn ago(since: u64) -> String {
    match now().saturating_sub(since) / 1000 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}
