//! Clients that wait for the exits of members, and their replies.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::roster::data_for_next_spawn::PendingRespawn;
use crate::core::state::core_state::State;
use crate::core::state::taken_and_free_member_names::is_of_member;
use crate::core::state::waiting_clients::AfterExits;
use crate::core::state_time_and_effects_of_one_event::{Context, FollowUp};
use protocol::control_socket::{AgentExit, ExitsReply, Reply};

/// What became of an agent for which a client waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// The agent has exited.
    Gone,
    /// The agent has exited, but its pane could not be closed, or the member not be deregistered.
    CleanupFailed(String),
    /// The agent runs on.
    StillRunning,
}

/// Records for each waiting client what became of an agent.
pub(crate) fn report_to_waiters(state: &mut State, id: &SpawnId, description: &str, outcome: WaitOutcome) {
    let Some(agent) = state.agents.get(id) else { return };
    let request_id = agent.record.lifecycle.shutdown_ids().first().map(ToString::to_string);
    let (name, team) = (agent.record.request.name.clone(), agent.record.request.team.clone());
    let agent_exit = AgentExit {
        name,
        team,
        description: description.to_owned(),
        has_exited: outcome != WaitOutcome::StillRunning,
        cleanup_error: match outcome {
            WaitOutcome::CleanupFailed(error) => Some(error),
            WaitOutcome::Gone | WaitOutcome::StillRunning => None,
        },
        is_suspended: false,
        request_id,
    };
    for waiter in &mut state.exit_waiters {
        if waiter.pending.remove(id) {
            waiter.exits.push(agent_exit.clone());
        }
    }
}

/// Replies to the clients that no longer wait for any agent.
pub(crate) fn reply_to_finished_waiters(context: &mut Context) {
    let (finished, pending) = std::mem::take(&mut context.state.exit_waiters)
        .into_iter()
        .partition(|waiter| waiter.pending.is_empty());
    context.state.exit_waiters = pending;
    for mut waiter in finished {
        match waiter.after.clone() {
            AfterExits::Reply(client) => context.effects.push(reply_exits(client, waiter.exits)),
            AfterExits::Delete(client, request) => {
                context.follow_ups.push_back(FollowUp::DeleteTeam { client, request });
            }
            AfterExits::StopDaemon(client) => {
                mark_suspended(context.state, &mut waiter.exits);
                context.state.final_reply_to = Some(client);
                context.effects.push(reply_exits(client, waiter.exits));
            }
        }
    }
}

/// Marks the suspended members in the reply to the client that stops the daemon.
pub(crate) fn mark_suspended(state: &State, exits: &mut [AgentExit]) {
    for exit in exits {
        let is_same_member = |pending: &PendingRespawn| {
            pending.is_suspended() && is_of_member(pending, &exit.team, exit.name.as_str())
        };
        exit.is_suspended = state.pending_respawns.iter().any(is_same_member);
    }
}

/// The effect that tells a waiting client how agents exited. The roster is saved before the reply
/// is sent. Without this, a daemon crash could leave the client with an exit that the next daemon
/// does not know.
pub(crate) fn reply_exits(client: ConnId, exits: Vec<AgentExit>) -> Effect {
    Effect::File(FileJob::ReplyWhenSaved { client, reply: Box::new(Reply::Exits(ExitsReply { exits })) })
}
