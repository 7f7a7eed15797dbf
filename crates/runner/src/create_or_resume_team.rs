//! The start of a run: creates the team, spawns its members and creates its tasks. Steps that were
//! done by an earlier run are skipped, so a run that was killed during its start can be resumed.
//!
//! Members are spawned before the tasks are created, because only a current member can be made the
//! owner of a task. A task that is created without an owner could be claimed by any other member.

use crate::decide_task_retries::{MemberState, MemberStates, ReleaseReason, TaskRelease, run_file_key};
use crate::make_task_pending_again::release_task;
use crate::mutable_run_state::RunState;
use crate::parts_that_all_run_steps_use::RunContext;
use crate::recording::Recording;
use crate::run_file::TaskSpec;
use crate::run_teamctl_for_hosted_members::spawn_on_other_host;
use crate::team_snapshot::{self, TeamSnapshot};
use client::root_socket_team_and_caller::TeamContext;
use profile::build_spawn_request::SpawnOptions;
use profile::build_worktree_and_spawn_requests::{rebuild_for_worktree, worktree_request};
use protocol::control_socket::{self, Request, SpawnReply, SpawnRequest};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use store::{BatchTask, NewTask, Root, Tasks, Team};

/// The maximum number of attempts to spawn the members and create the tasks. An attempt fails if a
/// member exits before it becomes the owner of its tasks.
const MAX_SPAWN_ATTEMPTS: usize = 3;
/// How long a name may still be in use after the last member of that name has exited.
const NAME_FREE_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum time for which the run waits until no member is starting, stopping or disconnected.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Creates the team. If the daemon dies before it replies, the team may exist already. So this
/// function looks for the team before it repeats the request.
pub(crate) fn create_team(run: &mut RunContext, root: &Root) -> Result<Team, ErrorReport> {
    let request = Request::CreateTeam(control_socket::CreateTeamRequest {
        description: run.file.description.clone(),
        model: run.file.model.clone(),
        policy: run.file.policy.team.clone(),
        record: run.recording == Recording::On,
        ..control_socket::CreateTeamRequest::new(run.file.name.clone(), run.file.cwd.clone())
    });
    loop {
        match run.team_context.call_daemon(request.clone()) {
            Ok(_) => return root.team(&run.file.name).map_err(ErrorReport::from),
            Err(error) if error.kind == ErrorKind::NoDaemon => run.daemon.start()?,
            Err(error) => return Err(error),
        }
        if let Ok(team) = root.team(&run.file.name) {
            return Ok(team);
        }
    }
}

/// Sets the file's policy for a team that existed before the run.
pub(crate) fn set_policy(run: &mut RunContext) -> Result<(), ErrorReport> {
    let (team, policy) = (run.file.name.clone(), run.file.policy.team.clone());
    let request = Request::SetPolicy(control_socket::SetPolicyRequest { team, policy });
    loop {
        match run.team_context.call_daemon(request.clone()) {
            Err(error) if error.kind == ErrorKind::NoDaemon => run.daemon.start()?,
            result => return result.map(drop),
        }
    }
}

/// Resumes suspended members, spawns missing members and creates missing tasks.
pub(crate) fn populate(run: &mut RunContext, state: &mut RunState) -> Result<(), ErrorReport> {
    // When the machine, the container or the tmux server stops, the members end too. A new daemon
    // first reports these members as disconnected, and later as suspended. The run waits until
    // then, because only suspended members can be resumed.
    wait_until_settled(run, &state.team)?;
    // Suspended members are resumed first, so that they keep their sessions and are not spawned
    // anew.
    run.daemon.call(&Request::ResumeMembers(control_socket::ResumeMembersRequest {
        team: Some(run.file.name.clone()),
    }))?;
    let mut attempts = 1..MAX_SPAWN_ATTEMPTS;
    loop {
        match populate_once(run, state) {
            // A member has exited before it became the owner of its task.
            Err(error) if error.kind == ErrorKind::NotFound && attempts.next().is_some() => {}
            result => return result,
        }
    }
}

fn populate_once(run: &mut RunContext, state: &mut RunState) -> Result<(), ErrorReport> {
    let TeamSnapshot { tasks, mut members, .. } = wait_until_settled(run, &state.team)?;
    state.task_times.new_lines()?;
    state.task_times.hosted_members().add_respawning(&mut members);
    let is_missing = |member: &&SpawnRequest| {
        let is_once = run.file.once_members.contains(&member.name);
        !is_once && members.state_of(&member.name) == MemberState::Gone
    };
    let missing_members: Vec<SpawnRequest> = run.file.members.iter().filter(is_missing).cloned().collect();
    let releases = abandoned_tasks(run, &tasks, &members);
    if let Some((_, error)) = spawn_missing(run, state, missing_members)?.into_iter().next() {
        return Err(error);
    }
    for release in releases {
        release_task(&state.team, &release)?;
    }
    create_missing_tasks(&state.team.tasks(), &run.file.tasks, &tasks)
}

/// Waits until every member is running, suspended or removed. Gives up after [`SETTLE_TIMEOUT`], or
/// when a person stops the run. After a restart of the daemon, members are disconnected until their
/// shims have reconnected.
fn wait_until_settled(run: &mut RunContext, team: &Team) -> Result<TeamSnapshot, ErrorReport> {
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let snapshot = team_snapshot::take(run, team)?;
        let transient = ["disconnected", "starting", "stopping", "exited"];
        let is_settled = !snapshot.running.iter().any(|agent| transient.contains(&agent.lifecycle.as_str()));
        if is_settled || Instant::now() >= deadline || run.stop_requests.count() > 0 {
            return Ok(snapshot);
        }
        run.watcher.wait(Some(Instant::now() + Duration::from_secs(1)))?;
    }
}

/// Finds tasks that an earlier run left in progress and that no member will continue, because they
/// have no owner or their owner has exited. Returns how to make each of them pending again.
///
/// A task is skipped if this run spawns its owner again and teamd sees the owner's turns (it starts
/// them, or hooks report them). The owner then continues the task, and a second member must not
/// work on it at the same time.
fn abandoned_tasks(run: &RunContext, tasks: &[Task], members: &MemberStates) -> Vec<TaskRelease> {
    let will_continue = |owner: &MemberName| {
        // The task of a member that is started for it is released, and the member is started again.
        if run.file.once_members.contains(owner) {
            return false;
        }
        let knows_turns = |member: &SpawnRequest| member.turns.is_some() || member.delivery == Delivery::Hook;
        run.file.members.iter().any(|member| member.name == *owner && knows_turns(member))
    };
    let is_lost = |owner: &MemberName| members.state_of(owner) == MemberState::Gone && !will_continue(owner);
    let is_abandoned = |task: &&Task| {
        let is_started = task.status == TaskStatus::InProgress && task.failure().is_none();
        is_started && !task.is_internal() && task.owner.as_ref().is_none_or(is_lost)
    };
    let tasks = tasks.iter().filter(is_abandoned);
    tasks.map(|task| TaskRelease::new(&run.rules, task, ReleaseReason::Abandoned)).collect()
}

/// Spawns the members in `missing_members`, all at the same time. Returns when each of them either
/// runs or could not be started. The result has the members that could not be started, with the
/// reasons.
pub(crate) fn spawn_missing(
    run: &mut RunContext,
    state: &mut RunState,
    mut missing_members: Vec<SpawnRequest>,
) -> Result<Vec<(MemberName, ErrorReport)>, ErrorReport> {
    let mut failures = Vec::new();
    let deadline = Instant::now() + NAME_FREE_TIMEOUT;
    while !missing_members.is_empty() {
        let failed_spawns = spawn_all(run, missing_members);
        if failed_spawns.iter().any(|(_, error)| error.kind == ErrorKind::NoDaemon) {
            run.daemon.start()?;
        }
        // A new daemon at first counts each member in its roster as running. It then finds out
        // whether the member's shim still runs. The run waits until all members are checked before
        // it reads their states.
        let members = wait_until_settled(run, &state.team)?.members;
        missing_members = Vec::new();
        for (member, error) in failed_spawns {
            match error.kind {
                // The daemon spawned the member, but died before it replied.
                _ if members.state_of(&member.name) != MemberState::Gone => {}
                ErrorKind::NoDaemon => missing_members.push(member),
                // An earlier member of that name has exited but was not removed yet.
                ErrorKind::AlreadyExists if Instant::now() < deadline && run.stop_requests.count() == 0 => {
                    missing_members.push(member);
                }
                _ => failures.push((member.name, error)),
            }
        }
        if !missing_members.is_empty() {
            run.watcher.wait(Some(Instant::now() + Duration::from_secs(1)))?;
        }
    }
    Ok(failures)
}

/// Sends the spawn requests of all `members` at the same time. Returns the members whose spawn
/// failed.
fn spawn_all(run: &RunContext, members: Vec<SpawnRequest>) -> Vec<(SpawnRequest, ErrorReport)> {
    let (team_context, file) = (run.team_context, &run.file);
    std::thread::scope(|scope| {
        let start_thread = |member: SpawnRequest| {
            let options = file.worktree_members.get(&member.name);
            let hosted = file.hosted_members.get(&member.name);
            let spawn = move |member: &SpawnRequest| match hosted {
                Some(hosted) => spawn_on_other_host(team_context, file, hosted),
                None => spawn_member(team_context, member, options).map(drop),
            };
            scope.spawn(move || match spawn(&member) {
                Ok(()) => None,
                Err(error) => Some((member, error)),
            })
        };
        let threads: Vec<_> = members.into_iter().map(start_thread).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("a spawn does not panic")).collect()
    })
}

/// Spawns one member. If the member works in a worktree, `worktree_options` has its spawn options.
/// The function then creates the worktree first, and builds a new spawn request for the worktree's
/// directory.
fn spawn_member(
    team_context: &TeamContext,
    member: &SpawnRequest,
    worktree_options: Option<&SpawnOptions>,
) -> Result<SpawnReply, ErrorReport> {
    let mut request = member.clone();
    if let Some(options) = worktree_options {
        let worktree = team_context.create_worktree(worktree_request(member, options))?;
        request = rebuild_for_worktree(&team_context.root()?, request, options.clone(), worktree)?;
    }
    team_context.request(Request::Spawn(Box::new(request)))
}

/// Creates all tasks of the run file that do not exist yet, in one step.
fn create_missing_tasks(
    list: &Tasks,
    specs: &[TaskSpec],
    existing_tasks: &[Task],
) -> Result<(), ErrorReport> {
    let ids: HashMap<&str, TaskId> =
        existing_tasks.iter().filter_map(|task| Some((run_file_key(task)?, task.id))).collect();
    let id = |index: usize| ids.get(specs[index].key.as_str()).copied();
    let missing_indexes: Vec<usize> = (0..specs.len()).filter(|index| id(*index).is_none()).collect();
    let batch_indexes: HashMap<usize, usize> =
        missing_indexes.iter().enumerate().map(|(batch_index, index)| (*index, batch_index)).collect();
    let batch = missing_indexes.iter().map(|index| {
        let spec = &specs[*index];
        let blockers = spec.blocked_by.iter();
        let task = NewTask {
            description: spec.description.clone(),
            active_form: spec.active_form.clone(),
            owner: spec.first_owner(),
            blocked_by: blockers.clone().filter_map(|blocker| id(*blocker)).collect(),
            metadata: Some(spec.metadata.clone()),
            ..NewTask::new(&spec.subject, &MemberName::lead())
        };
        let blocked_by_index = blockers.filter_map(|blocker| batch_indexes.get(blocker).copied()).collect();
        BatchTask { task, blocked_by_index }
    });
    list.create_all(batch.collect()).map_err(ErrorReport::from).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::TeamConfig;
    use serde_json::Map;

    fn task_spec(key: &str, blocked_by: &[usize]) -> TaskSpec {
        TaskSpec {
            key: key.to_owned(),
            subject: key.to_owned(),
            description: String::new(),
            active_form: None,
            owner: None,
            blocked_by: blocked_by.to_vec(),
            metadata: Map::from_iter([("key".to_owned(), key.into())]),
        }
    }

    #[test]
    fn only_missing_tasks_are_created_and_blocked_by_existing_ones() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("r"), dir.path(), store::Durability::Process);
        let config = TeamConfig::parse(r#"{"name":"t","members":[{"name":"team-lead"}]}"#).unwrap();
        let team = root.unwrap().create_team(&config).unwrap();
        let specs = [task_spec("a", &[]), task_spec("b", &[2, 0]), task_spec("c", &[])];
        create_missing_tasks(&team.tasks(), &specs[..1], &[]).unwrap();
        create_missing_tasks(&team.tasks(), &specs, &team.tasks().list().unwrap()).unwrap();
        let list = team.tasks().list().unwrap();
        let keys: Vec<_> = list.iter().filter_map(run_file_key).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        let mut blockers = list[1].blocked_by.clone();
        blockers.sort();
        assert_eq!(blockers, [list[0].id, list[2].id]);
        create_missing_tasks(&team.tasks(), &specs, &list).unwrap();
        assert_eq!(team.tasks().list().unwrap().len(), 3);
    }
}
