//! Lead sessions: terminal sessions in which a person or a program leads a team, and which the
//! daemon does not own. A lead session is identified by the first process of its terminal. The
//! session leads the team until that process ends, or until the session releases the team. The
//! daemon never closes the terminal, ends its processes or types into it.

use crate::core::context::{Context, send_reply};
use crate::core::effect::Effect;
use crate::core::hook_long_poll::{hold_long_poll, release_long_poll, wake_long_poll};
use crate::core::hook_origin::{HookSession, ignored_reply, lead_hook_session, unknown_caller_error};
use crate::core::id::{ConnId, WatchId};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::roster::record::HookState;
use crate::core::state::agent::LeadSession;
use crate::core::state::lookup::supervised_team;
use protocol::control::{
    HookEvent, HookReply, HookReport, LeadProcess, LongPollEnd, Process, Reply, SetLeadRequest,
};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::name::TeamName;

pub(crate) fn handle_lead_order(context: &mut Context, client: ConnId, order: SetLeadRequest) {
    let done = match order {
        SetLeadRequest::Take(lead) => take_lead(context, lead),
        SetLeadRequest::Release(team) => release_ended_or_current_lead(context, &team),
    };
    match done {
        Err(error) => send_reply(context, client, Err(error)),
        // The reply waits for the roster, from which the leads file is written.
        Ok(()) => context
            .effects
            .push(Effect::File(FileJob::ReplyWhenSaved { client, reply: Box::new(Reply::Ack) })),
    }
}

fn take_lead(context: &mut Context, lead: LeadProcess) -> Result<(), ErrorReport> {
    supervised_team(context.state, &lead.team)?;
    let same = |other: &LeadProcess| (other.pid, other.start_time) == (lead.pid, lead.start_time);
    let leads = || context.state.lead_sessions.values().map(|leading| &leading.lead);
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
    if let Some(leading) = context.state.lead_sessions.get_mut(&lead.team) {
        // The next program in the terminal session that sends a hook report becomes the lead.
        leading.hook_state = HookState::default();
    } else {
        context.state.has_roster_changed = true;
        let leading = LeadSession::new(lead);
        context.effects.push(leading.watch_effect());
        if let Some(known) = context.state.teams.get_mut(&leading.lead.team) {
            known.lead_session_ended_at = None;
        }
        context.state.lead_sessions.insert(leading.lead.team.clone(), leading);
    }
    Ok(())
}

/// Releases a team from its lead session. If the process of that session has ended already, only
/// clears the time of its end, which `status` shows.
fn release_ended_or_current_lead(context: &mut Context, team: &TeamName) -> Result<(), ErrorReport> {
    let known = context.state.teams.get_mut(team);
    if known.is_some_and(|known| known.lead_session_ended_at.take().is_some()) {
        context.state.has_roster_changed = true;
        return Ok(());
    }
    release_lead(context, team)
}

/// Ends the lead session of a team. An error if there is none.
pub(crate) fn release_lead(context: &mut Context, team: &TeamName) -> Result<(), ErrorReport> {
    let missing = || {
        ErrorReport::new(ErrorKind::NotFound, format!("cannot leave {team}: no session leads it"))
            .with_help(format!("lead it from here with: teamctl lead {team}"))
    };
    let mut leading = context.state.lead_sessions.remove(team).ok_or_else(missing)?;
    release_long_poll(&mut leading.long_poll, LongPollEnd::AgentExited, &mut context.effects);
    context.effects.push(Effect::UnwatchProcess { watch: leading.watch_id() });
    context.state.has_roster_changed = true;
    Ok(())
}

/// Ends the lead session of a team, because its process has died. Ignored if another process leads
/// the team by now.
pub(crate) fn handle_lead_died(context: &mut Context, team: &TeamName, process: Process) {
    if context.state.lead_sessions.get(team).is_some_and(|leading| leading.process() == process) {
        release_lead(context, team).ok();
        context.effects.push(Effect::log_team(team, EventKind::LeadSessionEnded));
        context.state.notices.add_lead_session_ended(team);
        if let Some(known) = context.state.teams.get_mut(team) {
            known.lead_session_ended_at = Some(context.now.wall);
        }
    }
}

pub(crate) fn handle_lead_hook(
    context: &mut Context,
    team: &TeamName,
    report: &HookReport,
) -> Result<HookReply, ErrorReport> {
    let leading = context.state.lead_sessions.get_mut(team).ok_or_else(unknown_caller_error)?;
    let handed = leading.hook_state.delivered_ids.clone();
    let reply =
        HookReply { delivers_by_hook: true, delivered_ids: handed, ..ignored_reply(leading.turn_since) };
    match lead_hook_session(leading, report) {
        HookSession::OtherProgram => return Ok(ignored_reply(leading.turn_since)),
        HookSession::NewSession(session) => {
            leading.hook_state.ancestors.clone_from(&report.ancestors);
            leading.lead.session_id = Some(session.clone());
            context.state.has_roster_changed = true;
            context.effects.push(Effect::File(FileJob::WriteLeadSession { team: team.clone(), session }));
        }
        HookSession::SameSession => {}
    }
    match &report.event {
        HookEvent::TurnStarted { delivered_ids: handed, .. } => {
            if !handed.is_empty() {
                leading.hook_state.delivered_ids.clone_from(handed);
            }
            leading.turn_since = context.now.wall;
            release_long_poll(&mut leading.long_poll, LongPollEnd::PersonTyped, &mut context.effects);
        }
        HookEvent::TurnEnded => leading.long_poll.has_pending_check = false,
        _ => {}
    }
    Ok(reply)
}

pub(crate) fn hold_lead_poll(
    context: &mut Context,
    team: &TeamName,
    client: ConnId,
) -> Result<(), ErrorReport> {
    let leading = context.state.lead_sessions.get_mut(team).ok_or_else(unknown_caller_error)?;
    hold_long_poll(&mut leading.long_poll, client, &mut context.effects);
    Ok(())
}

/// Wakes the lead session, because its inbox has changed.
pub(crate) fn wake_lead(context: &mut Context, team: &TeamName) {
    if let Some(leading) = context.state.lead_sessions.get_mut(team) {
        wake_long_poll(&mut leading.long_poll, &mut context.effects);
    }
}

impl LeadSession {
    /// The effect that watches the process of the session.
    pub(crate) fn watch_effect(&self) -> Effect {
        Effect::WatchProcess { watch: self.watch_id(), process: self.process() }
    }

    fn watch_id(&self) -> WatchId {
        WatchId::Lead { team: self.lead.team.clone(), process: self.process() }
    }

    fn process(&self) -> Process {
        Process { pid: self.lead.pid, start_time: self.lead.start_time }
    }
}
