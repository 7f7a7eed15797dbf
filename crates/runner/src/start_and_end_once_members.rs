//! Starts and shuts down the members that work on a single task (`kind = "once"` in the run file).
//! Such a member starts when its task can start, and is shut down when the task has ended.

use crate::create_or_resume_team::spawn_missing;
use crate::decide_task_retries::{MemberState, MemberStates, RunDecision, TaskFate};
use crate::mutable_run_state::RunState;
use crate::parts_that_all_run_steps_use::RunContext;
use crate::team_snapshot;
use protocol::control_socket::{MemberSelection, Request, ShutdownMembersRequest, SpawnRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use store::Error;

/// What is to be done with members of kind once.
#[derive(Debug, Default, PartialEq, Eq)]
struct OnceMemberChanges {
    start: Vec<MemberName>,
    shut_down: Vec<MemberName>,
}

/// Starts and shuts down members that run for only one task (`kind = "once"`). The last snapshot
/// shows which members must start or end. A shutdown is requested once per member. If the budget is
/// exhausted, no member is started. A member that cannot be started counts as a failed attempt of
/// its task: the task is retried like any other, and the run goes on.
pub(crate) fn start_and_end_once_members(
    run: &mut RunContext,
    state: &mut RunState,
) -> Result<(), ErrorReport> {
    let mut changes = decide_changes(&state.snapshot.tasks, &state.snapshot.members, &state.decision);
    changes.shut_down.retain(|name| !state.ended_once_members.contains(name));
    for name in changes.shut_down {
        shut_down(run, &name)?;
        state.ended_once_members.insert(name);
    }
    let must_start = |member: &&SpawnRequest| changes.start.contains(&member.name);
    let missing: Vec<SpawnRequest> = run.file.members.iter().filter(must_start).cloned().collect();
    if missing.is_empty() || state.snapshot.exhausted_budget.is_some() {
        return Ok(());
    }
    state.ended_once_members.retain(|name| !changes.start.contains(name));
    let failures = spawn_missing(run, state, missing)?;
    // A stopped run, and a team whose budget is used up meanwhile, start no members.
    if failures.is_empty()
        || run.stop_requests.count() > 0
        || team_snapshot::take(run, &state.team)?.exhausted_budget.is_some()
    {
        return Ok(());
    }
    failures.iter().try_for_each(|(member, error)| fail_task(state, member, error))
}

fn fail_task(state: &RunState, member: &MemberName, error: &ErrorReport) -> Result<(), ErrorReport> {
    let tasks = state.snapshot.tasks.iter();
    let mut tasks = tasks.filter(|task| task.once_member().as_ref() == Some(member));
    tasks.try_for_each(|task| match state.team.tasks().fail_start(&task.id, member, &error.message) {
        // The task was deleted, or got another blocker, meanwhile.
        Err(Error::NoSuchTask { .. } | Error::TaskBlocked { .. }) => Ok(()),
        result => result.map_err(ErrorReport::from),
    })
}

fn decide_changes(tasks: &[Task], members: &MemberStates, decision: &RunDecision) -> OnceMemberChanges {
    let mut changes = OnceMemberChanges::default();
    for (task, member) in tasks.iter().filter_map(|task| Some((task, task.once_member()?))) {
        let fate = decision.fates.get(&task.id);
        match members.state_of(&member) {
            MemberState::Gone if fate == Some(&TaskFate::Waiting) && task.is_startable(tasks) => {
                changes.start.push(member);
            }
            // A deleted task has no fate.
            MemberState::Running if fate.is_none_or(TaskFate::is_final) => changes.shut_down.push(member),
            _ => {}
        }
    }
    changes
}

/// Each member has a request of its own, because a request with a name that is gone ends no member.
fn shut_down(run: &mut RunContext, name: &MemberName) -> Result<(), ErrorReport> {
    let request = Request::Shutdown(ShutdownMembersRequest {
        targets: MemberSelection { team: run.file.name.clone(), names: vec![name.to_string()] },
        reason: Some("your task is over".to_owned()),
        grace_ms: u64::try_from(run.file.policy.grace.as_millis()).unwrap_or(u64::MAX),
        force: true,
        no_wait: true,
    });
    match run.daemon.call(&request) {
        // The member has ended meanwhile.
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        reply => reply.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide_task_retries::{RetryRules, evaluate};

    #[test]
    fn member_starts_with_its_task_and_ends_with_it() {
        let task = |id: u32, more: &str| {
            Task::parse(&format!(r#"{{"id":"{id}","subject":"s","blocks":[],{more}}}"#)).unwrap()
        };
        let changes = |blocker: &str, status: &str, member: MemberState| {
            let ann = MemberName::new_unchecked("ann");
            let mut members = MemberStates::default();
            members.states.insert(ann.clone(), member);
            members.states.insert(MemberName::new_unchecked("bob"), MemberState::Running);
            let tasks = [
                task(1, &format!(r#""status":"{blocker}","blockedBy":[]"#)),
                task(
                    2,
                    &format!(r#"{status},"blockedBy":["1"],"metadata":{{"once":true,"run_owner":"ann"}}"#),
                ),
            ];
            let decision = evaluate(&RetryRules::default(), &tasks, &members);
            decide_changes(&tasks, &members, &decision)
        };
        let none = OnceMemberChanges::default;
        let start = OnceMemberChanges { start: vec![MemberName::new_unchecked("ann")], ..none() };
        let shut_down = OnceMemberChanges { shut_down: vec![MemberName::new_unchecked("ann")], ..none() };
        let pending = r#""status":"pending""#;
        assert_eq!(changes("pending", pending, MemberState::Gone), none());
        assert_eq!(changes("completed", pending, MemberState::Gone), start);
        assert_eq!(changes("completed", pending, MemberState::Running), none());
        assert_eq!(
            changes("completed", r#""status":"in_progress","owner":"ann""#, MemberState::Running),
            none()
        );
        assert_eq!(
            changes("completed", r#""status":"completed","owner":"ann""#, MemberState::Running),
            shut_down
        );
        assert_eq!(changes("completed", r#""status":"completed","owner":"ann""#, MemberState::Gone), none());
        assert_eq!(changes("completed", r#""status":"deleted""#, MemberState::Running), shut_down);
    }
}
