//! What the daemon tells without changing anything, and what agents tell about themselves.

use super::request::answer;
use super::shutdown::find;
use super::spawn::{color, no_such_team, relabel};
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::panes::PaneJob;
use crate::roster::Pane;
use crate::state::{Agent, Phase, State};
use protocol::control::{
    Activity, AgentStatus, Capture, CaptureReply, DaemonStatus, Locate, LocateReply, Reply, StatusReply,
    TeamStatus,
};
use protocol::fault::{Fault, Kind};
use protocol::id::AgentId;
use protocol::name::TeamName;

pub(super) fn status(state: &mut State, client: ConnId, out: &mut Vec<Effect>) {
    let teams = state.teams.keys().map(|team| TeamStatus {
        name: team.clone(),
        members: state
            .members(team)
            .into_iter()
            .filter(|a| !matches!(a.phase, Phase::Gone(_)))
            .map(of)
            .collect(),
        past: Vec::new(),
    });
    let daemon = DaemonStatus {
        pid: state.setting.pid,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: state.setting.root.clone(),
        tmux: state.setting.tmux_socket.clone(),
        watch: state.watch.word().to_owned(),
    };
    let reply = StatusReply { teams: teams.collect(), daemon };
    answer(state, client, Ok(Reply::Status(reply)), out);
}

fn of(agent: &Agent) -> AgentStatus {
    let record = &agent.record;
    AgentStatus {
        name: record.name.clone(),
        agent_id: AgentId { name: record.name.clone(), team: record.team.clone() }.to_string(),
        phase: agent.phase.word().to_owned(),
        activity: agent.activity,
        since: agent.since,
        task: agent.task.clone(),
        feed: record.feed.clone(),
        pane: record.pane.as_ref().map(|pane| pane.pane.clone()),
        pid: record.agent,
        backend: "tmux".to_owned(),
        state: String::new(),
        flags: Vec::new(),
        evidence: String::new(),
        restarts: 0,
        color: color(record),
    }
}

pub(super) fn locate(state: &mut State, client: ConnId, locate: &Locate, out: &mut Vec<Effect>) {
    let result = pane_of(state, &locate.team, &locate.name).and_then(|(pane, _)| {
        let tmux = state.setting.tmux_socket.clone().ok_or_else(no_tmux)?;
        Ok(Reply::Locate(LocateReply::Pane { pane: pane.pane, tmux }))
    });
    answer(state, client, result, out);
}

pub(super) fn capture(state: &mut State, client: ConnId, capture: &Capture, out: &mut Vec<Effect>) {
    match pane_of(state, &capture.team, &capture.name) {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok((pane, owner)) => match pane.id() {
            Some(pane) => {
                out.push(Effect::Pane(PaneJob::Capture { client, pane, owner, lines: capture.lines }));
            }
            None => answer(state, client, Err(no_pane(&capture.name)), out),
        },
    }
}

fn pane_of(state: &State, team: &TeamName, name: &str) -> Result<(Pane, tmux::Owner), Fault> {
    if !state.teams.contains_key(team) {
        return Err(no_such_team(state, team));
    }
    let agent = find(state, team, name)?;
    let pane = agent.record.pane.clone().ok_or_else(|| no_pane(name))?;
    Ok((pane, agent.record.spawn.owner()))
}

fn no_pane(name: &str) -> Fault {
    Fault::new(Kind::NotFound, format!("cannot show {name}: it has no pane"))
}

fn no_tmux() -> Fault {
    Fault::new(Kind::Missing, "cannot reach tmux: its server is gone").hinted("see: teamctl doctor")
}

pub(super) fn captured(
    state: &mut State,
    client: ConnId,
    result: Result<String, Fault>,
    out: &mut Vec<Effect>,
) {
    answer(state, client, result.map(|screen| Reply::Capture(CaptureReply { screen })), out);
}

/// The agent itself says so, known by its token. config.json follows, for whoever reads files.
pub(super) fn activity(
    state: &mut State,
    client: ConnId,
    token: Option<&str>,
    activity: Activity,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let mine = |agent: &&mut Agent| token == Some(agent.record.token.as_str());
    if let Some(agent) = state.agents.values_mut().find(mine)
        && agent.activity != activity
    {
        agent.activity = activity;
        agent.since = now.wall;
        out.extend(relabel(agent));
        out.push(Effect::File(FileJob::Activity {
            team: agent.record.team.clone(),
            name: agent.record.name.clone(),
            active: activity == Activity::Active,
        }));
    }
    answer(state, client, Ok(Reply::Nothing), out);
}
