//! The events of one member in the event log: its spawns, its turns, and how the daemon stopped.

use client::read_event_log::event_time;
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_message_payload::IdleReason;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeSet;

/// How many exits of a member are shown.
const MAX_SHOWN_EXITS: usize = 5;

/// `why` parses a line of the event log only if the line contains the member's name or one of these
/// texts. The texts appear in events of the daemon and of teams, and in the starts and exits of any
/// member.
pub(super) const EVENT_LINE_PATTERNS: [&str; 5] =
    ["\"daemon_", "\"team_", "\"member_spawned\"", "\"member_spawn_failed\"", "\"member_exited\""];

/// The events of a member and of the daemon.
#[derive(Debug, Default)]
pub(super) struct MemberHistory {
    /// Oldest first.
    events: Vec<Event>,
    /// The other members that the team has ever had.
    pub(super) other_members: BTreeSet<MemberName>,
}

/// How a spawn of the member ended.
#[derive(Debug)]
pub(super) struct SpawnExit {
    /// For people, such as `exit 1`.
    pub(super) description: String,
    /// In ms since the epoch. 0 if the time is not known.
    pub(super) at: u64,
}

/// Consecutive turns of the member that ended for the same reason.
#[derive(Debug)]
pub(super) struct TurnStreak {
    pub(super) count: usize,
    /// When the first of them ended, in ms since the epoch.
    pub(super) since: u64,
}

impl MemberHistory {
    /// Selects the events of one member.
    pub(super) fn select(events: &[Event], team: &TeamName, name: &MemberName) -> MemberHistory {
        let mut history = MemberHistory::default();
        events.iter().for_each(|event| history.add(event, team, name));
        history
    }

    fn add(&mut self, event: &Event, team: &TeamName, name: &MemberName) {
        let Some(event_team) = &event.team else { return self.events.push(event.clone()) };
        if event_team != team {
            return;
        }
        match &event.member {
            // Earlier events are about an earlier team of the same name.
            _ if matches!(event.kind, EventKind::TeamCreated | EventKind::TeamDeleted) => {
                self.events.retain(|event| event.team.is_none());
                self.other_members.clear();
            }
            Some(member) if member == name => self.events.push(event.clone()),
            Some(member) if is_spawn_event(&event.kind) && !self.other_members.contains(member) => {
                self.other_members.insert(member.clone());
            }
            _ => {}
        }
    }

    #[cfg(test)]
    pub(super) fn from_events(events: Vec<Event>) -> MemberHistory {
        MemberHistory { events, other_members: BTreeSet::new() }
    }

    /// Whether the daemon has ever tried to start the member.
    pub(super) fn has_spawned(&self) -> bool {
        self.events.iter().any(|event| is_spawn_event(&event.kind))
    }

    /// Searches the events from the latest to the earliest for the first one for which `select`
    /// returns a value. Returns this value and the time of the event in ms since the epoch.
    pub(super) fn find_last<'e, T>(
        &'e self,
        select: impl Fn(&'e EventKind) -> Option<T>,
    ) -> Option<(T, u64)> {
        self.events.iter().rev().find_map(|event| Some((select(&event.kind)?, event_time(event))))
    }

    /// How the last spawn ended, or why it could not be started. `None` if it has not ended.
    pub(super) fn last_exit(&self) -> Option<SpawnExit> {
        let (description, at) = self.find_last(|event| match event {
            EventKind::MemberExited { description: text, .. }
            | EventKind::MemberSpawnFailed { reason: text } => Some(Some(text.clone())),
            EventKind::MemberSpawned { .. } => Some(None),
            _ => None,
        })?;
        Some(SpawnExit { description: description?, at })
    }

    /// Why the member is not started again. `None` if it was started since.
    pub(super) fn respawn_refusal(&self) -> Option<String> {
        let (reason, _) = self.find_last(|event| match event {
            EventKind::MemberRespawnsExhausted { reason } => Some(Some(reason.clone())),
            EventKind::MemberSpawned { .. } => Some(None),
            _ => None,
        })?;
        reason
    }

    /// How the last spawns ended, the latest last.
    pub(super) fn recent_exits(&self) -> Vec<SpawnExit> {
        let to_spawn_exit = |event: &Event| match &event.kind {
            EventKind::MemberExited { description, .. } => {
                Some(SpawnExit { description: description.clone(), at: event_time(event) })
            }
            _ => None,
        };
        let mut exits: Vec<SpawnExit> = self.events.iter().filter_map(to_spawn_exit).collect();
        exits.split_off(exits.len().saturating_sub(MAX_SHOWN_EXITS))
    }

    /// The last turns, if they ended for `reason`. Only turns of the current spawn count.
    pub(super) fn count_turns_ended_by(&self, reason: IdleReason) -> Option<TurnStreak> {
        let turns = self.events.iter().rev().filter_map(|event| match &event.kind {
            EventKind::MemberIdle { reason } => Some((*reason, event_time(event))),
            EventKind::MemberSpawned { .. } => Some((None, 0)),
            _ => None,
        });
        let times: Vec<u64> =
            turns.take_while(|(end_reason, _)| *end_reason == Some(reason)).map(|(_, time)| time).collect();
        Some(TurnStreak { count: times.len(), since: *times.last()? })
    }
}

fn is_spawn_event(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::MemberSpawned { .. }
            | EventKind::MemberSpawnFailed { .. }
            | EventKind::MemberExited { .. }
    )
}
