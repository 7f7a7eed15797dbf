//! What the event log tells of one member, oldest first: its lives, its turns, how the daemon stopped.

use client::event_log::EventLog;
use client::event_log::event_time;
use protocol::event::{Event, EventKind};
use protocol::name::{AgentName, TeamName};
use protocol::payload::IdleReason;

/// One member's story, and the daemon's.
#[derive(Debug, Default)]
pub(super) struct MemberHistory(Vec<Event>);

/// What besides a member's own name is looked for: the daemon's life, the team's and those of others.
const SPAWN_EVENTS: [&str; 5] =
    ["\"daemon_", "\"team_", "\"member_spawned\"", "\"member_spawn_failed\"", "\"member_exited\""];

/// Its story, and who else was ever told of in that team.
pub(super) fn member_history(
    log: &EventLog,
    team: &TeamName,
    name: &AgentName,
) -> (MemberHistory, Vec<String>) {
    let (mut events, mut names) = (Vec::new(), Vec::new());
    for event in log.events_of(name, &SPAWN_EVENTS) {
        match (&event.team, &event.member) {
            // One of that name that is gone is another's story.
            (Some(of), _)
                if of == team && matches!(event.kind, EventKind::TeamCreated | EventKind::TeamDeleted) =>
            {
                events.retain(|event: &Event| event.team.is_none());
                names.clear();
            }
            (None, _) => events.push(event),
            (Some(of), Some(agent)) if of == team && agent == name => events.push(event),
            (Some(of), Some(agent))
                if of == team && is_spawn_event(&event.kind) && !names.contains(&agent.to_string()) =>
            {
                names.push(agent.to_string());
            }
            _ => {}
        }
    }
    (MemberHistory(events), names)
}

fn is_spawn_event(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::MemberSpawned { .. }
            | EventKind::MemberSpawnFailed { .. }
            | EventKind::MemberExited { .. }
    )
}

impl MemberHistory {
    #[cfg(test)]
    pub(super) fn from_events(events: Vec<Event>) -> MemberHistory {
        MemberHistory(events)
    }

    pub(super) fn has_spawned(&self) -> bool {
        self.0.iter().any(|event| is_spawn_event(&event.kind))
    }

    /// The newest that `of` finds something in, and when it was.
    pub(super) fn find_last<'e, T>(&'e self, of: impl Fn(&'e EventKind) -> Option<T>) -> Option<(T, u64)> {
        self.0.iter().rev().find_map(|event| Some((of(&event.kind)?, event_time(event))))
    }

    /// How its last life ended, or that it could not be started.
    pub(super) fn end(&self) -> Option<(String, u64)> {
        self.find_last(|what| match what {
            EventKind::MemberExited { description: how, .. } => Some(Some(how.clone())),
            EventKind::MemberSpawnFailed { reason: why } => Some(Some(why.clone())),
            EventKind::MemberSpawned { .. } => Some(None),
            _ => None,
        })
        .and_then(|(how, at)| Some((how?, at)))
    }

    /// Why it is not started again, if that is the last that was told of its lives.
    pub(super) fn respawn_refusal(&self) -> Option<String> {
        let (why, _) = self.find_last(|what| match what {
            EventKind::MemberRespawnsExhausted { reason: why } => Some(Some(why.clone())),
            EventKind::MemberSpawned { .. } => Some(None),
            _ => None,
        })?;
        why
    }

    /// How its lives ended, the latest last; at most five.
    pub(super) fn ends(&self) -> Vec<(String, u64)> {
        let ends = self.0.iter().filter_map(|event| match &event.kind {
            EventKind::MemberExited { description: how, .. } => Some((how.clone(), event_time(event))),
            _ => None,
        });
        let mut ends: Vec<_> = ends.collect();
        ends.split_off(ends.len().saturating_sub(5))
    }

    /// How many turns in a row have ended so, and when the first did.
    pub(super) fn turns_in_row(&self, reason: IdleReason) -> Option<(usize, u64)> {
        let turns = self.0.iter().rev().filter_map(|event| match &event.kind {
            EventKind::MemberIdle { reason } => Some((*reason, event_time(event))),
            // A life begins anew.
            EventKind::MemberSpawned { .. } => Some((None, 0)),
            _ => None,
        });
        let row: Vec<u64> = turns.take_while(|(ended, _)| *ended == Some(reason)).map(|(_, at)| at).collect();
        Some((row.len(), *row.last()?))
    }
}
