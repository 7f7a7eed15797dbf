//! Lead sessions: terminal sessions in which a person or a program leads a team, and which the
//! daemon does not own. A lead session is identified by the first process of its terminal. The
//! session leads the team until that process ends, or until the session releases the team. The
//! daemon never closes the terminal, ends its processes or types into it.

use crate::core::connection_spawn_and_watch_ids::{ConnId, WatchId};
use crate::core::effect::Effect;
use crate::core::hold_and_release_long_polls::{hold_long_poll, release_long_poll, wake_long_poll};
use crate::core::ignore_hooks_of_nested_sessions::{
    HookSession, ignored_reply, lead_hook_session, unknown_caller_error,
};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::HookState;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::lead_session::LeadSession;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{
    HookEvent, HookReply, HookReport, LeadProcess, LongPollEnd, Process, Reply, SetLeadRequest,
};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::team_and_member_names::TeamName;

pub(crate) fn set_lead(context: &mut Context, client: ConnId, request: SetLeadRequest) {
    let result = match request {
        SetLeadRequest::Take(lead) => take_lead(context, lead),
        SetLeadRequest::Release(team) => release_ended_or_current_lead(context, &team),
    };
    match result {
        Err(error) => send_reply(context, client, Err(error)),
        // The reply waits for the roster, from which the leads file is written.
        Ok(()) => context
            .effects
            .push(Effect::File(FileJob::ReplyWhenSaved { client, reply: Box::new(Reply::Ack) })),
    }
}

fn take_lead(context: &mut Context, lead: LeadProcess) -> Result<(), ErrorReport> {
    supervised_team(context.state, &lead.team)?;
    let is_same_session = |other: &LeadProcess| (other.pid, other.start_time) == (lead.pid, lead.start_time);
    let lead_processes = || context.state.lead_sessions.values().map(|lead_session| &lead_session.lead);
    if let Some(other) = lead_processes().find(|other| is_same_session(other) && other.team != lead.team) {
        let message = format!("cannot lead {}: this session leads {} already", lead.team, other.team);
        return Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
            .with_help(format!("leave that first: teamctl lead --release -t {}", other.team)));
    }
    if let Some(other) = lead_processes().find(|other| other.team == lead.team && !is_same_session(other)) {
        let place = other.pane.as_ref().map_or(String::new(), |pane| format!(" in pane {pane}"));
        let message = format!("cannot lead {}: another session does{place}, pid {}", lead.team, other.pid);
        return Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
            .with_help(format!("there: teamctl lead --release -t {}", lead.team)));
    }
    if let Some(lead_session) = context.state.lead_sessions.get_mut(&lead.team) {
        // The next program in the terminal session that sends a hook report becomes the lead.
        lead_session.hook_state = HookState::default();
    } else {
        context.state.has_roster_changed = true;
        let lead_session = LeadSession::new(lead);
        context.effects.push(lead_session.watch_effect());
        if let Some(team_state) = context.state.teams.get_mut(&lead_session.lead.team) {
            team_state.lead_session_ended_at = None;
        }
        context.state.lead_sessions.insert(lead_session.lead.team.clone(), lead_session);
    }
    Ok(())
}

/// Releases a team from its lead session. If the session has ended already, only clears the time at
/// which it ended, which `status` shows.
fn release_ended_or_current_lead(context: &mut Context, team: &TeamName) -> Result<(), ErrorReport> {
    let team_state = context.state.teams.get_mut(team);
    if team_state.is_some_and(|team_state| team_state.lead_session_ended_at.take().is_some()) {
        context.state.has_roster_changed = true;
        return Ok(());
    }
    release_lead(context, team)
}

/// Ends the lead session of a team. An error if there is none.
pub(crate) fn release_lead(context: &mut Context, team: &TeamName) -> Result<(), ErrorReport> {
    let no_lead_error = || {
        ErrorReport::new(ErrorKind::NotFound, format!("cannot leave {team}: no session leads it"))
            .with_help(format!("lead it from here with: teamctl lead {team}"))
    };
    let mut lead_session = context.state.lead_sessions.remove(team).ok_or_else(no_lead_error)?;
    release_long_poll(&mut lead_session.long_poll, LongPollEnd::AgentExited, &mut context.effects);
    context.effects.push(Effect::UnwatchProcess { watch: lead_session.watch_id() });
    context.state.has_roster_changed = true;
    Ok(())
}

/// Ends the lead session of a team, because its process has died. Ignored if another process leads
/// the team by now.
pub(crate) fn handle_lead_died(context: &mut Context, team: &TeamName, process: Process) {
    if context.state.lead_sessions.get(team).is_some_and(|lead_session| lead_session.process() == process) {
        release_lead(context, team).ok();
        context.effects.push(Effect::log_team(team, EventKind::LeadSessionEnded));
        context.state.notices.add_lead_session_ended(team);
        if let Some(team_state) = context.state.teams.get_mut(team) {
            team_state.lead_session_ended_at = Some(context.now.wall);
        }
    }
}

pub(crate) fn handle_lead_hook(
    context: &mut Context,
    team: &TeamName,
    report: &HookReport,
) -> Result<HookReply, ErrorReport> {
    let lead_session = context.state.lead_sessions.get_mut(team).ok_or_else(unknown_caller_error)?;
    let delivered_ids = lead_session.hook_state.delivered_ids.clone();
    let reply = HookReply { delivers_by_hook: true, delivered_ids, ..ignored_reply(lead_session.turn_since) };
    match lead_hook_session(lead_session, report) {
        HookSession::OtherProgram => return Ok(ignored_reply(lead_session.turn_since)),
        HookSession::NewSession(session) => {
            lead_session.hook_state.ancestors.clone_from(&report.ancestors);
            lead_session.lead.session_id = Some(session.clone());
            context.state.has_roster_changed = true;
            context.effects.push(Effect::File(FileJob::WriteLeadSession { team: team.clone(), session }));
        }
        HookSession::SameSession => {}
    }
    match &report.event {
        HookEvent::TurnStarted { delivered_ids, .. } => {
            if !delivered_ids.is_empty() {
                lead_session.hook_state.delivered_ids.clone_from(delivered_ids);
            }
            lead_session.turn_since = context.now.wall;
            release_long_poll(&mut lead_session.long_poll, LongPollEnd::PersonTyped, &mut context.effects);
        }
        HookEvent::TurnEnded => lead_session.long_poll.has_pending_check = false,
        _ => {}
    }
    Ok(reply)
}

pub(crate) fn hold_lead_poll(
    context: &mut Context,
    team: &TeamName,
    client: ConnId,
    hook_started_at: u64,
) -> Result<(), ErrorReport> {
    let lead_session = context.state.lead_sessions.get_mut(team).ok_or_else(unknown_caller_error)?;
    hold_long_poll(&mut lead_session.long_poll, client, hook_started_at, &mut context.effects);
    Ok(())
}

/// Wakes the lead session, because its inbox has changed.
pub(crate) fn wake_lead(context: &mut Context, team: &TeamName) {
    if let Some(lead_session) = context.state.lead_sessions.get_mut(team) {
        wake_long_poll(&mut lead_session.long_poll, &mut context.effects);
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
