//! Shutdown requests to members, and the members' answers. An agent that gets a shutdown request
//! may approve or reject it. If the request is forced, an agent that does not answer in time is
//! terminated.
//!
//! An unanswered shutdown request is sent again under a new id, because older versions of Claude
//! Code lose some messages. An answer counts only if it comes from the agent that was asked, and
//! from the same spawn.

use crate::core::agent_process::OnExit;
use crate::core::clients_waiting_for_exits::{
    WaitOutcome, reply_exits, reply_to_finished_waiters, report_to_waiters,
};
use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::{Effect, Effects, Wake};
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::ShutdownAnswer;
use crate::core::members::forced_termination::STOPPED_WHILE_STARTING;
use crate::core::members::kill_members_for_client::abort_if_starting;
use crate::core::members::mark_agents_to_suspend::{cancel_suspend, is_suspending, suspend_on_exit};
use crate::core::members::{decide_respawns_and_suspensions, forced_termination};
use crate::core::pane_labels::update_label;
use crate::core::reply_to_client::send_reply;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::resolve_targets;
use crate::core::state::waiting_clients::{AfterExits, ExitWaiter};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{
    PendingShutdown, ShutdownRequests, StopCause, StopStage, Stopping, WithoutApproval,
};
use protocol::control_socket::{AgentExit, ShutdownMembersRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

/// After how long an unanswered shutdown request is sent again, in milliseconds.
const RESEND_INTERVAL: u64 = 10_000;
/// How long an agent that approved its shutdown may take to end by itself, in milliseconds.
const APPROVED_GRACE: u64 = 5_000;
/// How long an agent may take to answer a shutdown request after the daemon restarted, in
/// milliseconds.
const RESUMED_GRACE: u64 = 30_000;

/// How long an agent may take to answer a shutdown request when its team's budget is exhausted, in
/// milliseconds. The time lets the agent end its present turn.
const BUDGET_GRACE: u64 = 60_000;

/// The content of a shutdown request, and what follows without an approval.
pub(crate) struct ShutdownTerms {
    reason: Option<String>,
    /// How long the agent may take to answer, in milliseconds.
    grace_ms: u64,
    without_approval: WithoutApproval,
}

impl ShutdownTerms {
    pub(crate) fn forced(reason: &str, grace_ms: u64) -> ShutdownTerms {
        ShutdownTerms {
            reason: Some(reason.to_owned()),
            grace_ms,
            without_approval: WithoutApproval::Terminate,
        }
    }
}

pub(crate) fn request_member_shutdown(
    context: &mut Context,
    client: ConnId,
    request: &ShutdownMembersRequest,
) {
    match resolve_targets(context.state, &request.targets) {
        Err(error) => send_reply(context, client, Err(error)),
        Ok(ids) => {
            cancel_suspend(context.state, &ids);
            let cancelled_respawns = decide_respawns_and_suspensions::cancel_and_report(
                context,
                &request.targets.team,
                &request.targets.names,
            );
            let terms = ShutdownTerms {
                reason: request.reason.clone(),
                grace_ms: request.grace_ms,
                without_approval: if request.force {
                    WithoutApproval::Terminate
                } else {
                    WithoutApproval::KeepRunning
                },
            };
            if request.no_wait {
                let requested = ids.iter().map(|id| request_without_wait(context, id, &terms));
                let exits =
                    cancelled_respawns.into_iter().chain(requested.flatten().collect::<Vec<_>>()).collect();
                return context.effects.push(reply_exits(client, exits));
            }
            request_and_wait(
                context,
                ExitWaiter::new(&ids, cancelled_respawns, AfterExits::Reply(client)),
                &terms,
            );
        }
    }
}

/// Requests the shutdown of members, to suspend them. No client waits for it.
pub(crate) fn request_suspension(context: &mut Context, ids: &BTreeSet<SpawnId>, reason: &str) {
    let terms = ShutdownTerms::forced(reason, BUDGET_GRACE);
    suspend_on_exit(context.state, ids);
    for id in ids {
        request_shutdown(context, id, &terms);
    }
}

/// Requests the shutdown of an agent for a client that does not wait for the exit. Returns the
/// agent's entry for the reply to the client. `None` for an unknown agent.
fn request_without_wait(context: &mut Context, id: &SpawnId, terms: &ShutdownTerms) -> Option<AgentExit> {
    let record = &context.state.agents.get(id)?.record;
    let (name, team) = (record.request.name.clone(), record.request.team.clone());
    request_shutdown(context, id, terms);
    let agent = context.state.agents.get(id).filter(|agent| !agent.record.lifecycle.has_failed_cleanup());
    let (description, has_exited) =
        if agent.is_some() { ("asked", false) } else { (STOPPED_WHILE_STARTING, true) };
    let request_id =
        agent.and_then(|agent| agent.record.lifecycle.shutdown_ids().last()).map(ToString::to_string);
    Some(AgentExit {
        name,
        team,
        description: description.to_owned(),
        has_exited,
        cleanup_error: None,
        is_suspended: false,
        request_id,
    })
}

/// Requests the shutdown of agents for a client that waits for their exits. The client is stored
/// before the first request, because the request may immediately end an agent that is still
/// starting. The client must learn of that exit too.
pub(crate) fn request_and_wait(context: &mut Context, waiter: ExitWaiter, terms: &ShutdownTerms) {
    let ids = waiter.pending.clone();
    context.state.exit_waiters.push(waiter);
    for id in &ids {
        request_shutdown(context, id, terms);
    }
    reply_to_finished_waiters(context);
}

/// Requests the shutdown of an agent. If the agent has not answered an earlier request yet, it gets
/// no second message. The earlier of the two deadlines then holds for both requests. If one of the
/// two requests is forced, the agent is terminated at this deadline.
fn request_shutdown(context: &mut Context, id: &SpawnId, terms: &ShutdownTerms) {
    let deadline = context.now.mono.saturating_add(terms.grace_ms);
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    match &mut agent.record.lifecycle {
        Lifecycle::Starting(_) => return abort_if_starting(context, id),
        Lifecycle::Running(process) => {
            let pending = PendingShutdown {
                reason: terms.reason.clone(),
                deadline,
                resend_at: context.now.mono,
                without_approval: terms.without_approval,
            };
            agent.record.lifecycle = Lifecycle::Stopping(Stopping {
                process: std::mem::take(process),
                shutdown: ShutdownRequests::default(),
                stage: StopStage::Requested(pending),
            });
        }
        Lifecycle::Stopping(stopping) => {
            context.state.has_roster_changed |= tighten_stop(stopping, terms, deadline, context.now);
            return;
        }
        Lifecycle::Exited(_) => return,
    }
    context.effects.extend(update_label(agent));
    resend_request(context, id);
}

/// Applies a further shutdown request to an agent that is already shutting down. Returns whether
/// the roster must be saved because of the request.
fn tighten_stop(stopping: &mut Stopping, terms: &ShutdownTerms, deadline: u64, now: Now) -> bool {
    match &mut stopping.stage {
        StopStage::Requested(pending) => {
            pending.without_approval = pending.without_approval.max(terms.without_approval);
            pending.deadline = pending.deadline.min(deadline);
            false
        }
        // The agent is being terminated already, for its respawn in the approved permission mode.
        // The shutdown request only cancels this respawn.
        StopStage::Terminating { cause: StopCause::PlanApprovalRespawn, .. } => {
            stopping.process.plan_approval_respawn = None;
            stopping.stage = forced_termination::termination(StopCause::Approved, now);
            true
        }
        StopStage::Approved { .. } | StopStage::Terminating { .. } => false,
    }
}

/// Sends the shutdown request to an agent, each time under a new id. The files thread skips the
/// request if the agent has not read an earlier one yet.
pub(crate) fn resend_request(context: &mut Context, id: &SpawnId) {
    let id_ms = context.state.request_ids.next(context.now.wall);
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let request = RequestId::shutdown(id_ms, &agent.record.request.name);
    let Lifecycle::Stopping(Stopping { shutdown, stage: StopStage::Requested(pending), .. }) =
        &mut agent.record.lifecycle
    else {
        return;
    };
    pending.resend_at = context.now.mono + RESEND_INTERVAL;
    let (reason, unless_unread) = (pending.reason.clone(), shutdown.ids.clone());
    shutdown.ids.push(request.clone());
    context.state.has_roster_changed = true;
    context.effects.push(Effect::log_member(
        &agent.record,
        EventKind::ShutdownRequested { request_id: request.to_string() },
    ));
    context.effects.push(shutdown_request_effect(&agent.record, request, reason, unless_unread, context.now));
}

fn shutdown_request_effect(
    record: &AgentRecord,
    request: RequestId,
    reason: Option<String>,
    unless_unread: Vec<RequestId>,
    now: Now,
) -> Effect {
    let (spawn, team, name) =
        (record.spawn_id.clone(), record.request.team.clone(), record.request.name.clone());
    Effect::File(FileJob::SendShutdownRequest {
        spawn,
        team,
        name,
        request,
        reason,
        unless_unread,
        at: now.wall,
    })
}

/// Wakes the agent once the request is in its inbox.
pub(crate) fn handle_request_sent(context: &mut Context, id: &SpawnId, result: Result<(), ErrorReport>) {
    match result {
        Ok(()) => context.effects.wake_agent(id, Wake::Needed),
        Err(error) => {
            let Some(agent) = context.state.agents.get(id) else { return };
            let message = format!("cannot ask for a shutdown: {}", error.message);
            context.effects.push(Effect::log_member(&agent.record, EventKind::Error { message }));
        }
    }
}

/// Reads the answers to shutdown requests from the lead's inbox. If the inbox changes during a
/// read, however often, one more read follows.
pub(crate) fn read_shutdown_answers(context: &mut Context, team: &TeamName) {
    let awaits_answer = |agent: &&Agent| {
        agent.record.request.team == *team && agent.record.lifecycle.awaits_shutdown_answer()
    };
    let agents = context.state.agents.values().filter(awaits_answer);
    let requests: BTreeSet<RequestId> =
        agents.flat_map(|agent| agent.record.lifecycle.shutdown_ids().to_vec()).collect();
    let Some(team_state) = context.state.teams.get_mut(team).filter(|_| !requests.is_empty()) else { return };
    if team_state.shutdown_answer_scan.try_start() {
        context.effects.push(Effect::File(FileJob::ReadShutdownAnswers { team: team.clone(), requests }));
    }
}

/// Handles the answers to shutdown requests in the lead's inbox.
pub(crate) fn handle_shutdown_answers(
    context: &mut Context,
    team: &TeamName,
    answers: Result<Vec<ShutdownAnswer>, ErrorReport>,
) {
    match answers {
        Ok(answers) => apply_answers(context, team, answers),
        Err(error) => {
            context.effects.push(Effect::log_team(team, EventKind::Error { message: error.message }));
        }
    }
    let team_state = context.state.teams.get_mut(team);
    if team_state.is_some_and(|team_state| team_state.shutdown_answer_scan.finish()) {
        read_shutdown_answers(context, team);
    }
}

fn apply_answers(context: &mut Context, team: &TeamName, answers: Vec<ShutdownAnswer>) {
    let awaits_answer = |agent: &&Agent| {
        agent.record.request.team == *team && agent.record.lifecycle.awaits_shutdown_answer()
    };
    let ids_by_name: BTreeMap<MemberName, SpawnId> = context
        .state
        .agents
        .values()
        .filter(awaits_answer)
        .map(|agent| (agent.record.request.name.clone(), agent.record.spawn_id.clone()))
        .collect();
    for answer in answers {
        if let Some(id) = ids_by_name.get(&answer.from) {
            apply_answer(context, id, answer);
        }
    }
}

/// Applies the answer of a member, unless an earlier answer has been applied already.
fn apply_answer(context: &mut Context, id: &SpawnId, answer: ShutdownAnswer) {
    let is_open = context.state.agents.get(id).is_some_and(|agent| {
        let lifecycle = &agent.record.lifecycle;
        lifecycle.awaits_shutdown_answer() && lifecycle.shutdown_ids().contains(&answer.request)
    });
    if !is_open {
        return;
    }
    match answer.rejection_reason {
        None => mark_approved(context.state, id, context.now),
        // The agent can't refuse while the daemon shuts down or the member is being suspended.
        Some(_)
            if context.state.daemon_shutdown.is_in_progress()
                || context.state.agents.get(id).is_some_and(is_suspending) =>
        {
            forced_termination::terminate(context, id);
        }
        Some(reason) => keep_running(context, id, &format!("rejected: {reason}")),
    }
}

fn mark_approved(state: &mut State, id: &SpawnId, now: Now) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Lifecycle::Stopping(stopping) = &mut agent.record.lifecycle else { return };
    stopping.stage = StopStage::Approved { deadline: now.mono + APPROVED_GRACE };
    state.has_roster_changed = true;
}

/// Continues a shutdown or termination that the last daemon began. The deadlines start anew. No
/// client waits for the exit any more, because the connections to the last daemon are lost.
pub(crate) fn recover_shutdown(agent: &mut Agent, now: Now, effects: &mut Effects) {
    if !matches!(agent.record.lifecycle, Lifecycle::Stopping(_)) {
        return;
    }
    let record: &mut AgentRecord = &mut agent.record;
    let Lifecycle::Stopping(stopping) = &mut record.lifecycle else { return };
    match &mut stopping.stage {
        StopStage::Approved { deadline } => *deadline = now.mono + APPROVED_GRACE,
        StopStage::Terminating { cause, .. } => stopping.stage = forced_termination::termination(*cause, now),
        StopStage::Requested(pending) => {
            pending.deadline = now.mono + RESUMED_GRACE;
            pending.resend_at = now.mono + RESEND_INTERVAL;
            // The last daemon may have died before it wrote the request.
            let (ids, reason) = (stopping.shutdown.ids.clone(), pending.reason.clone());
            let last_id = ids.last().cloned();
            effects.extend(last_id.map(|last_id| shutdown_request_effect(record, last_id, reason, ids, now)));
        }
    }
}

/// Lets an agent run on that has rejected its shutdown, or has not answered.
pub(crate) fn keep_running(context: &mut Context, id: &SpawnId, description: &str) {
    report_to_waiters(context.state, id, description, WaitOutcome::StillRunning);
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Stopping(stopping) = &mut agent.record.lifecycle else { return };
    let mut process = std::mem::take(&mut stopping.process);
    if process.on_exit == OnExit::Suspend {
        process.on_exit = OnExit::ApplyRestartPolicy;
    }
    agent.record.lifecycle = Lifecycle::Running(process);
    context.effects.extend(update_label(agent));
    context.effects.push(Effect::log_member(
        &agent.record,
        EventKind::ShutdownRejected { reason: description.to_owned() },
    ));
    context.state.has_roster_changed = true;
    reply_to_finished_waiters(context);
}
