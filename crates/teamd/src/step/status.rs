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
use protocol::asked::AskedKind;
use protocol::control::{
    Activity, AgentStatus, Capture, CaptureReply, DaemonStatus, Flag, Locate, LocateReply, Reply,
    StatusReply, TeamStatus, TurnNow,
};
use protocol::fault::{Fault, Kind};
use protocol::feed::{Feed, Reaches};
use protocol::id::AgentId;
use protocol::name::TeamName;
use protocol::turn::Backend;

pub(super) fn status(state: &mut State, client: ConnId, dialogs: &Dialogs, out: &mut Vec<Effect>) {
    let teams = state.teams.iter().map(|(team, known)| TeamStatus {
        name: team.clone(),
        members: state
            .members(team)
            .into_iter()
            .filter(|a| !matches!(a.phase, Phase::Gone(_)))
            .map(|agent| of(agent, dialogs))
            .collect(),
        past: known.past.clone(),
        worktrees: known.grounds.iter().map(worktree::shown).collect(),
        budget: budget::told(known),
    });
    let daemon = DaemonStatus {
        pid: state.setting.pid,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: state.setting.root.clone(),
        tmux: state.setting.tmux_socket.clone(),
        watch: state.watch.word().to_owned(),
        closing: state.closing.is_under_way(),
    };
    let reply = StatusReply { teams: teams.collect(), daemon };
    answer(state, client, Ok(Reply::Status(reply)), out);
}

fn of(agent: &Agent, dialogs: &Dialogs) -> AgentStatus {
    let record = &agent.record;
    AgentStatus {
        name: record.name.clone(),
        agent_id: AgentId { name: record.name.clone(), team: record.team.clone() }.to_string(),
        phase: agent.phase.word().to_owned(),
        activity: agent.activity,
        since: agent.since,
        task: agent.task.clone(),
        mode: record.mode.clone(),
        feed: record.feed,
        reaches: Some(reaches(agent)),
        pane: record.pane.as_ref().map(|pane| pane.pane.clone()),
        hidden: record.hidden,
        pid: record.agent,
        backend: record.backend.word().to_owned(),
        worktree: record.worktree.as_ref().map(|tree| tree.path.clone()),
        state: state_word(agent).to_owned(),
        flags: flags(agent, dialogs),
        turn_task: agent.turn.as_ref().and_then(TurnNow::task),
        evidence: evidence(agent),
        used: record.used(),
        restarts: record.comeback.as_ref().map_or(0, |comeback| comeback.restarts),
        color: color(record),
        environment: record.env.clone(),
    }
}

/// What the feed promises, as long as its hooks keep it: while it is idle one of them must wait.
fn reaches(agent: &Agent) -> Reaches {
    let feed = agent.record.feed;
    let reached = match agent.activity {
        Activity::Active => agent.has_said,
        Activity::Idle => agent.hooks.parked.is_some(),
    };
    if feed.is_hooked() && !reached { Reaches::WhenAsked } else { feed.reaches() }
}

/// The word of the protocol; those for ends are told of members that are gone.
fn state_word(agent: &Agent) -> &'static str {
    if matches!(agent.phase, Phase::Starting(_)) { "pending" } else { "running" }
}

fn flags(agent: &Agent, dialogs: &Dialogs) -> Vec<Flag> {
    let asked = matches!(agent.phase, Phase::Stopping(_, Stopping::Asked(_)));
    let waits = agent.turn.as_ref().is_some_and(|turn| turn.shutdown_requested);
    let asks = agent.asks.iter().map(|kind| match kind {
        AskedKind::Plan => Flag::AwaitingPlanApproval,
        AskedKind::Permission => Flag::AwaitingPermission,
    });
    let dialog = screens::flag(agent, dialogs);
    asks.chain((asked || waits).then_some(Flag::ShutdownRequested)).chain(dialog).collect()
}

/// What we know its activity from.
fn evidence(agent: &Agent) -> String {
    match (&agent.turn, agent.phase.word()) {
        (_, "unknown") => "its first process is not connected; this is what was known before".to_owned(),
        (Some(turn), _) if agent.record.feed.is_hooked() => {
            format!("{}; {}", evidence_of(turn), hook_of(agent))
        }
        (Some(turn), _) => evidence_of(turn),
        (None, _) if agent.has_said && agent.record.feed == Feed::Native => {
            "it said so in config.json, or to its lead".to_owned()
        }
        (None, _) if agent.has_said => "it said so itself".to_owned(),
        (None, _) => match agent.record.agent {
            Some(pid) if agent.record.feed == Feed::Hook => {
                format!("its process {pid} runs, and no hook of it has said anything: mail waits for that")
            }
            Some(pid) => format!("its process {pid} runs, and has said nothing of turns"),
            None => "it has not started yet".to_owned(),
        },
    }
}

/// Who would hear of mail.
fn hook_of(agent: &Agent) -> &'static str {
    let typed = agent.record.feed == Feed::Keys;
    match (agent.activity, agent.hooks.parked, typed) {
        (Activity::Active, _, false) => "its hook looks for mail at its end",
        (Activity::Idle, Some(_), false) => "its hook waits for mail",
        (Activity::Idle, None, false) => "no hook of it waits for mail",
        (Activity::Active, _, true) => "its mail is typed into its pane at its end",
        (Activity::Idle, Some(_), true) => "what types its mail into its pane waits for some",
        (Activity::Idle, None, true) => "nothing waits to type mail into its pane",
    }
}

fn evidence_of(turn: &TurnNow) -> String {
    match (turn.activity, turn.pid) {
        (Activity::Active, Some(pid)) => format!("turn {}, pid {pid}: {}", turn.number, turn.about),
        (Activity::Active, None) => format!("turn {}: {}", turn.number, turn.about),
        (Activity::Idle, _) if turn.number == 0 => "no turn yet".to_owned(),
        (Activity::Idle, _) => {
            let reason = turn.reason.map(|reason| format!(", {}", reason.word())).unwrap_or_default();
            format!("turn {} has ended{reason}", turn.number)
        }
    }
}

pub(super) fn locate(state: &mut State, client: ConnId, locate: &Locate, out: &mut Vec<Effect>) {
    let result = match state.teams.contains_key(&locate.team) {
        true => find(state, &locate.team, &locate.name).and_then(|agent| place_of(state, agent)),
        false => Err(no_such_team(state, &locate.team)),
    };
    answer(state, client, result.map(Reply::Locate), out);
}

fn place_of(state: &State, agent: &Agent) -> Result<LocateReply, Fault> {
    let record = &agent.record;
    if record.backend == Backend::InProcess {
        return Ok(LocateReply::Log { path: state.setting.log_of(&record.team, &record.name) });
    }
    let pane = record.pane.as_ref().ok_or_else(|| no_pane(&record.team, record.name.as_str(), "show"))?;
    let tmux = state.setting.tmux_socket.clone().ok_or_else(no_tmux)?;
    Ok(LocateReply::Pane { pane: pane.pane.clone(), tmux, hidden: record.hidden })
}

pub(super) fn capture(state: &mut State, client: ConnId, capture: &Capture, out: &mut Vec<Effect>) {
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
) -> Result<(Pane, tmux::Owner), Fault> {
    if !state.teams.contains_key(team) {
        return Err(no_such_team(state, team));
    }
    let agent = find(state, team, name)?;
    let pane = agent.record.pane.clone().ok_or_else(|| no_pane(team, name, what))?;
    Ok((pane, agent.record.spawn.owner()))
}

pub(super) fn no_pane(team: &TeamName, name: &str, what: &str) -> Fault {
    Fault::new(Kind::NotFound, format!("cannot {what} {name}: it has no pane"))
        .hinted(format!("its output: teamctl logs {name} -t {team}"))
}

fn no_tmux() -> Fault {
    Fault::new(Kind::Missing, "cannot reach tmux: its server is gone").hinted("see: teamctl doctor")
}

pub(super) fn captured(
    state: &mut State,
    client: ConnId,
    result: Result<CaptureReply, Fault>,
    out: &mut Vec<Effect>,
) {
    answer(state, client, result.map(Reply::Capture), out);
}
