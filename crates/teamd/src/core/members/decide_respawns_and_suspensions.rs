//! Pending respawns. The restart policy decides whether and when a member is respawned after a
//! failure. The delay before the respawn (the backoff) doubles with each failure, up to five
//! minutes. After too many failures in an hour the member is no longer respawned. A member that was
//! killed, or asked to shut down, is not respawned either.
//!
//! Suspended members are also kept as pending respawns. They keep their tasks, worktrees and
//! environments until `teamctl up --resume` respawns them.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::exit_record::{ExitOutcome, ExitRecord, ReportTo};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::roster::data_for_next_spawn::{PendingRespawn, RespawnRecord, RespawnStart};
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::state::core_state::{DaemonShutdown, State};
use crate::core::state::taken_and_free_member_names::is_of_member;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::RestartPolicy;
use protocol::control_socket::{AgentExit, PastMember};
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::num::NonZeroU16;

/// The first backoff, in milliseconds. It doubles with each failure that still counts.
const INITIAL_BACKOFF: u64 = 500;
/// The longest backoff, in milliseconds.
const MAX_BACKOFF: u64 = 300_000;
/// How long a failure counts, in milliseconds.
const FAILURE_WINDOW: u64 = 3_600_000;
/// The description of a shutdown that found the member without an agent.
const BETWEEN_SPAWNS: &str = "it was between two spawns";
/// After how long a respawn is tried again if the member's name is not free, in milliseconds.
pub(crate) const NAME_BUSY_RETRY: u64 = 1_000;

/// What follows the exit of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextSpawn {
    /// The restart policy does not respawn the member.
    NoRespawn,
    Respawn {
        attempt: u32,
        delay_ms: u64,
    },
    /// The member's spawns have failed too often. The text says how often.
    RespawnsExhausted(String),
    /// The member waits for a client to resume it.
    Suspended,
}

impl NextSpawn {
    /// The sentence that tells the lead what follows the exit. `None` if nothing follows.
    pub(crate) fn describe_for_lead(&self, team: &TeamName) -> Option<String> {
        match self {
            NextSpawn::NoRespawn => None,
            NextSpawn::Respawn { delay_ms, .. } => Some(format!("it is started again in {delay_ms} ms")),
            NextSpawn::RespawnsExhausted(reason) => Some(format!("it is not started again: {reason}")),
            NextSpawn::Suspended => {
                Some(format!("it is suspended; resume it with: teamctl up --resume -t {team}"))
            }
        }
    }

    /// What `status` shows of a member whose agent has exited, until the member is spawned again.
    pub(crate) fn past_member(&self, record: &AgentRecord, exit: &ExitRecord) -> PastMember {
        PastMember {
            name: record.request.name.clone(),
            outcome: exit.outcome.as_str().to_owned(),
            description: exit.description.clone(),
            ended_at: exit.ended_at,
            respawns_at: match self {
                NextSpawn::Respawn { delay_ms, .. } => Some(exit.ended_at + delay_ms),
                NextSpawn::NoRespawn | NextSpawn::RespawnsExhausted(_) | NextSpawn::Suspended => None,
            },
            is_suspended: *self == NextSpawn::Suspended,
            respawns_exhausted_reason: match self {
                NextSpawn::RespawnsExhausted(reason) => Some(reason.clone()),
                NextSpawn::NoRespawn | NextSpawn::Respawn { .. } | NextSpawn::Suspended => None,
            },
            usage: record.usage(),
        }
    }

    /// The notice after a respawn that failed to start. `None` if another respawn follows.
    pub(crate) fn notice(&self) -> Option<NoticeKind> {
        match self {
            NextSpawn::NoRespawn | NextSpawn::RespawnsExhausted(_) => Some(NoticeKind::Exited),
            NextSpawn::Suspended => Some(NoticeKind::Suspended),
            NextSpawn::Respawn { .. } => None,
        }
    }

    fn event_kind(&self) -> Option<EventKind> {
        match self {
            NextSpawn::NoRespawn => None,
            NextSpawn::Respawn { attempt, delay_ms } => {
                Some(EventKind::MemberRespawnScheduled { attempt: *attempt, delay_ms: *delay_ms })
            }
            NextSpawn::RespawnsExhausted(reason) => {
                Some(EventKind::MemberRespawnsExhausted { reason: reason.clone() })
            }
            NextSpawn::Suspended => Some(EventKind::MemberSuspended),
        }
    }
}

/// Schedules a respawn after a failure, if the restart policy allows another.
pub(crate) fn respawn_after_failure(context: &mut Context, record: &AgentRecord) -> NextSpawn {
    let RestartPolicy::OnFailure(max) = record.request.restart else { return NextSpawn::NoRespawn };
    if !record.can_respawn() || context.state.daemon_shutdown.is_in_progress() {
        return NextSpawn::NoRespawn;
    }
    let max_failures = max.map_or(RestartPolicy::DEFAULT_MAX, NonZeroU16::get);
    let mut respawn = RespawnRecord { follows_plan_approval: false, ..record.respawn.clone() };
    respawn.failed_at.retain(|failed_at| context.now.wall.saturating_sub(*failed_at) < FAILURE_WINDOW);
    respawn.failed_at.push(context.now.wall);
    let next_spawn = next_attempt(&respawn, max_failures);
    context.effects.extend(next_spawn.event_kind().map(|kind| Effect::log_member(record, kind)));
    if let NextSpawn::Respawn { delay_ms, .. } = next_spawn {
        context.state.pending_respawns.push(PendingRespawn {
            request: record.request.clone(),
            respawn,
            respawn_at: context.now.wall + delay_ms,
            start: RespawnStart::At(context.now.mono + delay_ms),
        });
        context.state.has_roster_changed = true;
    }
    next_spawn
}

/// Suspends the member, and forgets its failures. `NoRespawn` if the member can't be respawned.
pub(crate) fn suspend(context: &mut Context, record: &AgentRecord) -> NextSpawn {
    if !record.can_respawn() {
        return NextSpawn::NoRespawn;
    }
    context.state.pending_respawns.push(PendingRespawn {
        request: record.request.clone(),
        respawn: RespawnRecord {
            failed_at: Vec::new(),
            follows_plan_approval: false,
            ..record.respawn.clone()
        },
        respawn_at: context.now.wall,
        start: RespawnStart::WhenResumed,
    });
    context.state.has_roster_changed = true;
    context.effects.extend(NextSpawn::Suspended.event_kind().map(|kind| Effect::log_member(record, kind)));
    NextSpawn::Suspended
}

/// Stops the pending respawns, because the daemon shuts down. If the shutdown suspends agents,
/// members with a pending respawn are suspended too. Otherwise their respawns are cancelled.
/// Members that are suspended already stay suspended. Returns an entry for each stopped respawn,
/// for the reply to the client.
pub(crate) fn stop_respawns(context: &mut Context) -> Vec<AgentExit> {
    let pending = context.state.pending_respawns.iter().filter(|pending| !pending.is_suspended());
    let requests = pending.map(|pending| &pending.request);
    let stopped: Vec<_> = requests.map(|request| (request.team.clone(), request.name.clone())).collect();
    if context.state.daemon_shutdown == DaemonShutdown::Suspend {
        context
            .state
            .pending_respawns
            .iter_mut()
            .filter(|pending| !pending.is_suspended())
            .for_each(suspend_pending);
        for past_member in context.state.teams.values_mut().flat_map(|team| &mut team.past_members) {
            past_member.is_suspended |= past_member.respawns_at.take().is_some();
        }
        return stopped.into_iter().map(|(team, name)| exit_entry(&team, name, BETWEEN_SPAWNS)).collect();
    }
    stopped
        .into_iter()
        .flat_map(|(team, name)| cancel_and_report(context, &team, &[name.to_string()]))
        .collect()
}

/// Sets when the member is respawned, for `status`. `None`: the member is suspended.
pub(crate) fn update_past_member(
    state: &mut State,
    team: &TeamName,
    name: &MemberName,
    respawns_at: Option<u64>,
) {
    let past_members = state.teams.get_mut(team).into_iter().flat_map(|team| &mut team.past_members);
    for past_member in past_members.filter(|past_member| past_member.name == *name) {
        (past_member.respawns_at, past_member.is_suspended) = (respawns_at, respawns_at.is_none());
    }
}

pub(crate) fn suspend_pending(pending: &mut PendingRespawn) {
    pending.start = RespawnStart::WhenResumed;
    pending.respawn.failed_at.clear();
}

/// After a restart of the daemon: lets pending respawns start at once, without waiting for the rest
/// of the backoff (the delay after a failure). Suspended members stay suspended.
pub(crate) fn restore_deadlines(state: &mut State, now: Now) {
    for pending in state.pending_respawns.iter_mut().filter(|pending| !pending.is_suspended()) {
        pending.start = RespawnStart::At(now.mono);
    }
}

fn next_attempt(respawn: &RespawnRecord, max_failures: u16) -> NextSpawn {
    let failures = respawn.failed_at.len();
    if failures > usize::from(max_failures) {
        return NextSpawn::RespawnsExhausted(format!("it failed {failures} times in an hour"));
    }
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let delay_ms = INITIAL_BACKOFF.saturating_mul(2_u64.saturating_pow(doublings)).min(MAX_BACKOFF);
    NextSpawn::Respawn { attempt: respawn.respawns + 1, delay_ms }
}

/// Schedules another respawn for a member whose last respawn was interrupted by the end of the
/// daemon. The interrupted respawn does not count as a failure.
pub(crate) fn retry_interrupted_start(context: &mut Context, id: &SpawnId) {
    let Some(record) = context.state.agents.get(id).map(|agent| agent.record.clone()) else { return };
    if !record.is_respawn() {
        return;
    }
    // Until the respawn starts, `status` must not show the member as gone for good.
    let exit = ExitRecord {
        description: "its start was cut short with teamd".to_owned(),
        outcome: ExitOutcome::Failed,
        next_step: None,
        ended_at: context.now.wall,
        report_to: ReportTo::Nobody,
    };
    let respawns = record.respawn.respawns - 1;
    let next_spawn = NextSpawn::Respawn { attempt: respawns + 1, delay_ms: 0 };
    context.state.add_past_member(&record.request.team, next_spawn.past_member(&record, &exit));
    context.state.pending_respawns.push(PendingRespawn {
        request: record.request.clone(),
        respawn: RespawnRecord { respawns, ..record.respawn.clone() },
        respawn_at: context.now.wall,
        start: RespawnStart::At(context.now.mono),
    });
    context.state.has_roster_changed = true;
}

/// Lets the pending respawn start that waited for this name to be free.
pub(crate) fn start_respawn_of_free_name(state: &mut State, team: &TeamName, name: &MemberName) {
    let waits_for_name = |pending: &&mut PendingRespawn| {
        pending.start == RespawnStart::WhenNameFree && is_of_member(pending, team, name.as_str())
    };
    state
        .pending_respawns
        .iter_mut()
        .filter(waits_for_name)
        .for_each(|pending| pending.start = RespawnStart::At(0));
}

/// Cancels the pending respawns of the members `names`, or of the whole team if `names` is empty.
/// Returns the names of the members whose respawns were cancelled.
pub(crate) fn cancel_respawns(context: &mut Context, team: &TeamName, names: &[String]) -> Vec<MemberName> {
    let is_selected = |pending: &PendingRespawn| {
        pending.request.team == *team
            && (names.is_empty() || names.iter().any(|name| is_of_member(pending, team, name)))
    };
    let (cancelled, rest): (Vec<_>, Vec<_>) =
        std::mem::take(&mut context.state.pending_respawns).into_iter().partition(is_selected);
    context.state.pending_respawns = rest;
    context.state.has_roster_changed |= !cancelled.is_empty();
    let cancelled: Vec<MemberName> =
        cancelled.into_iter().map(|pending| pending.request.name.clone()).collect();
    if let Some(team) = context.state.teams.get_mut(team) {
        let past_members =
            team.past_members.iter_mut().filter(|past_member| cancelled.contains(&past_member.name));
        past_members
            .for_each(|past_member| (past_member.respawns_at, past_member.is_suspended) = (None, false));
    }
    for name in &cancelled {
        let reason = "it was ended, or its name was taken".to_owned();
        context.effects.push(Effect::Log(Event::for_member(
            team,
            name,
            EventKind::MemberRespawnsExhausted { reason },
        )));
    }
    if !cancelled.is_empty() {
        // A task scan logs that the tasks which these members had in progress are abandoned.
        schedule_task_scan(context, team);
    }
    cancelled
}

/// Cancels pending respawns. Returns an entry of the shutdown reply for each.
pub(crate) fn cancel_and_report(context: &mut Context, team: &TeamName, names: &[String]) -> Vec<AgentExit> {
    let description = format!("{BETWEEN_SPAWNS}, and is not started again");
    cancel_respawns(context, team, names)
        .into_iter()
        .map(|name| exit_entry(team, name, &description))
        .collect()
}

fn exit_entry(team: &TeamName, name: MemberName, description: &str) -> AgentExit {
    AgentExit {
        name,
        team: team.clone(),
        description: description.to_owned(),
        has_exited: true,
        cleanup_error: None,
        is_suspended: false,
        request_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_respawn(failures: usize) -> RespawnRecord {
        RespawnRecord { failed_at: vec![0; failures], respawns: 7, ..RespawnRecord::default() }
    }

    #[test]
    fn delays_double_up_to_a_limit_until_no_respawn_follows() {
        let delay_ms = |failures, max| match next_attempt(&new_respawn(failures), max) {
            NextSpawn::Respawn { delay_ms, .. } => Some(delay_ms),
            _ => None,
        };
        let seconds: Vec<_> = (2..=13).map(|failures| delay_ms(failures, 12).map(|ms| ms / 1_000)).collect();
        let expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map(Some);
        assert_eq!((&seconds[..11], seconds[11]), (&expected[..], None));
        assert_eq!(
            (delay_ms(1, 1), delay_ms(2, 1), delay_ms(90, u16::MAX)),
            (Some(500), None, Some(MAX_BACKOFF))
        );
        assert_eq!(next_attempt(&new_respawn(1), 12), NextSpawn::Respawn { attempt: 8, delay_ms: 500 });
    }
}
