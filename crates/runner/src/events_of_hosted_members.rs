//! Keeps what the event log says about the members on other hosts. When such a member exits or is
//! suspended, its host removes the member from config.json. Only the event log shows whether the
//! member will run again.

use crate::decide_task_retries::{MemberState, MemberStates};
use crate::team_snapshot::{HostedActivity, TeamSnapshot};
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, BTreeSet};

/// The members of a team that have run on other hosts.
#[derive(Debug, Default)]
pub(crate) struct HostedMemberEvents {
    members: BTreeMap<MemberName, LoggedMember>,
    /// Open requests by their ids, each with the member that waits for the answer. The event log of
    /// the team's home has the requests of all members, including those on other hosts.
    open_requests: BTreeMap<String, MemberName>,
}

#[derive(Debug)]
struct LoggedMember {
    spawn: LoggedSpawn,
    turns: LoggedTurns,
}

/// The last spawn of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoggedSpawn {
    /// Its exit is not logged.
    Started,
    RespawnScheduled,
    Suspended,
    Ended,
}

/// Whether a member begins its next turn by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoggedTurns {
    Unpaused,
    /// The next turn begins at the end of a pause.
    Paused,
}

impl HostedMemberEvents {
    /// Updates the members from an event of the team.
    pub(crate) fn record(&mut self, event: &Event) {
        let Some(member) = &event.member else {
            if event.kind == EventKind::TeamCreated {
                *self = HostedMemberEvents::default();
            }
            return;
        };
        self.record_request(member, &event.kind);
        match &event.kind {
            // The member runs here now.
            EventKind::MemberSpawned { .. } if event.on_host.is_none() => drop(self.members.remove(member)),
            kind if event.on_host.is_some() => self.record_hosted(member, kind),
            _ => {}
        }
    }

    fn record_request(&mut self, member: &MemberName, kind: &EventKind) {
        match kind {
            EventKind::RequestOpened { request_id, .. } => {
                self.open_requests.insert(request_id.clone(), member.clone());
            }
            EventKind::RequestAnswered { request_id, .. } | EventKind::RequestWithdrawn { request_id } => {
                self.open_requests.remove(request_id);
            }
            // The requests of a spawn end with it.
            EventKind::MemberSpawned { .. } => self.open_requests.retain(|_, asker| asker != member),
            _ => {}
        }
    }

    fn record_hosted(&mut self, member: &MemberName, kind: &EventKind) {
        let new = LoggedMember { spawn: LoggedSpawn::Started, turns: LoggedTurns::Unpaused };
        let logged = self.members.entry(member.clone()).or_insert(new);
        logged.spawn = logged.spawn.after(kind);
        logged.turns = logged.turns.after(kind);
    }

    /// Adds to the snapshot what the event log says about members on other hosts. If a member is
    /// suspended or waits for its respawn, config.json does not list it, but the member does not
    /// count as gone. An idle member counts as waiting if it has an open request or if its turns
    /// are paused.
    pub(crate) fn apply(&self, snapshot: &mut TeamSnapshot) {
        let waiting: BTreeSet<&MemberName> = self.open_requests.values().collect();
        for member in &mut snapshot.hosted {
            let is_paused =
                self.members.get(&member.name).is_some_and(|logged| logged.turns == LoggedTurns::Paused);
            if member.activity == HostedActivity::Idle && (is_paused || waiting.contains(&member.name)) {
                member.activity = HostedActivity::Waiting;
            }
        }
        for (name, logged) in &self.members {
            if snapshot.members.state_of(name) == MemberState::Gone {
                snapshot.members.states.insert(name.clone(), logged.spawn.state_of_unlisted_member());
            }
        }
    }

    /// Adds the members that their hosts will respawn, although config.json does not list them. A
    /// resumed run must not spawn these members itself.
    pub(crate) fn add_respawning(&self, members: &mut MemberStates) {
        for (name, logged) in &self.members {
            if logged.spawn == LoggedSpawn::RespawnScheduled && members.state_of(name) == MemberState::Gone {
                members.states.insert(name.clone(), MemberState::Respawning);
            }
        }
    }
}

impl LoggedSpawn {
    fn after(self, kind: &EventKind) -> LoggedSpawn {
        match kind {
            EventKind::MemberSpawned { .. } | EventKind::MemberAdopted { .. } => LoggedSpawn::Started,
            EventKind::MemberRespawnScheduled { .. } => LoggedSpawn::RespawnScheduled,
            EventKind::MemberSuspended => LoggedSpawn::Suspended,
            EventKind::MemberRespawnsExhausted { .. } => LoggedSpawn::Ended,
            // A host logs what follows before it logs the exit.
            EventKind::MemberExited { .. } if self == LoggedSpawn::Started => LoggedSpawn::Ended,
            _ => self,
        }
    }

    fn state_of_unlisted_member(self) -> MemberState {
        match self {
            LoggedSpawn::Started | LoggedSpawn::RespawnScheduled => MemberState::Respawning,
            LoggedSpawn::Suspended => MemberState::Suspended,
            LoggedSpawn::Ended => MemberState::Gone,
        }
    }
}

impl LoggedTurns {
    fn after(self, kind: &EventKind) -> LoggedTurns {
        match kind {
            EventKind::MemberTurnsFailed { next_turn_at: Some(_), .. }
            | EventKind::MemberLimited { next_turn_at: Some(_), .. } => LoggedTurns::Paused,
            EventKind::MemberExchangePaused { within_ms, .. }
                if !crate::stall_detector::is_long_exchange_period(*within_ms) =>
            {
                LoggedTurns::Paused
            }
            EventKind::MemberTurnsFailed { .. }
            | EventKind::MemberLimited { .. }
            | EventKind::MemberActive { .. }
            | EventKind::MemberSpawned { .. }
            | EventKind::MemberExited { .. } => LoggedTurns::Unpaused,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team_snapshot::HostedMember;

    fn name() -> MemberName {
        MemberName::new_unchecked("ann")
    }

    /// The events of a team in which only ann has events. `HERE` marks an event of this host.
    fn events(kinds: &[&str]) -> HostedMemberEvents {
        let mut events = HostedMemberEvents::default();
        for kind in kinds {
            let place = if kind.ends_with("HERE") { "" } else { r#""on_host":"devbox","# };
            let kind = kind.trim_end_matches("HERE");
            let line = format!(r#"{{"time":"","team":"t","member":"ann",{place}"event":{kind}}}"#);
            events.record(&serde_json::from_str(&line).unwrap());
        }
        events
    }

    const SPAWNED: &str = r#""member_spawned","pid":1,"pane":"%1""#;
    const EXITED: &str = r#""member_exited","outcome":"failed","description":"exit 1""#;
    const SCHEDULED: &str = r#""member_respawn_scheduled","attempt":1,"delay_ms":1000"#;
    const EXHAUSTED: &str = r#""member_respawns_exhausted","reason":"x""#;
    const SUSPENDED: &str = r#""member_suspended""#;

    #[test]
    fn member_that_its_host_deregisters_can_come_back() {
        let state = |kinds: &[&str]| {
            let mut snapshot = TeamSnapshot::default();
            events(kinds).apply(&mut snapshot);
            snapshot.members.state_of(&name())
        };
        assert_eq!(state(&[SPAWNED]), MemberState::Respawning, "its exit is not logged yet");
        assert_eq!(state(&[SPAWNED, EXITED]), MemberState::Gone);
        assert_eq!(state(&[SPAWNED, SCHEDULED, EXITED]), MemberState::Respawning);
        assert_eq!(state(&[SPAWNED, EXITED, SCHEDULED]), MemberState::Respawning);
        assert_eq!(state(&[SPAWNED, SCHEDULED, EXITED, SPAWNED, EXITED]), MemberState::Gone);
        assert_eq!(state(&[SPAWNED, SCHEDULED, EXITED, EXHAUSTED]), MemberState::Gone);
        assert_eq!(state(&[SPAWNED, SUSPENDED, EXITED]), MemberState::Suspended);
        let spawned_here = format!("{SPAWNED}HERE");
        assert_eq!(state(&[SPAWNED, SUSPENDED, &spawned_here]), MemberState::Gone, "this host knows it");
    }

    #[test]
    fn continued_run_spawns_no_member_that_its_host_starts_again() {
        let state = |kinds: &[&str]| {
            let mut members = MemberStates::default();
            events(kinds).add_respawning(&mut members);
            members.state_of(&name())
        };
        assert_eq!(state(&[SPAWNED, SCHEDULED, EXITED]), MemberState::Respawning);
        assert_eq!(state(&[SPAWNED, SCHEDULED, EXITED, EXHAUSTED]), MemberState::Gone);
        assert_eq!(state(&[SPAWNED, SUSPENDED, EXITED]), MemberState::Gone, "only a spawn brings it back");
    }

    #[test]
    fn listed_member_runs_whatever_is_logged() {
        let mut snapshot = TeamSnapshot::default();
        snapshot.members.states.insert(name(), MemberState::Running);
        events(&[SPAWNED, SUSPENDED, EXITED]).apply(&mut snapshot);
        assert_eq!(snapshot.members.state_of(&name()), MemberState::Running);
    }

    #[test]
    fn idle_member_waits_during_a_pause_and_an_open_request() {
        let activity = |kinds: &[&str]| {
            let hosted = vec![HostedMember { name: name(), activity: HostedActivity::Idle }];
            let mut snapshot = TeamSnapshot { hosted, ..TeamSnapshot::default() };
            events(kinds).apply(&mut snapshot);
            snapshot.hosted[0].activity
        };
        let limited = r#""member_limited","until":1,"local_time":"","reason":"","next_turn_at":1"#;
        let at_dialog = r#""member_limited","until":1,"local_time":"","reason":"""#;
        let active = r#""member_active""#;
        let failed = r#""member_turns_failed","failed_turns":3,"reason":"","next_turn_at":1"#;
        let stopped = r#""member_turns_failed","failed_turns":9,"reason":"""#;
        let exchange = |within_ms: u64| {
            format!(
                r#""member_exchange_paused","with":"bob","turns":6,"within_ms":{within_ms},"next_turn_at":1"#
            )
        };
        let (short, long) = (exchange(60_000), exchange(3_600_000));
        let opened = r#""request_opened","request_id":"r","kind":"plan_approval_request","summary":""HERE"#;
        let answered = r#""request_answered","request_id":"r","approved":true,"answered_by":"lead"HERE"#;
        for waiting in [[limited], [failed], [&short], [opened]] {
            assert_eq!(activity(&waiting), HostedActivity::Waiting, "{waiting:?}");
        }
        for idle in [
            [SPAWNED, at_dialog],
            [limited, active],
            [failed, stopped],
            [SPAWNED, &long],
            [opened, answered],
            [opened, SPAWNED],
        ] {
            assert_eq!(activity(&idle), HostedActivity::Idle, "{idle:?}");
        }
    }
}
