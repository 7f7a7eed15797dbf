//! Which task comes next for a member: one rule for whoever claims, and for whoever tells claimants without a look.

use super::task_file::{Task, TaskStatus};
use crate::id::TaskId;
use crate::name::AgentName;
use std::borrow::Borrow;

/// The first of its own that can start, else the lowest that is available.
pub fn next_task<T: Borrow<Task>>(all: &[T], owner: &AgentName) -> Option<TaskId> {
    let mut free = None;
    for task in all.iter().map(Borrow::borrow) {
        match &task.owner {
            Some(other) if other == owner && task.is_startable(all) => return Some(task.id),
            None if free.is_none() && task.is_startable(all) => free = Some(task.id),
            _ => {}
        }
    }
    free
}

/// The lowest that it has in progress and that has not failed: what an earlier life of it left, for the next one to go
/// on with. One that waits for others by now is left out.
pub fn resumable_task<'a, T: Borrow<Task>>(all: &'a [T], owner: &AgentName) -> Option<&'a Task> {
    let left = |task: &&Task| {
        task.status == TaskStatus::InProgress
            && task.owner.as_ref() == Some(owner)
            && !task.is_internal()
            && task.failure().is_none()
            && task.open_blockers(all).is_empty()
    };
    all.iter().map(Borrow::borrow).find(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, more: &str) -> Task {
        Task::parse(&format!(r#"{{"id":"{id}","subject":"s",{more}}}"#)).unwrap()
    }

    #[test]
    fn ones_own_comes_first_then_the_lowest_and_what_waits_or_is_anothers_never() {
        let (ann, bob) = (AgentName::new_unchecked("ann"), AgentName::new_unchecked("bob"));
        let mut all = vec![
            task(1, r#""status":"completed""#),
            task(2, r#""status":"pending","metadata":{"_internal":true}"#),
            task(3, r#""status":"pending","owner":"bob""#),
            task(4, r#""status":"pending","blockedBy":["3"]"#),
            task(5, r#""status":"pending","blockedBy":["1"]"#),
            task(6, r#""status":"pending""#),
            task(7, r#""status":"pending","owner":"ann","blockedBy":["6"]"#),
            task(8, r#""status":"pending","owner":"Ann""#),
        ];
        let next = |all: &[Task], who| next_task(all, who).map(TaskId::number);
        assert_eq!((next(&all, &ann), next(&all, &bob)), (Some(8), Some(3)));
        all.pop();
        assert_eq!(next(&all, &ann), Some(5), "what waits is not its own to start");
        assert_eq!(next(&all[..4], &ann), None);
    }

    #[test]
    fn what_was_left_has_not_failed_and_does_not_wait() {
        let ann = AgentName::new_unchecked("ann");
        let all = [
            task(1, r#""status":"in_progress","owner":"bob""#),
            task(2, r#""status":"in_progress","owner":"ann","metadata":{"failure":"exit 1"}"#),
            task(3, r#""status":"in_progress","owner":"ann","blockedBy":["1"]"#),
            task(4, r#""status":"in_progress","owner":"ann""#),
        ];
        assert_eq!(resumable_task(&all, &ann).map(|task| task.id.number()), Some(4));
        assert_eq!(resumable_task(&all[..3], &ann), None);
    }
}
