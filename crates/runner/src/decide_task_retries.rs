//! Decides from the task list and the members' states what the run does: which tasks it releases
//! (makes pending again), and whether it waits for a task.
//!
//! The decision is a pure function of the last snapshot of the team. Other modules read and change
//! the files.

use crate::run_file::{RunFile, TaskSpec};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{ABANDONED_KEY, RETRIES_KEY, Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::UNREADABLE_STATUS;

/// The failure text of a task whose turn a person interrupted. Such a task is not retried.
const INTERRUPTED: &str = "interrupted";

/// Whether a member can still do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// The member runs.
    Running,
    /// The member is about to be started again.
    Respawning,
    /// The member does not run until a person resumes it.
    Suspended,
    /// The member has ended, or was never spawned.
    Gone,
}

/// The states of all members and past members, except the lead.
#[derive(Debug, Default)]
pub(crate) struct MemberStates {
    pub(crate) states: BTreeMap<MemberName, MemberState>,
    /// The tasks on which members are working in their current turns.
    pub(crate) turn_tasks: BTreeSet<TaskId>,
}

impl MemberStates {
    /// The state of the member `name`. The lead always counts as running, because a person can act
    /// as the lead.
    pub(crate) fn state_of(&self, name: &MemberName) -> MemberState {
        if name.is_lead() {
            MemberState::Running
        } else {
            self.states.get(name).copied().unwrap_or(MemberState::Gone)
        }
    }

    /// Whether some member is about to be started again.
    pub(crate) fn any_respawning(&self) -> bool {
        self.states.values().any(|state| *state == MemberState::Respawning)
    }

    /// Whether some member is suspended.
    pub(crate) fn any_suspended(&self) -> bool {
        self.states.values().any(|state| *state == MemberState::Suspended)
    }

    fn any_left(&self) -> bool {
        self.states.values().any(|state| *state != MemberState::Gone)
    }
}

/// The parts of the run file about tasks that are not stored in the task list.
#[derive(Debug, Default)]
pub(crate) struct RetryRules {
    /// For the key of a task: the only member that may do the task.
    pub(crate) owners: HashMap<String, MemberName>,
    /// How often a failed task is released, so that it is tried again.
    pub(crate) retries: u32,
}

impl RetryRules {
    /// The rules of a run file.
    pub(crate) fn from_file(file: &RunFile) -> RetryRules {
        let owner = |spec: &TaskSpec| Some((spec.key.clone(), spec.owner.clone()?));
        RetryRules { owners: file.tasks.iter().filter_map(owner).collect(), retries: file.policy.retries }
    }

    /// The only member that may do the task. `None` if any member may do it.
    pub(crate) fn owner_of(&self, task: &Task) -> Option<MemberName> {
        self.owners.get(run_file_key(task)?).cloned()
    }
}

/// The state of a task, as far as the run is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFate {
    /// The task is completed.
    Completed,
    /// A member works on the task.
    Running,
    /// A member can claim the task, now or later.
    Waiting,
    /// The task has failed and is not retried. The text is the reason.
    Failed(String),
    /// No member will ever start the task. The text is the reason.
    Unreachable(String),
}

impl TaskFate {
    /// Changes the text that says why the task failed or can never start. Callers use this to
    /// escape control characters, because an agent may have written the text.
    pub(crate) fn with_text(&self, change: impl Fn(&str) -> String) -> TaskFate {
        match self {
            TaskFate::Failed(reason) => TaskFate::Failed(change(reason)),
            TaskFate::Unreachable(reason) => TaskFate::Unreachable(change(reason)),
            other => other.clone(),
        }
    }

    /// Whether nothing more will be done for the task in this run: it is completed, has failed for
    /// good, or can never start.
    pub fn is_final(&self) -> bool {
        !matches!(self, TaskFate::Running | TaskFate::Waiting)
    }
}

/// Why a task becomes pending again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseReason {
    /// The task failed.
    Failed,
    /// The task's owner has exited.
    Abandoned,
}

impl ReleaseReason {
    /// The metadata key that counts releases for this reason. A resumed run continues the count.
    pub(crate) fn metadata_key(self) -> &'static str {
        match self {
            ReleaseReason::Failed => RETRIES_KEY,
            ReleaseReason::Abandoned => ABANDONED_KEY,
        }
    }
}

/// A task that becomes pending again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRelease {
    pub(crate) id: TaskId,
    /// The only member that may claim the task. `None` if any member may claim it.
    pub(crate) owner: Option<MemberName>,
    pub(crate) reason: ReleaseReason,
    /// How often the task was released for this reason, including this release.
    pub(crate) count: u32,
}

impl TaskRelease {
    /// The release of `task`, for the member that must do it according to `rules`.
    pub(crate) fn new(rules: &RetryRules, task: &Task, reason: ReleaseReason) -> TaskRelease {
        let count = release_count(task, reason) + 1;
        // A member that is started for the task may have ended. It claims the task itself.
        let owner = rules.owner_of(task).filter(|_| task.once_member().is_none());
        TaskRelease { id: task.id, owner, reason, count }
    }
}

/// The decision that follows from one snapshot.
#[derive(Debug, Default)]
pub(crate) struct RunDecision {
    /// The tasks to release.
    pub(crate) releases: Vec<TaskRelease>,
    /// The fate of every task that is neither internal nor deleted.
    pub(crate) fates: BTreeMap<TaskId, TaskFate>,
}

/// Decides for all tasks.
pub(crate) fn evaluate(rules: &RetryRules, tasks: &[Task], members: &MemberStates) -> RunDecision {
    let mut decision = RunDecision::default();
    for task in tasks.iter().filter(|task| !task.is_internal() && task.status != TaskStatus::Deleted) {
        let (fate, release) = evaluate_task(rules, task, members);
        decision.fates.insert(task.id, fate);
        decision.releases.extend(release);
    }
    propagate_failures(tasks, &mut decision.fates);
    decision
}

/// The task's key in the run file. `None` for a task that an agent created.
pub fn run_file_key(task: &Task) -> Option<&str> {
    task.metadata.as_ref()?.get("key")?.as_str()
}

/// How often the task was released for this reason.
fn release_count(task: &Task, reason: ReleaseReason) -> u32 {
    let metadata = task.metadata.as_ref();
    let count = metadata.and_then(|metadata| metadata.get(reason.metadata_key())).and_then(Value::as_u64);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// Decides for one task, without regard to its blockers.
fn evaluate_task(rules: &RetryRules, task: &Task, members: &MemberStates) -> (TaskFate, Option<TaskRelease>) {
    match (&task.status, task.failure()) {
        (TaskStatus::Completed | TaskStatus::Deleted, _) => (TaskFate::Completed, None),
        // The agent has marked its task as failed, but its turn is still running.
        (TaskStatus::InProgress, Some(_)) if members.turn_tasks.contains(&task.id) => {
            (TaskFate::Running, None)
        }
        (TaskStatus::InProgress, Some(failure)) => {
            let retries = if failure == INTERRUPTED { 0 } else { rules.retries };
            let release = TaskRelease::new(rules, task, ReleaseReason::Failed);
            release_or_fail(task, release, retries, members, failure)
        }
        (TaskStatus::InProgress, None) => match task.owner.as_ref().map(|owner| members.state_of(owner)) {
            Some(MemberState::Running | MemberState::Respawning | MemberState::Suspended) => {
                (TaskFate::Running, None)
            }
            Some(MemberState::Gone) | None => {
                let release = TaskRelease::new(rules, task, ReleaseReason::Abandoned);
                release_or_fail(task, release, rules.retries.max(1), members, "its worker died")
            }
        },
        (TaskStatus::Pending, _) => (pending_fate(task, members), None),
        // The task's file cannot be parsed. Another program may be writing it, so the run waits. A
        // file that stays damaged does not keep the run waiting forever, because the run ends a
        // team that makes no progress.
        (TaskStatus::Other(status), _) if status == UNREADABLE_STATUS => (TaskFate::Waiting, None),
        (TaskStatus::Other(status), _) => (TaskFate::Unreachable(format!("its file says {status}")), None),
    }
}

/// Decides what happens to a task that has failed, or whose owner has exited. The task has failed
/// for good if the run has already released it `max_releases` times, or if all members that may
/// claim it are gone. If the only member that may claim it is respawning or suspended, the run
/// waits for this member. In all other cases, the run makes the task pending again.
fn release_or_fail(
    task: &Task,
    release: TaskRelease,
    max_releases: u32,
    members: &MemberStates,
    failure: &str,
) -> (TaskFate, Option<TaskRelease>) {
    let claimer = match &release.owner {
        // The run starts this member again.
        _ if task.once_member().is_some() => MemberState::Running,
        Some(owner) => members.state_of(owner),
        None if members.any_left() => MemberState::Running,
        None => MemberState::Gone,
    };
    match claimer {
        _ if release.count > max_releases => (TaskFate::Failed(failure.to_owned()), None),
        MemberState::Running => (TaskFate::Waiting, Some(release)),
        // The only member that may do the task is respawning or suspended. The run makes the task
        // pending later, when this member runs again. Until then, the task list would not accept
        // the member as the task's owner.
        MemberState::Respawning | MemberState::Suspended => (TaskFate::Waiting, None),
        MemberState::Gone => (TaskFate::Failed(failure.to_owned()), None),
    }
}

fn pending_fate(task: &Task, members: &MemberStates) -> TaskFate {
    match &task.owner {
        // The run starts this member when the task can start.
        _ if task.once_member().is_some() => TaskFate::Waiting,
        Some(owner) if members.state_of(owner) == MemberState::Gone => {
            TaskFate::Unreachable(format!("its owner {owner} is gone"))
        }
        None if !members.any_left() => TaskFate::Unreachable("no member is left to do it".to_owned()),
        _ => TaskFate::Waiting,
    }
}

/// Marks every waiting task as unreachable that is blocked by a failed or unreachable task.
fn propagate_failures(tasks: &[Task], fates: &mut BTreeMap<TaskId, TaskFate>) {
    let mut blocked_tasks: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for task in tasks {
        // A dependency is stored in the files of both tasks. Both files are read, because after a
        // crash only one of them may have the dependency.
        task.blocked_by.iter().for_each(|blocker| blocked_tasks.entry(*blocker).or_default().push(task.id));
        blocked_tasks.entry(task.id).or_default().extend(&task.blocks);
    }
    let keys: HashMap<TaskId, &str> =
        tasks.iter().filter_map(|task| Some((task.id, run_file_key(task)?))).collect();
    let name = |id: TaskId| keys.get(&id).map_or_else(|| format!("task {id}"), |key| (*key).to_owned());
    let is_failure = |fate: &TaskFate| matches!(fate, TaskFate::Failed(_) | TaskFate::Unreachable(_));
    let mut queue: Vec<TaskId> =
        fates.iter().filter(|(_, fate)| is_failure(fate)).map(|(id, _)| *id).collect();
    while let Some(blocker) = queue.pop() {
        for id in blocked_tasks.get(&blocker).into_iter().flatten() {
            if let Some(fate @ TaskFate::Waiting) = fates.get_mut(id) {
                *fate = TaskFate::Unreachable(format!("it waits for {}", name(blocker)));
                queue.push(*id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, status: &str, owner: &str, blocked_by: &str, metadata: &str) -> Task {
        let owner = if owner.is_empty() { String::new() } else { format!(r#""owner":"{owner}","#) };
        let text = format!(
            r#"{{"id":"{id}","subject":"x","status":"{status}",{owner}"blocks":[],"blockedBy":[{blocked_by}],"metadata":{{{metadata}}}}}"#
        );
        Task::parse(&text).unwrap()
    }

    fn member_states(members: &[(&str, MemberState)]) -> MemberStates {
        let states = members.iter().map(|(name, state)| (MemberName::new_unchecked(name), *state));
        MemberStates { states: states.collect(), turn_tasks: BTreeSet::new() }
    }

    fn rules(retries: u32) -> RetryRules {
        let owners = [("for-ann".to_owned(), MemberName::new_unchecked("ann"))];
        RetryRules { owners: owners.into_iter().collect(), retries }
    }

    /// Evaluates a single task. Returns its fate and its release.
    fn evaluate_one(
        rules: &RetryRules,
        task: Task,
        members: &MemberStates,
    ) -> (TaskFate, Option<TaskRelease>) {
        let id = task.id;
        let mut decision = evaluate(rules, &[task], members);
        (decision.fates.remove(&id).unwrap(), decision.releases.pop())
    }

    /// The fate `Waiting` of task 1, and its release to any member.
    fn waiting_with_release(reason: ReleaseReason, count: u32) -> (TaskFate, Option<TaskRelease>) {
        let id = TaskId::from_number(1).unwrap();
        (TaskFate::Waiting, Some(TaskRelease { id, owner: None, reason, count }))
    }

    /// The fate `Failed`, without a release.
    fn failed_without_release(reason: &str) -> (TaskFate, Option<TaskRelease>) {
        (TaskFate::Failed(reason.to_owned()), None)
    }

    use MemberState::{Gone, Respawning, Running, Suspended};

    #[test]
    fn failed_task_is_retried_as_often_as_the_policy_says() {
        let ann_and_bob = member_states(&[("ann", Running), ("bob", Running)]);
        let failed_task =
            |metadata: &str| task(1, "in_progress", "bob", "", &format!(r#""failure":"exit 1"{metadata}"#));
        let failed_after_retries = |count: u32| failed_task(&format!(r#","retries":{count}"#));
        assert_eq!(evaluate_one(&rules(0), failed_task(""), &ann_and_bob), failed_without_release("exit 1"));
        assert_eq!(
            evaluate_one(&rules(2), failed_task(""), &ann_and_bob),
            waiting_with_release(ReleaseReason::Failed, 1)
        );
        assert_eq!(
            evaluate_one(&rules(2), failed_after_retries(1), &ann_and_bob),
            waiting_with_release(ReleaseReason::Failed, 2)
        );
        assert_eq!(
            evaluate_one(&rules(2), failed_after_retries(2), &ann_and_bob),
            failed_without_release("exit 1")
        );
        let interrupted = task(1, "in_progress", "bob", "", r#""failure":"interrupted""#);
        assert_eq!(evaluate_one(&rules(2), interrupted, &ann_and_bob), failed_without_release("interrupted"));
    }

    #[test]
    fn failed_task_is_not_retried_before_its_turn_ends() {
        let mut bob = member_states(&[("bob", Running)]);
        let failed_task = || task(1, "in_progress", "bob", "", r#""failure":"no idea""#);
        bob.turn_tasks.insert(failed_task().id);
        assert_eq!(evaluate_one(&rules(1), failed_task(), &bob), (TaskFate::Running, None));
        bob.turn_tasks.clear();
        assert_eq!(
            evaluate_one(&rules(1), failed_task(), &bob),
            waiting_with_release(ReleaseReason::Failed, 1)
        );
    }

    #[test]
    fn task_with_an_owner_in_the_file_is_released_to_that_owner() {
        let for_ann = || task(1, "in_progress", "ann", "", r#""key":"for-ann","failure":"exit 1""#);
        let evaluate_for_ann =
            |members: &[(&str, MemberState)]| evaluate_one(&rules(1), for_ann(), &member_states(members));
        let (fate, release) = evaluate_for_ann(&[("ann", Running)]);
        assert_eq!(fate, TaskFate::Waiting);
        assert_eq!(release.unwrap().owner, Some(MemberName::new_unchecked("ann")));
        assert_eq!(evaluate_for_ann(&[("ann", Respawning)]), (TaskFate::Waiting, None));
        assert_eq!(evaluate_for_ann(&[("ann", Gone), ("bob", Running)]), failed_without_release("exit 1"));
    }

    #[test]
    fn abandoned_task_is_released_to_the_other_members() {
        let started = |metadata: &str| task(1, "in_progress", "ann", "", metadata);
        let worker_died = || failed_without_release("its worker died");
        let only_bob = member_states(&[("ann", Gone), ("bob", Running)]);
        assert_eq!(
            evaluate_one(&rules(0), started(""), &only_bob),
            waiting_with_release(ReleaseReason::Abandoned, 1)
        );
        assert_eq!(evaluate_one(&rules(0), started(r#""abandoned":1"#), &only_bob), worker_died());
        assert_eq!(
            evaluate_one(&rules(3), started(r#""abandoned":2"#), &only_bob),
            waiting_with_release(ReleaseReason::Abandoned, 3)
        );
        assert_eq!(evaluate_one(&rules(0), started(""), &member_states(&[("ann", Gone)])), worker_died());
        assert_eq!(evaluate_one(&rules(0), started(r#""key":"for-ann""#), &only_bob), worker_died());
        for state in [Respawning, Suspended, Running] {
            let ann = member_states(&[("ann", state)]);
            assert_eq!(evaluate_one(&rules(0), started(""), &ann), (TaskFate::Running, None));
        }
    }

    #[test]
    fn pending_task_that_no_member_can_claim_is_unreachable() {
        let pending = |owner: &str| task(1, "pending", owner, "", "");
        let bob = member_states(&[("ann", Gone), ("bob", Running)]);
        assert_eq!(evaluate_one(&rules(0), pending(""), &bob).0, TaskFate::Waiting);
        assert_eq!(evaluate_one(&rules(0), pending("bob"), &bob).0, TaskFate::Waiting);
        assert_eq!(evaluate_one(&rules(0), pending("team-lead"), &bob).0, TaskFate::Waiting);
        assert!(matches!(evaluate_one(&rules(0), pending("ann"), &bob).0, TaskFate::Unreachable(_)));
        assert!(matches!(
            evaluate_one(&rules(0), pending(""), &member_states(&[("ann", Gone)])).0,
            TaskFate::Unreachable(_)
        ));
        assert!(matches!(
            evaluate_one(&rules(0), task(1, "odd", "", "", ""), &bob).0,
            TaskFate::Unreachable(_)
        ));
        assert_eq!(
            evaluate_one(&rules(0), task(1, UNREADABLE_STATUS, "", "", ""), &bob).0,
            TaskFate::Waiting
        );
    }

    #[test]
    fn tasks_behind_a_failed_task_are_unreachable() {
        let bob = member_states(&[("bob", Running)]);
        let tasks = [
            task(1, "in_progress", "bob", "", r#""failure":"exit 1""#),
            task(2, "pending", "", r#""1""#, ""),
            task(3, "pending", "", r#""2""#, ""),
            task(4, "pending", "", "", ""),
            task(5, "completed", "bob", r#""1""#, ""),
            task(6, "in_progress", "", "", r#""_internal":true"#),
        ];
        let fates = evaluate(&rules(0), &tasks, &bob).fates;
        let is_final: Vec<bool> = fates.values().map(TaskFate::is_final).collect();
        assert_eq!(is_final, [true, true, true, false, true]);
        assert_eq!(fates[&tasks[2].id], TaskFate::Unreachable("it waits for task 2".into()));
        let fates = evaluate(&rules(1), &tasks, &bob).fates;
        assert_eq!(fates.values().filter(|fate| fate.is_final()).count(), 1);
    }

    #[test]
    fn long_chain_behind_a_failed_task_takes_one_pass() {
        let mut tasks = vec![task(1, "in_progress", "bob", "", r#""failure":"x""#)];
        tasks.extend((2..5000).map(|id| task(id, "pending", "", &format!(r#""{}""#, id - 1), "")));
        let fates = evaluate(&rules(0), &tasks, &member_states(&[("bob", Running)])).fates;
        assert!(fates.values().all(TaskFate::is_final));
    }
}
