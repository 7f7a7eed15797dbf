//! Kills members for a client, which gets its reply after their exits.

use crate::core::agent_process::OnExit;
use crate::core::clients_waiting_for_exits::{WaitOutcome, reply_to_finished_waiters, report_to_waiters};
use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::members::forced_termination::STOPPED_WHILE_STARTING;
use crate::core::members::mark_agents_to_suspend::cancel_suspend;
use crate::core::members::undo_failed_start::abort_start;
use crate::core::members::{decide_respawns_and_suspensions, forced_termination};
use crate::core::reply_to_client::send_reply;
use crate::core::spawn_lifecycle::{Lifecycle, StartStage};
use crate::core::state::find_team_or_member::resolve_targets;
use crate::core::state::waiting_clients::{AfterExits, ExitWaiter};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::MemberSelection;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

pub(crate) fn kill(context: &mut Context, client: ConnId, selection: &MemberSelection) {
    match resolve_targets(context.state, selection) {
        Err(error) => send_reply(context, client, Err(error)),
        Ok(ids) => {
            cancel_suspend(context.state, &ids);
            let cancelled_respawns = decide_respawns_and_suspensions::cancel_and_report(
                context,
                &selection.team,
                &selection.names,
            );
            kill_and_wait(context, ExitWaiter::new(&ids, cancelled_respawns, AfterExits::Reply(client)));
        }
    }
}

/// Kills the agents for which the client waits.
pub(crate) fn kill_and_wait(context: &mut Context, waiter: ExitWaiter) {
    let ids = waiter.pending.clone();
    context.state.exit_waiters.push(waiter);
    for id in &ids {
        forced_termination::terminate(context, id);
        abort_if_starting(context, id);
    }
    reply_to_finished_waiters(context);
}

/// Stops the start of an agent that is not known to run. Such an agent can't answer a request.
pub(crate) fn abort_if_starting(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let Lifecycle::Starting(starting) = &agent.record.lifecycle else { return };
    let (is_suspending, stage) = (starting.process.on_exit == OnExit::Suspend, starting.stage);
    // A member that is being suspended must stay able to be respawned.
    if !is_suspending {
        agent.record.lifecycle.process_mut().on_exit = OnExit::Deregister;
    }
    context.state.has_roster_changed = true;
    if stage != StartStage::Launching {
        report_to_waiters(context.state, id, STOPPED_WHILE_STARTING, WaitOutcome::Gone);
    }
    let error = ErrorReport::new(ErrorKind::Refused, "cannot spawn: it was stopped while it started")
        .with_help("it was ended by another command; start it again with: teamctl spawn NAME");
    abort_start(context, id, error);
}
