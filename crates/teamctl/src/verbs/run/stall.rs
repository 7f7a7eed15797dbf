//! A team in which everybody is idle and nothing changes, although something is left to do: an agent gave a task
//! back and nobody takes it, or took one and forgot it; or some rest, since their tmux server went away say. Such a run
//! ends after a while, since nobody will wake it.

use super::lives::Look;
use protocol::control::{Activity, MemberFlag, MemberStatus};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::TaskStatus;
use std::time::{Duration, Instant};

/// So long nothing may happen while everybody is idle.
const PATIENCE: Duration = Duration::from_secs(60);

/// Since when nothing has moved.
#[derive(Debug, Default)]
pub(super) struct Stall {
    since: Option<(Picture, Instant)>,
}

/// Every open task with its status and owner.
type Picture = Vec<(TaskId, TaskStatus, Option<AgentName>)>;

impl Stall {
    /// When it is over, if nothing moves until then; none while somebody may still do something.
    pub(super) fn deadline(&mut self, look: &Look, now: Instant) -> Option<Instant> {
        let picture = picture(look);
        let anybody = !look.living.is_empty() || look.lives.anybody_rests();
        let waits = anybody && look.living.iter().all(waits) && !somebody_elses(&picture);
        if !waits || look.lives.anybody_returns() {
            self.since = None;
            return None;
        }
        let since = match self.since.take() {
            Some((before, since)) if before == picture => since,
            _ => now,
        };
        self.since = Some((picture, since));
        Some(since + PATIENCE)
    }
}

fn picture(look: &Look) -> Picture {
    let open = look.tasks.iter().filter(|task| !task.is_internal() && !task.status.is_closed());
    open.map(|task| (task.id, task.status.clone(), task.owner.clone())).collect()
}

/// For something new, not for the answer to a question.
fn waits(agent: &MemberStatus) -> bool {
    let waits =
        |flag: &MemberFlag| matches!(flag, MemberFlag::AwaitingPlanApproval | MemberFlag::AwaitingPermission);
    agent.activity == Activity::Idle && !agent.flags.iter().any(waits)
}

/// A person works at their own pace.
fn somebody_elses(picture: &Picture) -> bool {
    picture.iter().any(|(_, _, owner)| owner.as_ref().is_some_and(AgentName::is_lead))
}

#[cfg(test)]
mod tests {
    use super::super::decide::Life;
    use super::*;
    use protocol::task::Task;

    fn look(activity: &str, status: &str, owner: &str) -> Look {
        let task = format!(r#"{{"id":"1","subject":"x","status":"{status}","owner":"{owner}"}}"#);
        let agent = serde_json::json!({
            "name": "ann", "agent_id": "ann@t", "phase": "running", "activity": activity, "since": 0, "task": null,
            "feed": "turn", "pane": null, "pid": 1, "backend": "tmux", "color": ""
        });
        let living = vec![serde_json::from_value(agent).unwrap()];
        Look { tasks: vec![Task::parse(&task).unwrap()], living, ..Look::default() }
    }

    #[test]
    fn only_a_team_that_rests_with_work_left_comes_to_its_end() {
        let mut stall = Stall::default();
        let start = Instant::now();
        let later = start + Duration::from_secs(50);
        assert_eq!(stall.deadline(&look("idle", "pending", ""), start), Some(start + PATIENCE));
        assert_eq!(stall.deadline(&look("idle", "pending", ""), later), Some(start + PATIENCE));
        assert_eq!(stall.deadline(&look("idle", "in_progress", "ann"), later), Some(later + PATIENCE));
        assert_eq!(stall.deadline(&look("active", "pending", ""), later), None);
        assert_eq!(stall.deadline(&look("idle", "pending", ""), later), Some(later + PATIENCE));
        assert_eq!(stall.deadline(&look("idle", "in_progress", "team-lead"), later), None);
        let mut rests = look("idle", "pending", "");
        rests.lives.0.insert(AgentName::new_unchecked("bob"), Life::Rests);
        assert_eq!(stall.deadline(&rests, later), Some(later + PATIENCE), "what is bob's ann does not do");
        rests.living.iter_mut().for_each(|ann| ann.activity = Activity::Active);
        assert_eq!(stall.deadline(&rests, later), None, "she is at something");
        rests.living.clear();
        assert_eq!(stall.deadline(&rests, later), Some(later + PATIENCE));
        rests.lives.0.insert(AgentName::new_unchecked("ann"), Life::Returns);
        assert_eq!(stall.deadline(&rests, later), None);
    }
}
