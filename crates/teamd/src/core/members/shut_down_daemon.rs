//! The shutdown of the daemon with all its agents: asks the agents to shut down, terminates those
//! that do not approve, and then ends the daemon.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::create_worktree::cancel_all_setups;
use crate::core::members::decide_respawns_and_suspensions;
use crate::core::members::mark_agents_to_suspend::suspend_on_exit;
use crate::core::members::shutdown_requests::{ShutdownTerms, request_and_wait};
use crate::core::state::core_state::DaemonShutdown;
use crate::core::state::waiting_clients::{AfterExits, ExitWaiter};
use crate::core::state_time_and_effects_of_one_event::Context;
use std::collections::BTreeSet;

/// Shuts down all agents, terminates those that do not approve, and then ends the daemon.
pub(crate) fn shut_down_daemon(context: &mut Context, client: ConnId, mode: DaemonShutdown) {
    context.state.daemon_shutdown = mode;
    cancel_all_setups(context);
    let stopped_respawns = decide_respawns_and_suspensions::stop_respawns(context);
    context.state.has_roster_changed = true;
    // The agents of teams that were deleted are included.
    let living = context.state.agents.values().filter(|agent| !agent.record.lifecycle.has_failed_cleanup());
    let ids: BTreeSet<SpawnId> = living.map(|agent| agent.record.spawn_id.clone()).collect();
    if mode == DaemonShutdown::Suspend {
        suspend_on_exit(context.state, &ids);
    }
    let terms = ShutdownTerms::forced("teamd is going down", DOWN_GRACE);
    request_and_wait(
        context,
        ExitWaiter::new(&ids, stopped_respawns, AfterExits::StopDaemon(client)),
        &terms,
    );
}

/// How long an agent may take to answer a shutdown request when the daemon shuts down, in
/// milliseconds.
const DOWN_GRACE: u64 = 10_000;
