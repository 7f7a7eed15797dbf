//! Selects the task that a member starts next. A member that claims a task and the daemon that
//! suggests a task use the same rule.

use super::task_and_task_status::{Task, TaskStatus};
use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::MemberName;
use std::borrow::Borrow;

/// The task that `owner` starts next, among the tasks that can start now. A task that only `owner`
/// may claim comes before a task that any member may claim, and then a lower id before a higher
/// one. A member that is started for one task gets no other task. `all` is ordered by id.
pub fn next_task<T: Borrow<Task>>(all: &[T], owner: &MemberName) -> Option<TaskId> {
    let (mut available, mut is_once) = (None, false);
    for task in all.iter().map(Borrow::borrow) {
        is_once |= task.once_member().as_ref() == Some(owner);
        match task.claimer() {
            Some(other) if other == *owner && task.is_startable(all) => return Some(task.id),
            None if available.is_none() && task.is_startable(all) => available = Some(task.id),
            _ => {}
        }
    }
    available.filter(|_| !is_once)
}

/// The task with the lowest id that `owner` has in progress and can continue after an earlier spawn
/// ended. Failed tasks and tasks with open blockers are skipped.
pub fn resumable_task<'a, T: Borrow<Task>>(all: &'a [T], owner: &MemberName) -> Option<&'a Task> {
    let is_resumable = |task: &&Task| {
        task.status == TaskStatus::InProgress
            && task.owner.as_ref() == Some(owner)
            && !task.is_internal()
            && task.failure().is_none()
            && task.open_blockers(all).is_empty()
    };
    all.iter().map(Borrow::borrow).find(is_resumable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, more: &str) -> Task {
        Task::parse(&format!(r#"{{"id":"{id}","subject":"s",{more}}}"#)).unwrap()
    }

    #[test]
    fn own_task_comes_first_then_the_lowest_available_one() {
        let (ann, bob) = (MemberName::new_unchecked("ann"), MemberName::new_unchecked("bob"));
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
        let next = |all: &[Task], owner| next_task(all, owner).map(TaskId::number);
        assert_eq!((next(&all, &ann), next(&all, &bob)), (Some(8), Some(3)));
        all.pop();
        assert_eq!(next(&all, &ann), Some(5), "an own task with an open blocker cannot start");
        assert_eq!(next(&all[..4], &ann), None);
    }

    #[test]
    fn member_for_one_task_gets_this_task_and_no_other() {
        let (ann, bob) = (MemberName::new_unchecked("ann"), MemberName::new_unchecked("bob"));
        let once = r#""metadata":{"once":true,"run_owner":"ann"}"#;
        let other = r#""status":"pending""#;
        let all = |status: &str| [task(1, &format!(r#""status":"{status}",{once}"#)), task(2, other)];
        let next = |all: &[Task], owner| next_task(all, owner).map(TaskId::number);
        assert_eq!((next(&all("pending"), &ann), next(&all("pending"), &bob)), (Some(1), Some(2)));
        assert_eq!((next(&all("completed"), &ann), next(&all("completed"), &bob)), (None, Some(2)));
    }

    #[test]
    fn resumable_task_has_not_failed_and_has_no_open_blocker() {
        let ann = MemberName::new_unchecked("ann");
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
