//! Reports and long polls of the hooks that agents' programs run. A long poll is a call that the
//! daemon answers only when there may be work for the program.
//!
//! A hook first reads the files itself, and starts a long poll if it finds nothing. A message can
//! arrive between these two steps. So the daemon remembers each wake of an agent that has no long
//! poll, and answers the next long poll of that agent at once.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::hold_and_release_long_polls::{hold_long_poll, release_long_poll, release_reply};
use crate::core::ignore_hooks_of_nested_sessions::{
    HookSession, agent_hook_session, ignored_reply, unknown_caller_error,
};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::lead_session;
use crate::core::members::plan_approval_respawn;
use crate::core::pane_labels::update_label;
use crate::core::panes::program_dialogs::{forget_dialog, report_dialog};
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::{AgentRecord, ApprovalDelivery, PromptDelivery};
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use crate::core::turns::apply_reported_turns_and_activity;
use protocol::control_socket::{
    Activity, HookEvent, HookReply, HookReport, LongPollEnd, LongPollRequest, Reply, TurnStatus,
};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_message_payload::IdleReason;

/// Handles the report of a hook that belongs to an agent or to a lead session.
pub(crate) fn handle_hook_report(
    context: &mut Context,
    client: ConnId,
    token: Option<&str>,
    report: HookReport,
) {
    let result = match &report.leads_team {
        Some(team) => lead_session::handle_lead_hook(context, team, &report),
        None => handle_agent_hook(context, token, report),
    };
    match result {
        // The reply waits for the roster, so that the next daemon knows what the hook reported.
        Ok(reply) if context.state.has_roster_changed => {
            context.effects.push(Effect::File(FileJob::ReplyWhenSaved {
                client,
                reply: Box::new(Reply::ReportHook(reply)),
            }));
        }
        result => send_reply(context, client, result.map(Reply::ReportHook)),
    }
}

fn handle_agent_hook(
    context: &mut Context,
    token: Option<&str>,
    report: HookReport,
) -> Result<HookReply, ErrorReport> {
    let id = agent_of_token(context.state, token)?;
    let agent = context.state.agents.get_mut(&id).ok_or_else(unknown_caller_error)?;
    match agent_hook_session(&agent.record, &report) {
        HookSession::OtherProgram => return Ok(ignored_reply(agent.activity_since)),
        HookSession::NewSession(session) => {
            // The next spawn of the member will resume this session.
            agent.record.respawn.session = Some(session.clone());
            agent.record.session = Some(session);
            agent.record.hook_state.ancestors = report.ancestors;
            context.state.has_roster_changed = true;
        }
        HookSession::SameSession => {}
    }
    agent.has_reported_activity = true;
    let mut reply = build_reply(agent);
    apply_hook_event(context, &id, report.event.with_short_texts(), &mut reply);
    match report.usage {
        Some(usage) if usage.session_id == report.session_id => budget::add_usage(context, &id, usage),
        Some(_) => budget::refuse_usage(context, &id, "it is of another session than the hook's"),
        None => {}
    }
    Ok(reply)
}

fn apply_hook_event(context: &mut Context, id: &SpawnId, event: HookEvent, reply: &mut HookReply) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    match event {
        // The program waits for input, because it was started without a prompt in its arguments.
        HookEvent::SessionStarted
            if agent.turn.is_none() && agent.record.prompt_delivery == PromptDelivery::Message =>
        {
            let turn = next_turn_state(agent, Activity::Idle, String::new(), context.now);
            apply_reported_turns_and_activity::apply_turn_state(context, id, Some(turn));
        }
        HookEvent::SessionStarted | HookEvent::SessionEnded => {}
        HookEvent::TurnStarted { summary, delivered_ids } => {
            if !delivered_ids.is_empty() {
                agent.record.hook_state.delivered_ids = delivered_ids;
                context.state.has_roster_changed = true;
            }
            start_turn(context, id, summary);
        }
        HookEvent::PromptRead => {
            acknowledge_prompt(&mut agent.record);
            context.state.has_roster_changed = true;
        }
        HookEvent::TurnEnded => {
            context.state.has_roster_changed |= forget_dialog(agent, &mut context.effects);
            context.state.has_roster_changed |= agent.record.hook_state.task.take().is_some();
            end_turn(agent, reply);
        }
        HookEvent::DialogShown { text } => record_dialog(context, id, text),
    }
}

fn end_turn(agent: &mut Agent, reply: &mut HookReply) {
    // An agent whose plan was approved is ended and respawned, but not while its hook writes a
    // file. If the hook has delivered messages, it now marks them as read in the inbox, and the
    // agent is ended when the hook starts its next long poll. If the hook has delivered none, the
    // agent can be ended now.
    if !reply.delivers_by_hook && reply.delivered_ids.is_empty() {
        plan_approval_respawn::end_grace(agent);
    }
    agent.long_poll.has_pending_check = false;
    let was_reported = std::mem::replace(&mut agent.long_poll.has_reported_turn_end, true);
    reply.is_first_report = !was_reported && agent.activity != Activity::Idle;
}

/// Records that hooks have marked as read the messages that the program got in its arguments.
fn acknowledge_prompt(record: &mut AgentRecord) {
    if record.prompt_delivery == PromptDelivery::InArguments {
        record.prompt_delivery = PromptDelivery::Acknowledged;
    }
    record.approval_delivery = ApprovalDelivery::Message;
}

/// Records the dialog at which a program waits, and reports it once.
fn record_dialog(context: &mut Context, id: &SpawnId, text: String) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    if agent.record.hook_state.dialog.as_ref() == Some(&text) {
        return;
    }
    agent.record.hook_state.dialog = Some(text.clone());
    agent.is_capture_outdated = true;
    context.state.has_roster_changed = true;
    context.effects.extend(update_label(agent));
    report_dialog(context, id, &text);
}

/// Records that a turn has started, and ends the long poll of the program's hooks.
///
/// A turn that is recorded already is not recorded again. Two hooks can report the same turn. A
/// hook can also report a turn that began before the daemon was restarted. The daemon recognizes
/// that turn by its task, which the roster keeps until the turn ends.
fn start_turn(context: &mut Context, id: &SpawnId, summary: String) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    context.state.has_roster_changed |= forget_dialog(agent, &mut context.effects);
    release_long_poll(&mut agent.long_poll, LongPollEnd::PersonTyped, &mut context.effects);
    let is_turn_running =
        agent.activity == Activity::Active && !agent.long_poll.has_reported_turn_end && agent.turn.is_some();
    let turn = next_turn_state(agent, Activity::Active, summary, context.now);
    let is_turn_of_earlier_daemon =
        agent.turn.is_none() && agent.record.hook_state.task.is_some() && turn.task().is_none();
    if !is_turn_running && !is_turn_of_earlier_daemon {
        agent.long_poll.has_reported_turn_end = false;
        let task = std::mem::replace(&mut agent.record.hook_state.task, turn.task());
        context.state.has_roster_changed |= task != turn.task();
        apply_reported_turns_and_activity::apply_turn_state(context, id, Some(turn));
    }
}

fn build_reply(agent: &Agent) -> HookReply {
    // Shortly before a respawn after a plan approval, hooks deliver no messages: the new spawn gets
    // them.
    let delivers_by_hook = !plan_approval_respawn::is_scheduled(&agent.record.lifecycle);
    let approval_in_args = agent.record.approval_delivery == ApprovalDelivery::InArguments;
    let prompt_in_args = unread_prompt(&agent.record);
    let delivered_ids = agent.record.hook_state.delivered_ids.clone();
    HookReply {
        delivers_by_hook,
        holds_turns: agent.no_contact_since.is_some(),
        turn_started_at: agent.activity_since,
        is_first_report: false,
        task: agent.record.hook_state.task,
        prompt_in_args,
        approval_in_args,
        delivered_ids,
    }
}

/// The first prompt, if the program got it in its arguments and the inbox still has it as unread. A
/// hook must then mark it as read.
fn unread_prompt(record: &AgentRecord) -> Option<String> {
    (record.prompt_delivery == PromptDelivery::InArguments).then(|| record.request.prompt.clone())
}

fn next_turn_state(agent: &Agent, activity: Activity, summary: String, now: Now) -> TurnStatus {
    let number = agent.turn.as_ref().map_or(0, |turn| turn.turn_number);
    let is_active = activity == Activity::Active;
    TurnStatus {
        activity,
        since: now.wall,
        turn_number: if is_active { number + 1 } else { number },
        summary,
        pid: None,
        idle_reason: (!is_active && agent.long_poll.has_reported_turn_end).then_some(IdleReason::Available),
        session_id: agent.record.session.clone(),
        usage: None,
        shutdown_requested: false,
        pause: agent.no_contact_pause(),
        // The program itself keeps mode and plan.
        mode: agent.turn.as_ref().and_then(|turn| turn.mode),
        plan_stage: agent.turn.as_ref().and_then(|turn| turn.plan_stage.clone()),
    }
}

/// Starts the long poll of a hook that found no messages.
pub(crate) fn start_long_poll(
    context: &mut Context,
    client: ConnId,
    token: Option<&str>,
    request: &LongPollRequest,
) {
    let result = match &request.leads_team {
        Some(team) => lead_session::hold_lead_poll(context, team, client, request.hook_started_at),
        None => agent_of_token(context.state, token)
            .map(|id| start_agent_long_poll(context, &id, client, request.hook_started_at)),
    };
    if let Err(error) = result {
        send_reply(context, client, Err(error));
    }
}

/// Starts the long poll of a member's hook. The poll ends at once if there is work already.
fn start_agent_long_poll(context: &mut Context, id: &SpawnId, client: ConnId, hook_started_at: u64) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    agent.has_reported_activity = true;
    context.state.has_roster_changed |= forget_dialog(agent, &mut context.effects);
    if plan_approval_respawn::is_scheduled(&agent.record.lifecycle) {
        plan_approval_respawn::end_grace(agent);
        return context.effects.push(release_reply(client, LongPollEnd::AgentExited));
    }
    // Work that waits for contact ends no long poll.
    let waits_for_contact = agent.no_contact_since.is_some() && agent.long_poll.has_pending_check;
    agent.long_poll.has_pending_check &= !waits_for_contact;
    let is_held = hold_long_poll(&mut agent.long_poll, client, hook_started_at, &mut context.effects);
    agent.long_poll.has_pending_check |= waits_for_contact;
    let team = agent.record.request.team.clone();
    // A hook starts a long poll only after it has found no work in the files. So the agent is idle
    // now, even if the long poll was answered at once.
    if agent.activity == Activity::Active || agent.turn.is_none() {
        agent.long_poll.has_reported_turn_end = true;
        let turn = next_turn_state(agent, Activity::Idle, String::new(), context.now);
        apply_reported_turns_and_activity::apply_turn_state(context, id, Some(turn));
    } else if is_held && agent.offered_task.is_none() {
        // A task may have been added while the hook read the files.
        schedule_task_scan(context, &team);
    }
}

/// Ends the long poll of a hook that was killed or gave up.
pub(crate) fn drop_long_poll(state: &mut State, conn: ConnId) {
    let agents = state.agents.values_mut().map(|agent| &mut agent.long_poll);
    for long_poll in agents.chain(state.lead_sessions.values_mut().map(|session| &mut session.long_poll)) {
        long_poll.waiting.take_if(|client| *client == conn);
    }
}

/// The agent that the token identifies. An error if the token is unknown or the agent has exited.
fn agent_of_token(state: &State, token: Option<&str>) -> Result<SpawnId, ErrorReport> {
    state.agent_by_token(token).map(|agent| agent.record.spawn_id.clone()).ok_or_else(unknown_caller_error)
}
