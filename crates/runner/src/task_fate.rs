//! What follows from the task list and from who lives: what is given back, and whether there is anything left
//! to wait for. A plain function: the files are read and changed elsewhere, and each look decides anew.

use crate::run_file::{RunFile, TaskSpec};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::UNREADABLE_STATUS;

/// How often a failed task was given back, in its metadata: a run that is taken up again counts on.
pub(crate) const RETRIES_KEY: &str = "retries";
/// How often a task was given back because its worker died.
pub(crate) const ABANDONED_KEY: &str = "abandoned";
/// The failure of a turn that somebody ended on purpose: that is no reason to begin it again.
const INTERRUPTED: &str = "interrupted";

/// Whether a member can still do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// It runs.
    Running,
    /// It is about to be started again.
    Respawning,
    /// It rests, until somebody brings it back.
    Suspended,
    /// For good.
    Gone,
}

/// Everybody who is or was on the team, but for the lead; and the tasks that somebody's turn is on.
#[derive(Debug, Default)]
pub(crate) struct MemberStates(pub(crate) BTreeMap<AgentName, MemberState>, pub(crate) BTreeSet<TaskId>);

impl MemberStates {
    /// A person works as the lead, and is nobody's to watch.
    pub(crate) fn state_of(&self, name: &AgentName) -> MemberState {
        if name.is_lead() {
            MemberState::Running
        } else {
            self.0.get(name).copied().unwrap_or(MemberState::Gone)
        }
    }

    /// Somebody is about to be started again.
    pub(crate) fn any_respawning(&self) -> bool {
        self.0.values().any(|life| *life == MemberState::Respawning)
    }

    /// Somebody has what is its own for as long as nobody brings it back.
    pub(crate) fn any_suspended(&self) -> bool {
        self.0.values().any(|life| *life == MemberState::Suspended)
    }

    fn any_left(&self) -> bool {
        self.0.values().any(|life| *life != MemberState::Gone)
    }
}

/// What the file says about its tasks beyond what they say themselves.
#[derive(Debug, Default)]
pub(crate) struct RetryRules {
    /// Whose each task is alone, by its key.
    pub(crate) owners: HashMap<String, AgentName>,
    /// How often a failed one is given back.
    pub(crate) retries: u32,
}

impl RetryRules {
    /// Those of a file.
    pub(crate) fn from_file(file: &RunFile) -> RetryRules {
        let owner = |plan: &TaskSpec| Some((plan.key.clone(), plan.owner.clone()?));
        RetryRules { owners: file.tasks.iter().filter_map(owner).collect(), retries: file.policy.retries }
    }
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFate {
    /// It is done.
    Completed,
    /// Somebody works on it.
    Running,
    /// Somebody can take it, now or later.
    Waiting,
    /// Its work failed, for good.
    Failed(String),
    /// Nobody will ever begin it.
    Unreachable(String),
}

impl TaskFate {
    /// Whether there is nothing to wait for.
    pub fn is_final(&self) -> bool {
        !matches!(self, TaskFate::Running | TaskFate::Waiting)
    }
}

/// A task that becomes pending again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRelease {
    /// Which.
    pub(crate) id: TaskId,
    /// To whom alone.
    pub(crate) to: Option<AgentName>,
    /// `RETRIES_KEY` or `ABANDONED_KEY`.
    pub(crate) why: &'static str,
    /// How often it was then.
    pub(crate) times: u32,
}

/// What one look came to.
#[derive(Debug, Default)]
pub(crate) struct RunDecision {
    /// To be carried out.
    pub(crate) releases: Vec<TaskRelease>,
    /// Of every task of the list that is not an agent's tracking task.
    pub(crate) fates: BTreeMap<TaskId, TaskFate>,
}

/// Looks at the whole list.
pub(crate) fn evaluate(rules: &RetryRules, tasks: &[Task], lives: &MemberStates) -> RunDecision {
    let mut decision = RunDecision::default();
    for task in tasks.iter().filter(|task| !task.is_internal() && task.status != TaskStatus::Deleted) {
        let (fate, give_back) = evaluate_task(rules, task, lives);
        decision.fates.insert(task.id, fate);
        decision.releases.extend(give_back);
    }
    propagate_failures(tasks, &mut decision.fates);
    decision
}

/// The key that the file gives a task.
pub(crate) fn run_file_key(task: &Task) -> Option<&str> {
    task.metadata.as_ref()?.get("key")?.as_str()
}

/// How often it was given back for this reason.
pub(crate) fn release_count(task: &Task, why: &str) -> u32 {
    let count = task.metadata.as_ref().and_then(|metadata| metadata.get(why)).and_then(Value::as_u64);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// A task without regard to what it waits for.
fn evaluate_task(rules: &RetryRules, task: &Task, lives: &MemberStates) -> (TaskFate, Option<TaskRelease>) {
    match (&task.status, task.failure()) {
        (TaskStatus::Completed | TaskStatus::Deleted, _) => (TaskFate::Completed, None),
        // Its agent has said so itself, and is still at it.
        (TaskStatus::InProgress, Some(_)) if lives.1.contains(&task.id) => (TaskFate::Running, None),
        (TaskStatus::InProgress, Some(why)) => {
            let again = rules.retries > release_count(task, RETRIES_KEY) && why != INTERRUPTED;
            release_or_fail(rules, task, lives, RETRIES_KEY, again, why)
        }
        (TaskStatus::InProgress, None) => match task.owner.as_ref().map(|owner| lives.state_of(owner)) {
            Some(MemberState::Running | MemberState::Respawning | MemberState::Suspended) => {
                (TaskFate::Running, None)
            }
            Some(MemberState::Gone) | None => {
                let again = rules.retries.max(1) > release_count(task, ABANDONED_KEY);
                release_or_fail(rules, task, lives, ABANDONED_KEY, again, "its worker died")
            }
        },
        (TaskStatus::Pending, _) => (pending_fate(task, lives), None),
        // Who writes it may be held up; where nobody is, it is the end of a team that rests.
        (TaskStatus::Other(status), _) if status == UNREADABLE_STATUS => (TaskFate::Waiting, None),
        (TaskStatus::Other(status), _) => (TaskFate::Unreachable(format!("its file says {status}")), None),
    }
}

/// A task that nobody works on any more: somebody may get it again, or `failure` is how it ended.
fn release_or_fail(
    rules: &RetryRules,
    task: &Task,
    lives: &MemberStates,
    why: &'static str,
    again: bool,
    failure: &str,
) -> (TaskFate, Option<TaskRelease>) {
    let to = run_file_key(task).and_then(|key| rules.owners.get(key)).cloned();
    let taker = match &to {
        Some(owner) => lives.state_of(owner),
        None if lives.any_left() => MemberState::Running,
        None => MemberState::Gone,
    };
    let give_back = TaskRelease { id: task.id, to, why, times: release_count(task, why) + 1 };
    match taker {
        MemberState::Running if again => (TaskFate::Waiting, Some(give_back)),
        // It is no member at this moment, and can own nothing.
        MemberState::Respawning | MemberState::Suspended if again => (TaskFate::Waiting, None),
        _ => (TaskFate::Failed(failure.to_owned()), None),
    }
}

fn pending_fate(task: &Task, lives: &MemberStates) -> TaskFate {
    match &task.owner {
        Some(owner) if lives.state_of(owner) == MemberState::Gone => {
            TaskFate::Unreachable(format!("{owner}, whose it is, is gone"))
        }
        None if !lives.any_left() => TaskFate::Unreachable("nobody is left to do it".to_owned()),
        _ => TaskFate::Waiting,
    }
}

/// What waits for something that will never be done will never be done.
fn propagate_failures(tasks: &[Task], fates: &mut BTreeMap<TaskId, TaskFate>) {
    let mut waiting_for: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for task in tasks {
        // Both ends: a crash may have left a link half written.
        task.blocked_by.iter().for_each(|blocker| waiting_for.entry(*blocker).or_default().push(task.id));
        waiting_for.entry(task.id).or_default().extend(&task.blocks);
    }
    let keys: HashMap<TaskId, &str> =
        tasks.iter().filter_map(|task| Some((task.id, run_file_key(task)?))).collect();
    let named = |id: TaskId| keys.get(&id).map_or_else(|| format!("task {id}"), |key| (*key).to_owned());
    let hopeless = |fate: &TaskFate| matches!(fate, TaskFate::Failed(_) | TaskFate::Unreachable(_));
    let mut open: Vec<TaskId> = fates.iter().filter(|(_, fate)| hopeless(fate)).map(|(id, _)| *id).collect();
    while let Some(blocker) = open.pop() {
        for id in waiting_for.get(&blocker).into_iter().flatten() {
            if let Some(fate @ TaskFate::Waiting) = fates.get_mut(id) {
                *fate = TaskFate::Unreachable(format!("it waits for {}", named(blocker)));
                open.push(*id);
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

    fn member_states(all: &[(&str, MemberState)]) -> MemberStates {
        let all = all.iter().map(|(name, life)| (AgentName::new_unchecked(name), *life)).collect();
        MemberStates(all, BTreeSet::new())
    }

    fn rules(retries: u32) -> RetryRules {
        let owners = [("hers".to_owned(), AgentName::new_unchecked("ann"))];
        RetryRules { owners: owners.into_iter().collect(), retries }
    }

    /// Why, for the how-manieth time, and to whom.
    type Release = (&'static str, u32, Option<String>);

    /// What becomes of one task, and to whom it is given back for the how-manieth time.
    fn one(rules: &RetryRules, task: Task, lives: &MemberStates) -> (TaskFate, Option<Release>) {
        let id = task.id;
        let mut decision = evaluate(rules, &[task], lives);
        let given = decision.releases.pop();
        let given = given.map(|given| (given.why, given.times, given.to.map(|name| name.to_string())));
        (decision.fates.remove(&id).unwrap(), given)
    }

    use MemberState::{Gone, Respawning, Running as Lives_, Suspended};

    #[test]
    fn a_failed_task_is_given_back_as_often_as_the_policy_says() {
        let both = member_states(&[("ann", Lives_), ("bob", Lives_)]);
        let failed =
            |metadata: &str| task(1, "in_progress", "bob", "", &format!(r#""failure":"exit 1"{metadata}"#));
        assert_eq!(one(&rules(0), failed(""), &both), (TaskFate::Failed("exit 1".into()), None));
        assert_eq!(one(&rules(2), failed(""), &both), (TaskFate::Waiting, Some((RETRIES_KEY, 1, None))));
        assert_eq!(
            one(&rules(2), failed(r#","retries":1"#), &both),
            (TaskFate::Waiting, Some((RETRIES_KEY, 2, None)))
        );
        assert_eq!(
            one(&rules(2), failed(r#","retries":2"#), &both),
            (TaskFate::Failed("exit 1".into()), None)
        );
        let interrupted = task(1, "in_progress", "bob", "", r#""failure":"interrupted""#);
        assert_eq!(one(&rules(2), interrupted, &both), (TaskFate::Failed("interrupted".into()), None));
    }

    #[test]
    fn a_failed_task_is_not_given_back_while_its_turn_goes_on() {
        let mut bob = member_states(&[("bob", Lives_)]);
        let failed = || task(1, "in_progress", "bob", "", r#""failure":"no idea""#);
        bob.1.insert(failed().id);
        assert_eq!(one(&rules(1), failed(), &bob), (TaskFate::Running, None));
        bob.1.clear();
        assert_eq!(one(&rules(1), failed(), &bob), (TaskFate::Waiting, Some((RETRIES_KEY, 1, None))));
    }

    #[test]
    fn a_task_of_the_files_owner_goes_back_to_it_alone() {
        let hers = || task(1, "in_progress", "ann", "", r#""key":"hers","failure":"exit 1""#);
        let to_ann = Some((RETRIES_KEY, 1, Some("ann".to_owned())));
        assert_eq!(one(&rules(1), hers(), &member_states(&[("ann", Lives_)])), (TaskFate::Waiting, to_ann));
        assert_eq!(one(&rules(1), hers(), &member_states(&[("ann", Respawning)])), (TaskFate::Waiting, None));
        let without_her = member_states(&[("ann", Gone), ("bob", Lives_)]);
        assert_eq!(one(&rules(1), hers(), &without_her), (TaskFate::Failed("exit 1".into()), None));
    }

    #[test]
    fn a_task_whose_worker_died_is_for_the_others() {
        let left = |metadata: &str| task(1, "in_progress", "ann", "", metadata);
        let died = || TaskFate::Failed("its worker died".into());
        let others = member_states(&[("ann", Gone), ("bob", Lives_)]);
        assert_eq!(one(&rules(0), left(""), &others), (TaskFate::Waiting, Some((ABANDONED_KEY, 1, None))));
        assert_eq!(one(&rules(0), left(r#""abandoned":1"#), &others), (died(), None));
        assert_eq!(
            one(&rules(3), left(r#""abandoned":2"#), &others),
            (TaskFate::Waiting, Some((ABANDONED_KEY, 3, None)))
        );
        assert_eq!(one(&rules(0), left(""), &member_states(&[("ann", Gone)])), (died(), None));
        assert_eq!(one(&rules(0), left(r#""key":"hers""#), &others), (died(), None));
        assert_eq!(
            one(&rules(0), left(""), &member_states(&[("ann", Respawning)])),
            (TaskFate::Running, None)
        );
        assert_eq!(
            one(&rules(0), left(""), &member_states(&[("ann", Suspended)])),
            (TaskFate::Running, None)
        );
        assert_eq!(one(&rules(0), left(""), &member_states(&[("ann", Lives_)])), (TaskFate::Running, None));
    }

    #[test]
    fn what_nobody_can_take_is_over() {
        let pending = |owner: &str| task(1, "pending", owner, "", "");
        let bob = member_states(&[("ann", Gone), ("bob", Lives_)]);
        assert_eq!(one(&rules(0), pending(""), &bob).0, TaskFate::Waiting);
        assert_eq!(one(&rules(0), pending("bob"), &bob).0, TaskFate::Waiting);
        assert_eq!(one(&rules(0), pending("team-lead"), &bob).0, TaskFate::Waiting);
        assert!(matches!(one(&rules(0), pending("ann"), &bob).0, TaskFate::Unreachable(_)));
        assert!(matches!(
            one(&rules(0), pending(""), &member_states(&[("ann", Gone)])).0,
            TaskFate::Unreachable(_)
        ));
        assert!(matches!(one(&rules(0), task(1, "odd", "", "", ""), &bob).0, TaskFate::Unreachable(_)));
        assert_eq!(one(&rules(0), task(1, UNREADABLE_STATUS, "", "", ""), &bob).0, TaskFate::Waiting);
    }

    #[test]
    fn what_waits_for_a_failure_is_over_however_far_behind_it_is() {
        let bob = member_states(&[("bob", Lives_)]);
        let tasks = [
            task(1, "in_progress", "bob", "", r#""failure":"exit 1""#),
            task(2, "pending", "", r#""1""#, ""),
            task(3, "pending", "", r#""2""#, ""),
            task(4, "pending", "", "", ""),
            task(5, "completed", "bob", r#""1""#, ""),
            task(6, "in_progress", "", "", r#""_internal":true"#),
        ];
        let fates = evaluate(&rules(0), &tasks, &bob).fates;
        let over: Vec<bool> = fates.values().map(TaskFate::is_final).collect();
        assert_eq!(over, [true, true, true, false, true]);
        assert_eq!(fates[&tasks[2].id], TaskFate::Unreachable("it waits for task 2".into()));
        let again = evaluate(&rules(1), &tasks, &bob).fates;
        assert_eq!(again.values().filter(|fate| fate.is_final()).count(), 1);
    }

    #[test]
    fn a_long_chain_behind_a_failure_is_one_pass() {
        let mut tasks = vec![task(1, "in_progress", "bob", "", r#""failure":"x""#)];
        tasks.extend((2..5000).map(|id| task(id, "pending", "", &format!(r#""{}""#, id - 1), "")));
        let fates = evaluate(&rules(0), &tasks, &member_states(&[("bob", Lives_)])).fates;
        assert!(fates.values().all(TaskFate::is_final));
    }
}
