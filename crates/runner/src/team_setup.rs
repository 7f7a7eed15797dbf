//! The beginning of a run: a team, its members, its tasks. Everything is derived from the files, so that a run
//! that was killed anywhere in here goes on with what there is.
//!
//! Members come before tasks: only a member can own one, and a task that is not yet its owner's could be
//! taken by another.

use crate::run_context::RunContext;
use crate::run_file::TaskSpec;
use crate::run_state::RunState;
use crate::task_fate::{ABANDONED_KEY, MemberState, MemberStates, TaskRelease, release_count, run_file_key};
use crate::team_snapshot::{self, TeamSnapshot};
use client::error::unexpected_reply;
use profile::worktree_spawn::{rebuild_for_worktree, worktree_request};
use protocol::control::{self, Reply, Request};
use protocol::delivery::Delivery;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use store::{BatchTask, NewTask, Root, Tasks, Team};

/// So often a member that died before it could be given its tasks is spawned anew.
const MAX_SPAWN_ATTEMPTS: usize = 3;
/// A name that is not free yet is free within this, and it is known who lives.
const NAME_FREE_TIMEOUT: Duration = Duration::from_secs(20);
/// Longer than an end takes that is asked for with grace.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Makes the team. After a daemon that died on it, the next finds it made or not.
pub(crate) fn create_team(run: &mut RunContext, root: &Root) -> Result<Team, ErrorReport> {
    let request = Request::CreateTeam(control::CreateTeamRequest {
        team: run.file.name.clone(),
        description: run.file.description.clone(),
        agent_type: None,
        model: run.file.model.clone(),
        cwd: run.file.cwd.clone(),
        unique: false,
        policy: run.file.policy.team.clone(),
        lead_mode: None,
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

/// Of a team that was there: it is led as the file says by now.
pub(crate) fn set_policy(run: &mut RunContext) -> Result<(), ErrorReport> {
    let (team, policy) = (run.file.name.clone(), run.file.policy.team.clone());
    let request = Request::SetPolicy(control::SetPolicyRequest { team, policy });
    loop {
        match run.team_context.call_daemon(request.clone()) {
            Err(error) if error.kind == ErrorKind::NoDaemon => run.daemon.start()?,
            result => return result.map(drop),
        }
    }
}

/// Members and tasks, as far as they are not there.
pub(crate) fn populate(run: &mut RunContext, state: &mut RunState) -> Result<(), ErrorReport> {
    // Who was put to rest goes on with its session, and is not made anew.
    run.daemon
        .call(&Request::ResumeMembers(control::ResumeMembersRequest { team: Some(run.file.name.clone()) }))?;
    let mut attempts = 1..MAX_SPAWN_ATTEMPTS;
    loop {
        match populate_once(run, state) {
            // A member that is to own a task has died since it was spawned.
            Err(error) if error.kind == ErrorKind::NotFound && attempts.next().is_some() => {}
            result => return result,
        }
    }
}

fn populate_once(run: &mut RunContext, state: &mut RunState) -> Result<(), ErrorReport> {
    let TeamSnapshot { tasks: before, lives, .. } = wait_until_settled(run, &state.team)?;
    let missing = |member: &&control::SpawnRequest| lives.state_of(&member.name) == MemberState::Gone;
    let missing: Vec<control::SpawnRequest> = run.file.members.iter().filter(missing).cloned().collect();
    let left = abandoned_tasks(run, &before, &lives);
    spawn_missing(run, state, missing)?;
    for given in left {
        team_snapshot::release_task(&state.team, &given)?;
    }
    create_missing_tasks(&state.team.tasks(), &run.file.tasks, &before)
}

/// A daemon that was just started does not know yet who of the old members lives: it says so, and finds out. Who begins or
/// ends just now is known in a while, too.
fn wait_until_settled(run: &mut RunContext, team: &Team) -> Result<TeamSnapshot, ErrorReport> {
    let until = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let snapshot = team_snapshot::take(run, team)?;
        let passing = ["disconnected", "starting", "stopping"];
        let unknown = snapshot.running.iter().any(|agent| passing.contains(&agent.lifecycle.as_str()));
        if !unknown || Instant::now() >= until || run.stop_requests.count() > 0 {
            return Ok(snapshot);
        }
        run.watcher.wait(Some(Instant::now() + Duration::from_secs(1)))?;
    }
}

/// What the owners of a run that was killed have left behind while nobody looked. Those that come again, and whose
/// turns are known, take up what is theirs by themselves: given back as well it would be done twice.
fn abandoned_tasks(run: &RunContext, tasks: &[Task], lives: &MemberStates) -> Vec<TaskRelease> {
    let comes = |owner: &AgentName| {
        let takes_up =
            |member: &control::SpawnRequest| member.turns.is_some() || member.delivery == Delivery::Hook;
        run.file.members.iter().any(|member| member.name == *owner && takes_up(member))
    };
    let is_left = |task: &&Task| {
        let left = |owner: &AgentName| lives.state_of(owner) == MemberState::Gone && !comes(owner);
        let dead = task.owner.as_ref().is_none_or(left);
        task.status == TaskStatus::InProgress && !task.is_internal() && task.failure().is_none() && dead
    };
    let owner = |task: &Task| run_file_key(task).and_then(|key| run.rules.owners.get(key)).cloned();
    let given = tasks.iter().filter(is_left);
    given
        .map(|task| TaskRelease {
            id: task.id,
            to: owner(task),
            why: ABANDONED_KEY,
            times: release_count(task, ABANDONED_KEY) + 1,
        })
        .collect()
}

/// Spawns all at once, and returns when they run.
fn spawn_missing(
    run: &mut RunContext,
    state: &mut RunState,
    missing: Vec<control::SpawnRequest>,
) -> Result<(), ErrorReport> {
    let until = Instant::now() + NAME_FREE_TIMEOUT;
    let mut missing = missing;
    while !missing.is_empty() {
        let refused = spawn_all(run, missing);
        if refused.iter().any(|(_, error)| error.kind == ErrorKind::NoDaemon) {
            run.daemon.start()?;
        }
        // A daemon that was just started takes whom it has in its roster for living, until it has heard of them.
        let lives = wait_until_settled(run, &state.team)?.lives;
        missing = Vec::new();
        for (member, error) in refused {
            match error.kind {
                // The daemon that died had it running already.
                _ if lives.state_of(&member.name) != MemberState::Gone => {}
                ErrorKind::NoDaemon => missing.push(member),
                // One of that name is just being put away.
                ErrorKind::AlreadyExists if Instant::now() < until && run.stop_requests.count() == 0 => {
                    missing.push(member);
                }
                _ => return Err(error),
            }
        }
        if !missing.is_empty() {
            run.watcher.wait(Some(Instant::now() + Duration::from_secs(1)))?;
        }
    }
    Ok(())
}

/// One request for each, at the same time; those that were refused, and why.
fn spawn_all(
    run: &RunContext,
    members: Vec<control::SpawnRequest>,
) -> Vec<(control::SpawnRequest, ErrorReport)> {
    let (team_context, worktree_members) = (run.team_context, &run.file.worktree_members);
    std::thread::scope(|scope| {
        let ask = |member: control::SpawnRequest| {
            scope.spawn(move || {
                let order = match worktree_members.get(&member.name) {
                    Some(options) => team_context
                        .create_worktree(worktree_request(&member, options))
                        .and_then(|worktree| {
                            rebuild_for_worktree(
                                &team_context.root()?,
                                member.clone(),
                                options.clone(),
                                worktree,
                            )
                        }),
                    None => Ok(member.clone()),
                };
                match order.and_then(|order| team_context.call_daemon(Request::Spawn(Box::new(order)))) {
                    Ok(Reply::Spawn(_)) => None,
                    Ok(_) => Some((member, unexpected_reply())),
                    Err(error) => Some((member, error)),
                }
            })
        };
        let asked: Vec<_> = members.into_iter().map(ask).collect();
        asked.into_iter().filter_map(|thread| thread.join().expect("asking does not panic")).collect()
    })
}

/// Adds the tasks that are not there, in one step.
fn create_missing_tasks(list: &Tasks, plans: &[TaskSpec], there: &[Task]) -> Result<(), ErrorReport> {
    let ids: HashMap<&str, TaskId> =
        there.iter().filter_map(|task| Some((run_file_key(task)?, task.id))).collect();
    let id = |place: usize| ids.get(plans[place].key.as_str()).copied();
    let missing: Vec<usize> = (0..plans.len()).filter(|place| id(*place).is_none()).collect();
    let new: HashMap<usize, usize> = missing.iter().enumerate().map(|(new, place)| (*place, new)).collect();
    let planned = missing.iter().map(|place| {
        let plan = &plans[*place];
        let task = NewTask {
            description: plan.description.clone(),
            active_form: plan.active_form.clone(),
            owner: plan.owner.clone(),
            blocked_by: plan.blocked_by.iter().filter_map(|blocker| id(*blocker)).collect(),
            metadata: Some(plan.metadata.clone()),
            ..NewTask::new(&plan.subject, &AgentName::lead())
        };
        BatchTask {
            task,
            blocked_by_index: plan
                .blocked_by
                .iter()
                .filter_map(|blocker| new.get(blocker).copied())
                .collect(),
        }
    });
    list.create_all(planned.collect()).map_err(ErrorReport::from).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::TeamConfig;
    use serde_json::Map;

    fn plan(key: &str, after: &[usize]) -> TaskSpec {
        TaskSpec {
            key: key.to_owned(),
            subject: key.to_owned(),
            description: String::new(),
            active_form: None,
            owner: None,
            blocked_by: after.to_vec(),
            metadata: Map::from_iter([("key".to_owned(), key.into())]),
        }
    }

    #[test]
    fn what_is_there_is_not_made_again_and_what_is_missing_is_linked_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("r"), dir.path(), store::Durability::Process);
        let config = TeamConfig::parse(r#"{"name":"t","members":[{"name":"team-lead"}]}"#).unwrap();
        let team = root.unwrap().create_team(&config).unwrap();
        let plans = [plan("a", &[]), plan("b", &[2, 0]), plan("c", &[])];
        create_missing_tasks(&team.tasks(), &plans[..1], &[]).unwrap();
        create_missing_tasks(&team.tasks(), &plans, &team.tasks().list().unwrap()).unwrap();
        let list = team.tasks().list().unwrap();
        let keys: Vec<_> = list.iter().filter_map(run_file_key).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        let mut blockers = list[1].blocked_by.clone();
        blockers.sort();
        assert_eq!(blockers, [list[0].id, list[2].id]);
        create_missing_tasks(&team.tasks(), &plans, &list).unwrap();
        assert_eq!(team.tasks().list().unwrap().len(), 3);
    }
}
