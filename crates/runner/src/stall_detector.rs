//! Detects a stalled team: nothing happens although tasks are open. Without this check, the run
//! would wait for the open tasks forever.
//!
//! For example, a team stalls if no agent claims a task that another agent has released. It also
//! stalls if an agent forgets a task that it has claimed, or if members are suspended because their
//! tmux server was killed.

use crate::team_snapshot::{HostedActivity, TeamSnapshot};
use protocol::control_socket::{Activity, MemberFlag, MemberStatus, TurnPause};
use protocol::delivery_kind::Delivery;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use protocol::team_and_member_names::MemberName;
use std::time::{Duration, Instant};

/// How long all members must be idle, without a change of an open task, before the team counts as
/// stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Records since when all members are idle and no open task has changed.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    idle_since: Option<IdlePeriod>,
}

/// A period in which all members were idle and no open task changed.
#[derive(Debug)]
struct IdlePeriod {
    open_tasks: Vec<OpenTask>,
    started_at: Instant,
}

/// The parts of an open task that are compared between two snapshots. If one of them changes, the
/// team does not count as stalled.
#[derive(Debug, PartialEq, Eq)]
struct OpenTask {
    id: TaskId,
    status: TaskStatus,
    owner: Option<MemberName>,
}

impl StallDetector {
    /// Updates the detector with a snapshot. Returns the time at which the team will count as
    /// stalled if nothing changes until then. `None` while a member or the lead may still do
    /// something.
    pub(crate) fn update_deadline(&mut self, snapshot: &TeamSnapshot, now: Instant) -> Option<Instant> {
        let open_tasks = open_tasks(snapshot);
        let has_members =
            !snapshot.running.is_empty() || !snapshot.hosted.is_empty() || snapshot.members.any_suspended();
        let is_idle = has_members
            && snapshot.running.iter().all(is_idle_for_good)
            && snapshot.hosted.iter().all(|member| member.activity == HostedActivity::Idle)
            && !has_lead_task(&open_tasks);
        if !is_idle || snapshot.members.any_respawning() {
            self.idle_since = None;
            return None;
        }
        let started_at = match self.idle_since.take() {
            Some(period) if period.open_tasks == open_tasks => period.started_at,
            _ => now,
        };
        self.idle_since = Some(IdlePeriod { open_tasks, started_at });
        Some(started_at + STALL_TIMEOUT)
    }
}

fn open_tasks(snapshot: &TeamSnapshot) -> Vec<OpenTask> {
    let tasks = snapshot.tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    tasks
        .map(|task| OpenTask { id: task.id, status: task.status.clone(), owner: task.owner.clone() })
        .collect()
}

/// Whether the member is idle and has no reason to continue. `false` if the member waits for an
/// answer about its plan or a permission, or for the end of a pause of its turns. Also `false` for
/// delivery `pull`, because a program that reads its inbox itself may still work when it is
/// reported as idle.
fn is_idle_for_good(member: &MemberStatus) -> bool {
    let will_continue = |flag: &MemberFlag| match flag {
        MemberFlag::AwaitingPlanApproval | MemberFlag::AwaitingPermission => true,
        MemberFlag::Paused => !is_in_long_exchange(member),
        // The member has reached a usage limit. If its turns are paused until the limit ends, the
        // member continues by itself. Otherwise the program shows the limit in a dialog, which a
        // person must answer.
        MemberFlag::Limited => member.turn_pause.is_some(),
        _ => false,
    };
    let is_idle = member.activity == Activity::Idle && member.delivery != Delivery::Pull;
    is_idle && !member.flags.iter().any(will_continue)
}

/// Whether the member's turns are paused because it answered another member too often within an
/// hour. The run does not wait for the end of this pause: afterwards, the two members would only
/// answer each other again. `false` for the shorter pause after too many answers within a minute.
fn is_in_long_exchange(member: &MemberStatus) -> bool {
    matches!(&member.turn_pause, Some(TurnPause::Exchange(pause)) if is_long_exchange_period(pause.within_ms))
}

/// Whether a limit of answers with this period, in milliseconds, is one whose end no run waits for.
pub(crate) fn is_long_exchange_period(within_ms: u64) -> bool {
    Duration::from_millis(within_ms) > STALL_TIMEOUT
}

/// Whether the lead owns an open task. A team with such a task never counts as stalled, because the
/// lead may be a person, who may take any time for the task.
fn has_lead_task(open_tasks: &[OpenTask]) -> bool {
    open_tasks.iter().any(|task| task.owner.as_ref().is_some_and(MemberName::is_lead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide_task_retries::MemberState;
    use crate::team_snapshot::HostedMember;
    use protocol::control_socket::ExchangePause;
    use protocol::task::Task;

    fn snapshot(activity: &str, status: &str, owner: &str) -> TeamSnapshot {
        let task = format!(r#"{{"id":"1","subject":"x","status":"{status}","owner":"{owner}"}}"#);
        let agent = serde_json::json!({
            "name": "ann", "agent_id": "ann@t", "lifecycle": "running", "activity": activity, "activity_since": 0, "task": null,
            "delivery": "turn", "pane": null, "pid": 1, "backend": "tmux", "color": ""
        });
        let running = vec![serde_json::from_value(agent).unwrap()];
        TeamSnapshot { tasks: vec![Task::parse(&task).unwrap()], running, ..TeamSnapshot::default() }
    }

    #[test]
    fn only_an_idle_team_with_open_tasks_stalls() {
        let mut stall = StallDetector::default();
        let start = Instant::now();
        let later = start + Duration::from_secs(50);
        assert_eq!(
            stall.update_deadline(&snapshot("idle", "pending", ""), start),
            Some(start + STALL_TIMEOUT)
        );
        assert_eq!(
            stall.update_deadline(&snapshot("idle", "pending", ""), later),
            Some(start + STALL_TIMEOUT)
        );
        assert_eq!(
            stall.update_deadline(&snapshot("idle", "in_progress", "ann"), later),
            Some(later + STALL_TIMEOUT)
        );
        assert_eq!(stall.update_deadline(&snapshot("active", "pending", ""), later), None);
        assert_eq!(
            stall.update_deadline(&snapshot("idle", "pending", ""), later),
            Some(later + STALL_TIMEOUT)
        );
        assert_eq!(stall.update_deadline(&snapshot("idle", "in_progress", "team-lead"), later), None);
        let mut pausing = snapshot("idle", "pending", "");
        pausing.running.iter_mut().for_each(|ann| ann.flags = vec![MemberFlag::Paused]);
        assert_eq!(stall.update_deadline(&pausing, later), None, "ann goes on after a pause");
        let pause = |within_ms| ExchangePause {
            with: MemberName::new_unchecked("bob"),
            turns: 6,
            within_ms,
            until: 0,
        };
        let [mut short, mut long, mut asking] = [60_000, 3_600_000, 3_600_000].map(|within_ms| {
            let mut snapshot = snapshot("idle", "pending", "");
            snapshot.running[0].flags = vec![MemberFlag::Paused];
            snapshot.running[0].turn_pause = Some(TurnPause::Exchange(pause(within_ms)));
            snapshot
        });
        asking.running[0].flags.push(MemberFlag::AwaitingPermission);
        let deadlines = [&mut short, &mut long, &mut asking].map(|team| stall.update_deadline(team, later));
        assert_eq!(deadlines, [None, Some(later + STALL_TIMEOUT), None]);
        pausing.running.iter_mut().for_each(|ann| ann.flags = vec![MemberFlag::TurnsStopped]);
        assert_eq!(stall.update_deadline(&pausing, later), Some(later + STALL_TIMEOUT));
        let mut suspended = snapshot("idle", "pending", "");
        suspended.members.states.insert(MemberName::new_unchecked("bob"), MemberState::Suspended);
        assert_eq!(
            stall.update_deadline(&suspended, later),
            Some(later + STALL_TIMEOUT),
            "ann is idle while bob is suspended"
        );
        suspended.running.iter_mut().for_each(|ann| ann.activity = Activity::Active);
        assert_eq!(stall.update_deadline(&suspended, later), None, "ann is active");
        suspended.running.clear();
        assert_eq!(stall.update_deadline(&suspended, later), Some(later + STALL_TIMEOUT));
        suspended.members.states.insert(MemberName::new_unchecked("ann"), MemberState::Respawning);
        assert_eq!(stall.update_deadline(&suspended, later), None);
    }

    #[test]
    fn member_on_another_host_stalls_a_team_only_if_it_is_known_to_be_idle() {
        let start = Instant::now();
        for (activity, deadline) in [
            (HostedActivity::Idle, Some(start + STALL_TIMEOUT)),
            (HostedActivity::Waiting, None),
            (HostedActivity::ActiveOrUnknown, None),
        ] {
            let mut team = snapshot("idle", "pending", "");
            let name = MemberName::new_unchecked("bob");
            team.hosted.push(HostedMember { name, activity });
            assert_eq!(StallDetector::default().update_deadline(&team, start), deadline, "{activity:?}");
        }
    }
}
