//! What the daemon tells without changing anything, and what agents tell about themselves.

use super::budget;
use super::request::answer;
use super::screens::{self, Dialogs};
use super::shutdown::find;
use super::spawn::{color, no_such_team};
use super::worktree;
use crate::effect::Effect;
use crate::event::ConnId;
use crate::panes::PaneJob;
use crate::roster::Pane;
use crate::state::{Agent, Phase, State, Stopping};
use protocol::control::{
    Activity, CapturePaneReply, CapturePaneRequest, DaemonStatus, LocatePaneReply, MemberAddress, MemberFlag,
    MemberStatus, Reply, StatusReply, TeamStatus, TurnStatus,
};
use protocol::delivery::{Delivery, DeliveryPoint};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::AgentId;
use protocol::member_request::MemberRequestKind;
use protocol::name::TeamName;
use protocol::turn_program::Backend;

pub(super) fn status(state: &mut State, client: ConnId, dialogs: &Dialogs, out: &mut Vec<Effect>) {
    let teams = state.teams.iter().map(|(team, known)| TeamStatus {
        name: team.clone(),
        members: state
            .members(team)
            .into_iter()
            .filter(|a| !matches!(a.phase, Phase::Gone(_)))
            .map(|agent| of(agent, dialogs))
            .collect(),
        past_members: known.past.clone(),
        worktrees: known.grounds.iter().map(worktree::shown).collect(),
        budget: budget::told(known),
    });
    let daemon = DaemonStatus {
        pid: state.setting.pid,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: state.setting.root.clone(),
        tmux: state.setting.tmux_socket.clone(),
        watch_mode: state.watch.word().to_owned(),
        is_stopping: state.closing.is_under_way(),
    };
    let reply = StatusReply { teams: teams.collect(), daemon };
    answer(state, client, Ok(Reply::Status(reply)), out);
}

fn of(agent: &Agent, dialogs: &Dialogs) -> MemberStatus {
    let record = &agent.record;
    MemberStatus {
        name: record.name.clone(),
        agent_id: AgentId { name: record.name.clone(), team: record.team.clone() }.to_string(),
        lifecycle: agent.phase.word().to_owned(),
        activity: agent.activity,
        activity_since: agent.since,
        task: agent.task.clone(),
        mode: record.mode.clone(),
        delivery: record.feed,
        delivery_point: Some(reaches(agent)),
        pane: record.pane.as_ref().map(|pane| pane.pane.clone()),
        hidden: record.hidden,
        pid: record.agent,
        backend: record.backend.as_str().to_owned(),
        worktree: record.worktree.as_ref().map(|tree| tree.path.clone()),
        state: state_word(agent).to_owned(),
        flags: flags(agent, dialogs),
        turn_task: agent.turn.as_ref().and_then(TurnStatus::task),
        evidence: evidence(agent),
        usage: record.used(),
        respawns: record.comeback.as_ref().map_or(0, |comeback| comeback.restarts),
        color: color(record),
        environment_file: record.env.clone(),
    }
}

/// What the feed promises, as long as its hooks keep it: while it is idle one of them must wait.
fn reaches(agent: &Agent) -> DeliveryPoint {
    let feed = agent.record.feed;
    let reached = match agent.activity {
        Activity::Active => agent.has_said,
        Activity::Idle => agent.hooks.parked.is_some(),
    };
    if feed.has_hooks() && !reached { DeliveryPoint::OnPull } else { feed.delivery_point() }
}

/// The word of the protocol; those for ends are told of members that are gone.
fn state_word(agent: &Agent) -> &'static str {
    if matches!(agent.phase, Phase::Starting(_)) { "pending" } else { "running" }
}

fn flags(agent: &Agent, dialogs: &Dialogs) -> Vec<MemberFlag> {
    let asked = matches!(agent.phase, Phase::Stopping(_, Stopping::Asked(_)));
    let waits = agent.turn.as_ref().is_some_and(|turn| turn.shutdown_requested);
    let asks = agent.asks.iter().map(|kind| match kind {
        MemberRequestKind::Plan => MemberFlag::AwaitingPlanApproval,
        MemberRequestKind::Permission => MemberFlag::AwaitingPermission,
    });
    let dialog = screens::flag(agent, dialogs);
    asks.chain((asked || waits).then_some(MemberFlag::ShutdownRequested)).chain(dialog).collect()
}

/// What we know its activity from.
fn evidence(agent: &Agent) -> String {
    match (&agent.turn, agent.phase.word()) {
        (_, "unknown") => "its first process is not connected; this is what was known before".to_owned(),
        (Some(turn), _) if agent.record.feed.has_hooks() => {
            format!("{}; {}", evidence_of(turn), hook_of(agent))
        }
        (Some(turn), _) => evidence_of(turn),
        (None, _) if agent.has_said && agent.record.feed == Delivery::Native => {
            "it said so in config.json, or to its lead".to_owned()
        }
        (None, _) if agent.has_said => "it said so itself".to_owned(),
        (None, _) => match agent.record.agent {
            Some(pid) if agent.record.feed == Delivery::Hook => {
                format!("its process {pid} runs, and no hook of it has said anything: mail waits for that")
            }
            Some(pid) => format!("its process {pid} runs, and has said nothing of turns"),
            None => "it has not started yet".to_owned(),
        },
    }
}

/// Who would hear of mail.
fn hook_of(agent: &Agent) -> &'static str {
    let typed = agent.record.feed == Delivery::Keys;
    match (agent.activity, agent.hooks.parked, typed) {
        (Activity::Active, _, false) => "its hook looks for mail at its end",
        (Activity::Idle, Some(_), false) => "its hook waits for mail",
        (Activity::Idle, None, false) => "no hook of it waits for mail",
        (Activity::Active, _, true) => "its mail is typed into its pane at its end",
        (Activity::Idle, Some(_), true) => "what types its mail into its pane waits for some",
        (Activity::Idle, None, true) => "nothing waits to type mail into its pane",
    }
}

fn evidence_of(turn: &TurnStatus) -> String {
    match (turn.activity, turn.pid) {
        (Activity::Active, Some(pid)) => format!("turn {}, pid {pid}: {}", turn.turn_number, turn.summary),
        (Activity::Active, None) => format!("turn {}: {}", turn.turn_number, turn.summary),
        (Activity::Idle, _) if turn.turn_number == 0 => "no turn yet".to_owned(),
        (Activity::Idle, _) => {
            let reason = turn.idle_reason.map(|reason| format!(", {}", reason.as_str())).unwrap_or_default();
            format!("turn {} has ended{reason}", turn.turn_number)
        }
    }
}

pub(super) fn locate(state: &mut State, client: ConnId, locate: &MemberAddress, out: &mut Vec<Effect>) {
    let result = match state.teams.contains_key(&locate.team) {
        true => find(state, &locate.team, &locate.name).and_then(|agent| place_of(state, agent)),
        false => Err(no_such_team(state, &locate.team)),
    };
    answer(state, client, result.map(Reply::LocatePane), out);
}

fn place_of(state: &State, agent: &Agent) -> Result<LocatePaneReply, ErrorReport> {
    let record = &agent.record;
    if record.backend == Backend::InProcess {
        return Ok(LocatePaneReply::Log { path: state.setting.log_of(&record.team, &record.name) });
    }
    let pane = record.pane.as_ref().ok_or_else(|| no_pane(&record.team, record.name.as_str(), "show"))?;
    let tmux = state.setting.tmux_socket.clone().ok_or_else(no_tmux)?;
    Ok(LocatePaneReply::Pane { pane: pane.pane.clone(), tmux, hidden: record.hidden })
}

pub(super) fn capture(
    state: &mut State,
    client: ConnId,
    capture: &CapturePaneRequest,
    out: &mut Vec<Effect>,
) {
    match pane_of(state, &capture.team, &capture.name, "capture") {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok((pane, owner)) => match pane.id() {
            Some(pane) => {
                out.push(Effect::Pane(PaneJob::Capture { client, pane, owner, lines: capture.lines }));
            }
            None => answer(state, client, Err(no_pane(&capture.team, &capture.name, "capture")), out),
        },
    }
}

/// `what` completes "cannot …".
pub(super) fn pane_of(
    state: &State,
    team: &TeamName,
    name: &str,
    what: &str,
) -> Result<(Pane, tmux::PaneTag), ErrorReport> {
    if !state.teams.contains_key(team) {
        return Err(no_such_team(state, team));
    }
    let agent = find(state, team, name)?;
    let pane = agent.record.pane.clone().ok_or_else(|| no_pane(team, name, what))?;
    Ok((pane, agent.record.spawn.owner()))
}

pub(super) fn no_pane(team: &TeamName, name: &str, what: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, format!("cannot {what} {name}: it has no pane"))
        .with_help(format!("its output: teamctl logs {name} -t {team}"))
}

fn no_tmux() -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, "cannot reach tmux: its server is gone")
        .with_help("see: teamctl doctor")
}

pub(super) fn captured(
    state: &mut State,
    client: ConnId,
    result: Result<CapturePaneReply, ErrorReport>,
    out: &mut Vec<Effect>,
) {
    answer(state, client, result.map(Reply::CapturePane), out);
}
