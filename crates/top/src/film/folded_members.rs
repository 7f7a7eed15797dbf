//! The members of a recorded team, as the record's reports and events describe them.

use client::member_view::MemberView;
use protocol::control_socket::{Activity, MemberFlag, PastMember, TurnPause, TurnStatus, UsageLimit};
use protocol::event_log_line::{Event, EventKind};
use protocol::member_color::Color;
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeMap;

/// The members of a recorded team. The lead is not among them.
#[derive(Debug, Clone, Default)]
pub(super) struct FoldedMembers {
    /// The running members, in the order of their spawns.
    pub(super) running: Vec<MemberView>,
    /// The members whose spawns have ended, the most recent last.
    pub(super) past: Vec<PastMember>,
    /// How many members have joined the team, without respawns.
    joined: u64,
    /// What a member keeps when it is started again.
    kept: BTreeMap<MemberName, KeptOverRespawns>,
}

/// What a member keeps when it is started again.
#[derive(Debug, Clone)]
struct KeptOverRespawns {
    color: String,
    /// How often the member was started again.
    respawns: u32,
}

impl FoldedMembers {
    /// Applies an event about a member. `at` is its time in milliseconds since the epoch.
    pub(super) fn apply_event(&mut self, at: u64, event: &Event) {
        let Some(name) = &event.member else { return };
        match &event.kind {
            EventKind::MemberSpawned { pid, pane } => self.add_spawn(at, name, *pid, pane),
            EventKind::MemberSpawnFailed { reason } => self.end(at, name, "failed", reason),
            EventKind::MemberExited { outcome, description } => self.end(at, name, outcome, description),
            EventKind::MemberRespawnScheduled { delay_ms, .. } => {
                self.change_past(name, |past| past.respawns_at = Some(at.saturating_add(*delay_ms)));
            }
            EventKind::MemberRespawnsExhausted { reason } => self.change_past(name, |past| {
                (past.respawns_at, past.respawns_exhausted_reason) = (None, Some(reason.clone()));
            }),
            EventKind::MemberSuspended => self.change_past(name, |past| past.is_suspended = true),
            kind => {
                if let Some(member) = self.running_member(name) {
                    apply_to_running(member, at, kind);
                }
            }
        }
    }

    /// Applies the report of a shim that runs the member's turns.
    pub(super) fn apply_turn(&mut self, name: &MemberName, turn: &TurnStatus) {
        let Some(member) = self.running_member(name) else { return };
        set_activity(member, turn.activity, turn.since, &turn.summary);
        member.usage = turn.usage.as_ref().map_or(member.usage, |report| report.usage);
        member.mode = turn.mode.map(|mode| mode.to_string()).or_else(|| member.mode.take());
        member.turn_pause.clone_from(&turn.pause);
        member.usage_limit = turn.pause.as_ref().and_then(TurnPause::limit).cloned();
        member.flags.extend(match &turn.pause {
            Some(pause) if pause.limit().is_some() => Some(MemberFlag::Limited),
            Some(pause) if pause.until().is_none() => Some(MemberFlag::TurnsStopped),
            Some(_) => Some(MemberFlag::Paused),
            None => None,
        });
    }

    /// Stores the color that a member's message has.
    pub(super) fn set_color(&mut self, name: &MemberName, color: &str) {
        if let Some(member) = self.running.iter_mut().find(|member| member.name == name.as_str()) {
            color.clone_into(&mut member.color);
        }
    }

    /// The names of the members that may work on a task.
    pub(super) fn possible_workers(&self) -> Vec<MemberName> {
        let running = self.running.iter().map(|member| MemberName::new_unchecked(&member.name));
        let respawning = self.past.iter().filter(|past| past.has_respawn()).map(|past| past.name.clone());
        running.chain(respawning).chain([MemberName::lead()]).collect()
    }

    fn running_member(&mut self, name: &MemberName) -> Option<&mut MemberView> {
        self.running.iter_mut().find(|member| member.name == name.as_str())
    }

    fn change_past(&mut self, name: &MemberName, change: impl FnOnce(&mut PastMember)) {
        self.past.iter_mut().rfind(|past| past.name == *name).map(change);
    }

    fn add_spawn(&mut self, at: u64, name: &MemberName, pid: u32, pane: &str) {
        let KeptOverRespawns { color, respawns } = self.replace_earlier_spawn(name);
        self.running.push(MemberView {
            name: name.to_string(),
            lifecycle: "running".to_owned(),
            activity: Some(Activity::Active),
            activity_since: Some(at),
            pane: Some(pane.to_owned()).filter(|pane| pane.starts_with('%')),
            pid: Some(pid),
            respawns: Some(respawns),
            color,
            ..MemberView::default()
        });
    }

    /// Removes the member `name` from the running and the past members, because it is spawned
    /// again. Returns the color and the number of respawns for the new spawn.
    ///
    /// If the new spawn is a respawn, the color stays and the number grows by one. Otherwise it is
    /// another member with the same name: it gets a new color, and the number is 0.
    fn replace_earlier_spawn(&mut self, name: &MemberName) -> KeptOverRespawns {
        self.running.retain(|member| member.name != name.as_str());
        let is_respawn = self.past.iter().any(|past| past.name == *name && past.has_respawn());
        self.past.retain(|past| past.name != *name);
        let kept = match self.kept.get(name).filter(|_| is_respawn) {
            Some(kept) => KeptOverRespawns { respawns: kept.respawns + 1, ..kept.clone() },
            None => {
                self.joined += 1;
                let color = Color::for_joined_count(self.joined - 1).to_string();
                KeptOverRespawns { color, respawns: 0 }
            }
        };
        self.kept.insert(name.clone(), kept.clone());
        kept
    }

    /// Moves a member to the past members.
    fn end(&mut self, at: u64, name: &MemberName, outcome: &str, description: &str) {
        let usage = self.running_member(name).map(|member| member.usage).unwrap_or_default();
        self.running.retain(|member| member.name != name.as_str());
        self.past.retain(|past| past.name != *name);
        self.past.push(PastMember {
            name: name.clone(),
            outcome: outcome.to_owned(),
            description: description.to_owned(),
            ended_at: at,
            respawns_at: None,
            is_suspended: false,
            respawns_exhausted_reason: None,
            usage,
        });
    }
}

/// Applies an event about a running member.
fn apply_to_running(member: &mut MemberView, at: u64, kind: &EventKind) {
    match kind {
        EventKind::MemberAdopted { pid } => member.pid = Some(*pid),
        EventKind::MemberActive { summary } => set_activity(member, Activity::Active, at, summary),
        EventKind::MemberIdle { .. } => set_activity(member, Activity::Idle, at, ""),
        EventKind::MemberAtDialog { .. } => set_flag(member, MemberFlag::AtDialog),
        EventKind::MemberNoOutput { .. } => set_flag(member, MemberFlag::NoOutput),
        EventKind::MemberLimited { until, local_time, .. } => {
            member.usage_limit = Some(UsageLimit { until: *until, local_time: local_time.clone(), tries: 1 });
            set_flag(member, MemberFlag::Limited);
        }
        EventKind::ShutdownRequested { .. } => {
            "stopping".clone_into(&mut member.lifecycle);
            set_flag(member, MemberFlag::ShutdownRequested);
        }
        EventKind::ShutdownRejected { .. } => {
            "running".clone_into(&mut member.lifecycle);
            member.flags.retain(|flag| *flag != MemberFlag::ShutdownRequested);
        }
        EventKind::ModeSet { mode } => member.mode = Some(mode.to_string()),
        _ => {}
    }
}

fn set_flag(member: &mut MemberView, flag: MemberFlag) {
    if !member.flags.contains(&flag) {
        member.flags.push(flag);
    }
}

/// Stores what the member does from the time `at` on. Removes the member's flags, such as the flag
/// for a dialog, because they describe the earlier activity. Only the flag for a shutdown request
/// stays, because the member has not answered the request.
fn set_activity(member: &mut MemberView, activity: Activity, at: u64, summary: &str) {
    if member.activity != Some(activity) || member.activity_reason.as_deref() != Some(summary) {
        member.activity_since = Some(at);
    }
    member.activity = Some(activity);
    member.activity_reason = Some(summary.to_owned());
    member.flags.retain(|flag| *flag == MemberFlag::ShutdownRequested);
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::member_view::MemberView;
    use protocol::control_socket::{FailedTurnsPause, TurnStatus};
    use serde_json::json;

    fn apply(members: &mut FoldedMembers, events: &[(u64, &str, serde_json::Value)]) {
        for (at, name, event) in events {
            let mut event = event.clone();
            event["time"] = json!("");
            event["team"] = json!("survey");
            event["member"] = json!(name);
            members.apply_event(*at, &serde_json::from_value(event).unwrap());
        }
    }

    fn spawned(pid: u32) -> serde_json::Value {
        json!({"event": "member_spawned", "pid": pid, "pane": "in-process"})
    }

    fn texts(members: &FoldedMembers) -> Vec<String> {
        let text = |member: &MemberView| format!("{} {}", member.name, member.lifecycle_and_flags());
        members.running.iter().map(text).collect()
    }

    #[test]
    fn respawn_keeps_the_color_and_another_spawn_does_not() {
        let mut members = FoldedMembers::default();
        let exited = json!({"event": "member_exited", "outcome": "failed", "description": "exit 1"});
        let respawn = json!({"event": "member_respawn_scheduled", "attempt": 1, "delay_ms": 500});
        let start = [(1, "ann", spawned(1)), (2, "bob", spawned(2)), (3, "ann", exited.clone())];
        apply(&mut members, &start);
        assert_eq!((members.running.len(), members.past[0].ended_at), (1, 3));
        assert_eq!(members.possible_workers().len(), 2, "ann is not started again");
        apply(&mut members, &[(4, "ann", respawn)]);
        assert_eq!((members.past[0].respawns_at, members.possible_workers().len()), (Some(504), 3));
        apply(&mut members, &[(5, "ann", spawned(3))]);
        let ann = &members.running[1];
        assert_eq!((ann.color.as_str(), ann.respawns, members.past.len()), ("blue", Some(1), 0));
        apply(&mut members, &[(6, "ann", exited), (7, "ann", spawned(4))]);
        let ann = &members.running[1];
        assert_eq!((ann.color.as_str(), ann.respawns), ("yellow", Some(0)));
    }

    #[test]
    fn flags_follow_events_and_reports() {
        let mut members = FoldedMembers::default();
        apply(&mut members, &[(1, "ann", spawned(1))]);
        apply(&mut members, &[(2, "ann", json!({"event": "member_at_dialog", "text": "trust it?"}))]);
        assert_eq!(texts(&members), ["ann running!dialog"]);
        apply(&mut members, &[(3, "ann", json!({"event": "member_active", "summary": "task 1"}))]);
        assert_eq!(texts(&members), ["ann running"]);
        apply(&mut members, &[(4, "ann", json!({"event": "shutdown_requested", "request_id": "s-1"}))]);
        assert_eq!(texts(&members), ["ann stopping!shutdown"]);
        apply(&mut members, &[(5, "ann", json!({"event": "shutdown_rejected", "reason": "no"}))]);
        let failed =
            FailedTurnsPause { failed_turns: 9, reason: "exit 1".to_owned(), until: None, limit: None };
        let turn = json!({"activity": "idle", "since": 6, "turn_number": 9, "summary": "", "pid": null,
            "idle_reason": "failed", "pause": TurnPause::FailedTurns(failed)});
        let turn: TurnStatus = serde_json::from_value(turn).unwrap();
        members.apply_turn(&MemberName::new_unchecked("ann"), &turn);
        assert_eq!(texts(&members), ["ann running!turns-stopped"]);
        assert_eq!(members.running[0].activity_since, Some(6));
    }
}
