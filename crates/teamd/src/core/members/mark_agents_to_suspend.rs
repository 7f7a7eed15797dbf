//! Marks agents whose members are suspended when the agents exit.

use crate::core::agent_process::OnExit;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::stop_and_exit_of_spawn::{StopCause, StopStage, Stopping};
use std::collections::BTreeSet;

/// Marks agents so that their members are suspended when the agents exit. Some agents are not
/// marked:
///
/// - An agent that can't be respawned.
/// - An agent that is ending already, by approval or by force.
/// - An agent for whose start a client waits. The start is stopped, and the client gets an error.
pub(crate) fn suspend_on_exit(state: &mut State, ids: &BTreeSet<SpawnId>) {
    for id in ids {
        let Some(agent) = state.agents.get_mut(id) else { continue };
        let on_exit = match &agent.record.lifecycle {
            Lifecycle::Stopping(Stopping {
                stage:
                    StopStage::Approved { .. }
                    | StopStage::Terminating { cause: StopCause::Approved | StopCause::Forced, .. },
                ..
            }) => continue,
            _ if !agent.record.can_respawn() => continue,
            Lifecycle::Starting(starting) if starting.reply_to.is_some() => OnExit::ApplyRestartPolicy,
            _ => OnExit::Suspend,
        };
        agent.record.lifecycle.process_mut().on_exit = on_exit;
    }
    state.has_roster_changed = true;
}

/// Undoes `suspend_on_exit`: the agents end for good.
pub(crate) fn cancel_suspend(state: &mut State, ids: &BTreeSet<SpawnId>) {
    for id in ids {
        let agent = state.agents.get_mut(id).filter(|agent| is_suspending(agent));
        state.has_roster_changed |= agent.is_some();
        agent.into_iter().for_each(|agent| {
            agent.record.lifecycle.process_mut().on_exit = OnExit::ApplyRestartPolicy;
        });
    }
}

pub(crate) fn is_suspending(agent: &Agent) -> bool {
    agent.record.lifecycle.process().on_exit == OnExit::Suspend
}
