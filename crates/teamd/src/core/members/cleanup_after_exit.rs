//! The cleanup after the exit of an agent: closes the pane and deregisters the member. After that,
//! the member's name is free for another spawn. The member's worktree stays until the team is
//! deleted.

use crate::core::clients_waiting_for_exits::{WaitOutcome, reply_to_finished_waiters, report_to_waiters};
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::exit_record::{ExitOutcome, ExitRecord, ReportTo, describe_approved_exit};
use crate::core::hold_and_release_long_polls::release_long_poll;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::iterm2_jobs::Iterm2Job;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::members::decide_respawns_and_suspensions;
use crate::core::panes::hidden_panes_in_config::write_hidden_panes;
use crate::core::roster::agent_record::{AgentPane, AgentRecord};
use crate::core::schedule_scans::{schedule_request_scan_if_open, schedule_task_scan};
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state_time_and_effects_of_one_event::{Context, FollowUp};
use crate::core::stop_and_exit_of_spawn::{Cleanup, Exited, ShutdownApproval};
use protocol::control_socket::LongPollEnd;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;

/// Starts the cleanup of an agent that does not run. `exit` is `None` for an agent that never ran.
pub(crate) fn start_cleanup(context: &mut Context, id: &SpawnId, exit: Option<ExitRecord>) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let close_pane = agent.record.pane.as_ref().and_then(|pane| close_pane(id, pane));
    release_long_poll(&mut agent.long_poll, LongPollEnd::AgentExited, &mut context.effects);
    let lifecycle = &mut agent.record.lifecycle;
    let (process, shutdown) = (lifecycle.take_process(), lifecycle.take_shutdown());
    let pane_cleanup = if close_pane.is_none() { Cleanup::Done } else { Cleanup::Pending };
    *lifecycle = Lifecycle::Exited(Exited { pane_cleanup, ..Exited::new(process, shutdown, exit) });
    context.effects.push(Effect::File(FileJob::DeregisterMember { record: agent.record.clone() }));
    let team_with_hidden_pane =
        std::mem::take(&mut agent.record.is_hidden).then(|| agent.record.request.team.clone());
    context.effects.extend(close_pane);
    context.state.has_roster_changed = true;
    if let Some(team) = team_with_hidden_pane {
        context.effects.push(write_hidden_panes(context.state, &team, None));
    }
}

/// Handles the result of closing a pane. `error` is set if the pane may still be there.
pub(crate) fn handle_pane_closed(context: &mut Context, id: &SpawnId, error: Option<ErrorReport>) {
    let cleanup = if error.is_some() { Cleanup::Failed } else { Cleanup::Done };
    let failure = error.map(|error| format!("its pane is not closed yet: {}", error.message));
    finish_cleanup_step(context, id, failure, |exited| exited.pane_cleanup = cleanup);
    finish_cleanup(context, id);
}

/// Handles the result of deregistering a member. `approval` says whether the agent had approved its
/// shutdown. `error` is set if a file could not be changed.
pub(crate) fn handle_member_deregistered(
    context: &mut Context,
    id: &SpawnId,
    approval: ShutdownApproval,
    error: Option<ErrorReport>,
) {
    let Some(team) = context.state.agents.get(id).map(|agent| agent.record.request.team.clone()) else {
        return;
    };
    let cleanup = if error.is_some() { Cleanup::Failed } else { Cleanup::Done };
    if error.is_none() {
        settle_approval(context, id, approval);
    }
    let failure = error.map(|error| format!("it is still on the team: {}", error.message));
    finish_cleanup_step(context, id, failure, |exited| exited.file_cleanup = cleanup);
    finish_cleanup(context, id);
    // The member's open requests need no answer any more.
    schedule_request_scan_if_open(context, &team);
}

/// Records the result of one of the two cleanup steps: closing the pane, and deregistering the
/// member. `failure` is the reason if the step has failed. After a failure, the member's name stays
/// taken. Clients that wait for the agent's exit get their reply nevertheless, but clients that
/// wait for the name get an error.
fn finish_cleanup_step(
    context: &mut Context,
    id: &SpawnId,
    failure: Option<String>,
    set_cleanup: impl FnOnce(&mut Exited),
) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Exited(exited) = &mut agent.record.lifecycle else { return };
    set_cleanup(exited);
    let description = exited.description.clone();
    if let Some(failure) = failure {
        let name_waiters = std::mem::take(&mut exited.name_waiters);
        context
            .effects
            .push(Effect::log_member(&agent.record, EventKind::Error { message: failure.clone() }));
        report_to_waiters(context.state, id, &description, WaitOutcome::CleanupFailed(failure));
        context.follow_ups.extend(name_waiters.into_iter().map(FollowUp::RetryForName));
        reply_to_finished_waiters(context);
    }
}

/// Completes the record of an exit that happened while a shutdown request was open, and logs the
/// exit. `approval` says whether the agent had approved the request. Does nothing if no request was
/// open at the exit.
fn settle_approval(context: &mut Context, id: &SpawnId, approval: ShutdownApproval) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    if agent.record.lifecycle.exit().is_none_or(|exit| exit.report_to != ReportTo::LeadUnlessApproved) {
        return;
    }
    let Lifecycle::Exited(Exited { exit: Some(exit), description, .. }) = &mut agent.record.lifecycle else {
        return;
    };
    exit.report_to = ReportTo::Lead;
    if approval == ShutdownApproval::Given {
        exit.report_to = ReportTo::Nobody;
        exit.description = describe_approved_exit(&exit.description);
        exit.outcome = ExitOutcome::Completed;
        description.clone_from(&exit.description);
    }
    let (outcome, description) = (exit.outcome, exit.description.clone());
    let record = agent.record.clone();
    context.effects.push(exit_event(&record, outcome, &description));
    let team = context.state.teams.get_mut(&record.request.team);
    for past_member in team.into_iter().flat_map(|team| &mut team.past_members) {
        if past_member.name == record.request.name {
            outcome.as_str().clone_into(&mut past_member.outcome);
            past_member.description.clone_from(&description);
        }
    }
    context.state.has_roster_changed = true;
}

/// The event that an agent has ended.
pub(crate) fn exit_event(record: &AgentRecord, outcome: ExitOutcome, description: &str) -> Effect {
    let (outcome, description) = (outcome.as_str().to_owned(), description.to_owned());
    Effect::log_member(record, EventKind::MemberExited { outcome, description })
}

/// Retries the cleanups that have failed. If the last save of the roster has failed, the roster is
/// saved first, because the lead must not be notified of an exit that the saved roster lacks.
pub(crate) fn save_roster_and_retry_cleanups(context: &mut Context) {
    context.state.has_roster_changed |= std::mem::take(&mut context.state.has_roster_save_failed);
    for (id, agent) in &mut context.state.agents {
        if !agent.record.lifecycle.has_failed_cleanup() {
            continue;
        }
        let close_pane = agent.record.pane.as_ref().and_then(|pane| close_pane(id, pane));
        let Lifecycle::Exited(exited) = &mut agent.record.lifecycle else { continue };
        let has_failed_files = exited.file_cleanup == Cleanup::Failed;
        if has_failed_files {
            exited.file_cleanup = Cleanup::Pending;
        }
        let retry = close_pane.filter(|_| exited.pane_cleanup == Cleanup::Failed);
        if retry.is_some() {
            exited.pane_cleanup = Cleanup::Pending;
        }
        if has_failed_files {
            context.effects.push(Effect::File(FileJob::DeregisterMember { record: agent.record.clone() }));
        }
        context.effects.extend(retry);
    }
}

/// Removes the agent once both steps of its cleanup are done, which frees the member's name.
fn finish_cleanup(context: &mut Context, id: &SpawnId) {
    let lifecycle = context.state.agents.get_mut(id).map(|agent| &mut agent.record.lifecycle);
    let Some(Lifecycle::Exited(exited)) = lifecycle else { return };
    if exited.pane_cleanup != Cleanup::Done || exited.file_cleanup != Cleanup::Done {
        return;
    }
    let (description, name_waiters) = (exited.description.clone(), std::mem::take(&mut exited.name_waiters));
    report_to_waiters(context.state, id, &description, WaitOutcome::Gone);
    let record = context.state.agents.remove(id).map(|agent| agent.record);
    record.iter().for_each(|record| {
        decide_respawns_and_suspensions::start_respawn_of_free_name(
            context.state,
            &record.request.team,
            &record.request.name,
        );
    });
    let team = record.map(|record| record.request.team.clone());
    context.state.has_roster_changed = true;
    // The task scan logs the tasks that the member left in progress as abandoned. It also wakes
    // idle members for tasks that can start.
    if let Some(team) = team {
        schedule_task_scan(context, &team);
    }
    context.effects.push(Effect::CloseHandles { spawn: id.clone() });
    context.follow_ups.extend(name_waiters.into_iter().map(FollowUp::RetryForName));
    reply_to_finished_waiters(context);
}

/// The effect that closes a pane. `None` if the id of the pane can't be parsed.
pub(crate) fn close_pane(spawn: &SpawnId, pane: &AgentPane) -> Option<Effect> {
    let (spawn, owner) = (spawn.clone(), spawn.pane_tag());
    let job = match pane.iterm2_session() {
        Some(session) => PaneJob::Iterm2(Iterm2Job::Close { spawn, session }),
        None => {
            let (pane, window) = pane.pane_and_window()?;
            PaneJob::ClosePane { spawn, pane, owner, window }
        }
    };
    Some(Effect::Pane(job))
}
