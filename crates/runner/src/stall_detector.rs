//! A team in which everybody is idle and nothing changes, although something is left to do: an agent gave a task
//! back and nobody takes it, or took one and forgot it; or some rest, since their tmux server went away say. Such a run
//! ends after a while, since nobody will wake it.

use crate::team_snapshot::TeamSnapshot;
use protocol::control::{Activity, MemberFlag, MemberStatus};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::TaskStatus;
use std::time::{Duration, Instant};

/// So long nothing may happen while everybody is idle.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Since when nothing has moved.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    since: Option<(OpenTasks, Instant)>,
}

/// Every open task with its status and owner.
type OpenTasks = Vec<(TaskId, TaskStatus, Option<AgentName>)>;

impl StallDetector {
    /// When it is over, if nothing moves until then; none while somebody may still do something.
    pub(crate) fn update_deadline(&mut self, look: &TeamSnapshot, now: Instant) -> Option<Instant> {
        let picture = open_tasks(look);
        let anybody = !look.running.is_empty() || look.lives.any_suspended();
        let waits = anybody && look.running.iter().all(is_idle_without_request) && !has_lead_task(&picture);
        if !waits || look.lives.any_respawning() {
            self.since = None;
            return None;
        }
        let since = match self.since.take() {
            Some((before, since)) if before == picture => since,
            _ => now,
        };
        self.since = Some((picture, since));
        Some(since + STALL_TIMEOUT)
    }
}

fn open_tasks(look: &TeamSnapshot) -> OpenTasks {
    let open = look.tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    open.map(|task| (task.id, task.status.clone(), task.owner.clone())).collect()
}

/// For something new, not for the answer to a question.
fn is_idle_without_request(agent: &MemberStatus) -> bool {
    let waits =
        |flag: &MemberFlag| matches!(flag, MemberFlag::AwaitingPlanApproval | MemberFlag::AwaitingPermission);
    agent.activity == Activity::Idle && !agent.flags.iter().any(waits)
}

/// A person works at their own pace.
fn has_lead_task(picture: &OpenTasks) -> bool {
    picture.iter().any(|(_, _, owner)| owner.as_ref().is_some_and(AgentName::is_lead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_fate::MemberState;
    use protocol::task::Task;

    fn snapshot(activity: &str, status: &str, owner: &str) -> TeamSnapshot {
        let task = format!(r#"{{"id":"1","subject":"x","status":"{status}","owner":"{owner}"}}"#);
        let agent = serde_json::json!({
            "name": "ann", "agent_id": "ann@t", "lifecycle": "running", "activity": activity, "activity_since": 0, "task": null,
            "delivery": "turn", "pane": null, "pid": 1, "backend": "tmux", "color": ""
        });
        let living = vec![serde_json::from_value(agent).unwrap()];
        TeamSnapshot { tasks: vec![Task::parse(&task).unwrap()], running: living, ..TeamSnapshot::default() }
    }

    #[test]
    fn only_a_team_that_rests_with_work_left_comes_to_its_end() {
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
        let mut rests = snapshot("idle", "pending", "");
        rests.lives.0.insert(AgentName::new_unchecked("bob"), MemberState::Suspended);
        assert_eq!(
            stall.update_deadline(&rests, later),
            Some(later + STALL_TIMEOUT),
            "what is bob's ann does not do"
        );
        rests.running.iter_mut().for_each(|ann| ann.activity = Activity::Active);
        assert_eq!(stall.update_deadline(&rests, later), None, "she is at something");
        rests.running.clear();
        assert_eq!(stall.update_deadline(&rests, later), Some(later + STALL_TIMEOUT));
        rests.lives.0.insert(AgentName::new_unchecked("ann"), MemberState::Respawning);
        assert_eq!(stall.update_deadline(&rests, later), None);
    }
}
