//! Sessions that lead a team: a person's, or another program's, in a terminal that is not ours. They are known by the
//! first process of that terminal, and lead until they say otherwise or that process ends. Nothing of theirs is ever
//! closed, ended or typed into.

use crate::core::clock::Now;
use crate::core::context::send_reply;
use crate::core::effect::Effect;
use crate::core::hook_session::{HookSession, ignored_reply, lead_hook_session, unknown_caller_error};
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::FileJob;
use crate::core::long_poll::{hold_long_poll, release_long_poll, wake_long_poll};
use crate::core::roster::record::HookState;
use crate::core::state::agent::LeadSession;
use crate::core::state::daemon::State;
use crate::core::state::lookup::no_such_team_error;
use protocol::control::{
    HookEvent, HookReply, HookReport, LeadProcess, LongPollEnd, Process, Reply, SetLeadRequest,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;

pub(crate) fn handle_lead_order(
    state: &mut State,
    client: ConnId,
    order: SetLeadRequest,
    out: &mut Vec<Effect>,
) {
    let done = match order {
        SetLeadRequest::Take(lead) => take_lead(state, lead, out),
        SetLeadRequest::Release(team) => release_lead(state, &team, out),
    };
    match done {
        Err(fault) => send_reply(state, client, Err(fault), out),
        // The roster goes ahead of it: whoever has the answer finds the file.
        Ok(()) => out.push(Effect::File(FileJob::ReplyWhenSaved { client, reply: Box::new(Reply::Ack) })),
    }
}

fn take_lead(state: &mut State, lead: LeadProcess, out: &mut Vec<Effect>) -> Result<(), ErrorReport> {
    if !state.teams.contains_key(&lead.team) {
        return Err(no_such_team_error(state, &lead.team));
    }
    let same = |other: &LeadProcess| (other.pid, other.start_time) == (lead.pid, lead.start_time);
    let leads = || state.lead_sessions.values().map(|leading| &leading.lead);
    if let Some(other) = leads().find(|other| same(other) && other.team != lead.team) {
        let message = format!("cannot lead {}: this session leads {} already", lead.team, other.team);
        return Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
            .with_help(format!("leave that first: teamctl lead --release -t {}", other.team)));
    }
    if let Some(other) = leads().find(|other| other.team == lead.team && !same(other)) {
        let place = other.pane.as_ref().map_or(String::new(), |pane| format!(" in pane {pane}"));
        let message = format!("cannot lead {}: another session does{place}, pid {}", lead.team, other.pid);
        return Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
            .with_help(format!("there: teamctl lead --release -t {}", lead.team)));
    }
    if let Some(leading) = state.lead_sessions.get_mut(&lead.team) {
        // Whichever program of it speaks next is the one.
        leading.hook_state = HookState::default();
    } else {
        state.has_roster_changed = true;
        let leading = LeadSession::new(lead);
        out.push(leading.watch_effect());
        state.lead_sessions.insert(leading.lead.team.clone(), leading);
    }
    Ok(())
}

/// Nobody leads it from a session any more.
pub(crate) fn release_lead(
    state: &mut State,
    team: &TeamName,
    out: &mut Vec<Effect>,
) -> Result<(), ErrorReport> {
    let missing = || {
        ErrorReport::new(ErrorKind::NotFound, format!("cannot leave {team}: no session leads it"))
            .with_help(format!("lead it from here with: teamctl lead {team}"))
    };
    let mut leading = state.lead_sessions.remove(team).ok_or_else(missing)?;
    release_long_poll(&mut leading.long_poll, LongPollEnd::AgentExited, out);
    out.push(Effect::CloseHandles { spawn: leading.watch_id });
    state.has_roster_changed = true;
    Ok(())
}

/// The first process of its terminal has ended; false where it is no lead's.
pub(crate) fn handle_lead_died(state: &mut State, life: &SpawnId, out: &mut Vec<Effect>) -> bool {
    let team = state
        .lead_sessions
        .iter()
        .find(|(_, leading)| leading.watch_id == *life)
        .map(|(team, _)| team.clone());
    team.is_some_and(|team| release_lead(state, &team, out).is_ok())
}

pub(crate) fn handle_lead_hook(
    state: &mut State,
    team: &TeamName,
    hooked: &HookReport,
    now: Now,
    out: &mut Vec<Effect>,
) -> Result<HookReply, ErrorReport> {
    let leading = state.lead_sessions.get_mut(team).ok_or_else(unknown_caller_error)?;
    let handed = leading.hook_state.delivered_ids.clone();
    let reply =
        HookReply { delivers_by_hook: true, delivered_ids: handed, ..ignored_reply(leading.turn_since) };
    match lead_hook_session(leading, hooked) {
        HookSession::OtherProgram => return Ok(ignored_reply(leading.turn_since)),
        HookSession::NewSession(session) => {
            leading.hook_state.ancestors.clone_from(&hooked.ancestors);
            leading.lead.session_id = Some(session.clone());
            state.has_roster_changed = true;
            out.push(Effect::File(FileJob::WriteLeadSession { team: team.clone(), session }));
        }
        HookSession::SameSession => {}
    }
    match &hooked.event {
        HookEvent::TurnStarted { delivered_ids: handed, .. } => {
            if !handed.is_empty() {
                leading.hook_state.delivered_ids.clone_from(handed);
            }
            leading.turn_since = now.wall;
            release_long_poll(&mut leading.long_poll, LongPollEnd::PersonTyped, out);
        }
        HookEvent::TurnEnded => leading.long_poll.has_pending_check = false,
        _ => {}
    }
    Ok(reply)
}

pub(crate) fn hold_lead_poll(
    state: &mut State,
    team: &TeamName,
    client: ConnId,
    out: &mut Vec<Effect>,
) -> Result<(), ErrorReport> {
    let leading = state.lead_sessions.get_mut(team).ok_or_else(unknown_caller_error)?;
    hold_long_poll(&mut leading.long_poll, client, out);
    Ok(())
}

/// Something is in the lead's inbox.
pub(crate) fn wake_lead(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    if let Some(leading) = state.lead_sessions.get_mut(team) {
        wake_long_poll(&mut leading.long_poll, out);
    }
}

impl LeadSession {
    /// Its end is told by its pidfd.
    pub(crate) fn watch_effect(&self) -> Effect {
        let process = Process { pid: self.lead.pid, start_time: self.lead.start_time };
        Effect::WatchProcess { spawn: self.watch_id.clone(), process }
    }
}
