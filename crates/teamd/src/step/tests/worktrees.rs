//! Worktrees: written down before git does anything, held for their agents, and gone before the team's files are.

use super::*;
use crate::roster::Ground;
use crate::worktrees::{Making, TreeDone, TreeJob};
use protocol::control::{RemovedWorktrees, WorktreeRequest};
use worktree::{GitEnvironment, WorktreeProposal, WorktreeRecord};

fn wants(name: &str) -> Request {
    Request::CreateWorktree(WorktreeRequest {
        team: team(),
        name: AgentName::parse(name).unwrap(),
        unique: false,
        cwd: "/repo".into(),
        branch: None,
        env: Default::default(),
    })
}

fn tree() -> WorktreeRecord {
    WorktreeRecord {
        path: "/repo.worktrees/survey-ann".into(),
        branch: "teamd/survey/ann".into(),
        branch_created: true,
        common_git_dir: "/repo/.git".into(),
        base_commit: "0".into(),
        inode: 2,
    }
}

fn making(client: u64) -> Box<Making> {
    let plan = WorktreeProposal {
        record: tree(),
        exists: false,
        subdirectory: "sub".into(),
        cwd: "/repo/sub".into(),
    };
    let name = AgentName::parse("ann").unwrap();
    Box::new(Making {
        client,
        team: team(),
        name,
        plan,
        surroundings: GitEnvironment::from_vars::<&str, &str>([]),
    })
}

fn done(state: &mut State, done: TreeDone) -> Vec<Effect> {
    step(state, Event::Worktree(done), NOW)
}

fn planned(state: &mut State) -> Vec<Effect> {
    let (team, name) = (team(), AgentName::parse("ann").unwrap());
    done(state, TreeDone::Planned { client: 1, team, name, result: Ok(making(1)) })
}

fn added(state: &mut State) -> Vec<Effect> {
    let result = Ok("/repo.worktrees/survey-ann/sub".into());
    done(state, TreeDone::Added { making: making(1), result, is_there: true })
}

fn spawn_in(path: &str, cwd: &str) -> Request {
    let Request::Spawn(order) = order("ann") else { unreachable!("it is one") };
    Request::Spawn(Box::new(SpawnRequest { worktree: Some(path.into()), cwd: cwd.into(), ..*order }))
}

fn grounds(state: &State) -> Vec<Ground> {
    state.roster().worktrees[&team()].clone()
}

fn sweeps(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Worktree(TreeJob::Sweep { .. })))
}

#[test]
fn it_is_on_the_disk_before_git_fills_it_and_its_name_is_held() {
    let mut state = state();
    let effects = ask(&mut state, 1, wants("ann"));
    assert!(matches!(effects[..], [Effect::Worktree(TreeJob::Plan { .. })]), "{effects:?}");
    for request in [wants("ann"), order("ann")] {
        assert_eq!(kind(&ask(&mut state, 2, request), 2), Some(ErrorKind::AlreadyExists));
    }
    let delete = delete(true);
    assert_eq!(kind(&ask(&mut state, 2, delete), 2), Some(ErrorKind::Refused));
    let effects = planned(&mut state);
    let [Effect::File(FileJob::Roster(roster)), Effect::File(FileJob::Recorded { .. })] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(roster.worktrees[&team()][0].tree, tree());
    let recorded = FileDone::Recorded { making: making(1), result: Ok(()) };
    let effects = step(&mut state, Event::Filed(recorded), NOW);
    assert!(matches!(effects[..], [Effect::Worktree(TreeJob::Add(_))]), "{effects:?}");
    let Some(Reply::CreateWorktree(reply)) = done_of(&added(&mut state)) else { panic!("no answer") };
    assert_eq!((reply.path, reply.is_reused), (tree().path, false));
    assert_eq!(
        kind(&ask(&mut state, 2, order("ann")), 2),
        Some(ErrorKind::AlreadyExists),
        "it is still held"
    );
    assert_eq!(kind(&ask(&mut state, 2, spawn_in("/home/u", "/home/u")), 2), Some(ErrorKind::Refused));
    let path = "/repo.worktrees/survey-ann";
    assert_eq!(kind(&ask(&mut state, 2, spawn_in(path, "/repo")), 2), Some(ErrorKind::Refused), "not in it");
    let id = opening(&ask(&mut state, 2, spawn_in(path, "/repo.worktrees/survey-ann/sub")));
    assert_eq!(state.agents[&id].record.worktree, Some(tree()));
}

fn done_of(effects: &[Effect]) -> Option<Reply> {
    super::done(effects, 1).cloned()
}

#[test]
fn who_was_killed_with_its_worktree_in_hand_asks_again_and_goes_on_in_it() {
    let mut state = state();
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    added(&mut state);
    let effects = ask(&mut state, 2, wants("ann"));
    let [Effect::Worktree(TreeJob::Plan { wanted, .. })] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(wanted.previous, [tree()]);
    // It was no other than the first, who comes late: one of them has the name.
    opening(&ask(&mut state, 1, spawn_in("/repo.worktrees/survey-ann", "/repo.worktrees/survey-ann/sub")));
    added(&mut state);
    let late = spawn_in("/repo.worktrees/survey-ann", "/repo.worktrees/survey-ann/sub");
    assert_eq!(kind(&ask(&mut state, 2, late), 2), Some(ErrorKind::AlreadyExists));
    assert_eq!(state.agents.len(), 1);
}

#[test]
fn the_name_of_one_that_is_just_being_taken_off_the_team_is_waited_for() {
    let mut state = state();
    let ann = running(&mut state, "ann", 50);
    step(&mut state, ended(50, ExitReport::Exit(0)), NOW);
    step(&mut state, pane_closed(&ann), NOW);
    assert!(ask(&mut state, 9, wants("ann")).is_empty());
    let effects = step(&mut state, farewelled(&ann, false, None), NOW);
    let plans = |effect: &Effect| matches!(effect, Effect::Worktree(TreeJob::Plan { client: 9, .. }));
    assert!(effects.iter().any(plans), "{effects:?}");
}

#[test]
fn a_name_whose_agent_never_comes_is_free_again() {
    let mut state = state();
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    added(&mut state);
    let later = at(60_000);
    let effects = step(&mut state, Event::Request { client: 2, call: call(order("ann")) }, later);
    opening(&effects);
    assert_eq!(grounds(&state).len(), 1, "the worktree stays on record");
}

#[test]
fn what_was_not_written_down_is_not_filled_and_what_was_taken_back_is_forgotten() {
    let mut state = state();
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    let fault = || protocol::error::ErrorReport::new(ErrorKind::Io, "no");
    let recorded = FileDone::Recorded { making: making(1), result: Err(fault()) };
    let effects = step(&mut state, Event::Filed(recorded), NOW);
    assert_eq!(kind(&effects, 1), Some(ErrorKind::Io));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Worktree(_))));
    for is_there in [true, false] {
        done(&mut state, TreeDone::Added { making: making(1), result: Err(fault()), is_there });
        assert_eq!(grounds(&state).len(), usize::from(is_there));
    }
}

#[test]
fn a_team_goes_only_after_its_worktrees_and_what_is_refused_stays() {
    let mut state = state();
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    added(&mut state);
    let delete = |discard: &str| {
        let discard = if discard.is_empty() { vec![] } else { vec![discard.into()] };
        DeleteTeamRequest { team: team(), force: true, discard_worktrees: discard }
    };
    let effects = ask(&mut state, 3, Request::DeleteTeam(delete("/home/u")));
    assert_eq!(kind(&effects, 3), Some(ErrorKind::Usage), "a path of somebody else's");
    let may = |result| FileDone::MayDelete { client: 3, order: delete(""), result };
    let refused = || protocol::error::ErrorReport::new(ErrorKind::Refused, "unsaved");
    let effects = ask(&mut state, 3, Request::DeleteTeam(delete("")));
    assert!(!sweeps(&effects) && job(&effects, |job| matches!(job, FileJob::MayDelete { .. })));
    let effects = step(&mut state, Event::Filed(may(Err(refused()))), NOW);
    assert!(kind(&effects, 3) == Some(ErrorKind::Refused) && !sweeps(&effects), "its files would not go");
    ask(&mut state, 3, Request::DeleteTeam(delete("")));
    let effects = step(&mut state, Event::Filed(may(Ok(()))), NOW);
    assert!(sweeps(&effects) && !job(&effects, |job| matches!(job, FileJob::Delete { .. })));
    for request in [order("bob"), wants("bob"), Request::DeleteTeam(delete(""))] {
        assert_eq!(kind(&ask(&mut state, 4, request), 4), Some(ErrorKind::Refused), "meanwhile");
    }
    let swept = |swept, result| TreeDone::Swept { client: 3, order: delete(""), swept, result };
    let stranger = RemovedWorktrees { kept: vec!["it is not ours".into()], ..RemovedWorktrees::default() };
    let effects = done(&mut state, swept(stranger, Err(refused())));
    assert_eq!(kind(&effects, 3), Some(ErrorKind::Refused));
    assert_eq!(grounds(&state).len(), 1, "left alone, and still on record");
    assert!(state.teams.contains_key(&team()));
    ask(&mut state, 3, Request::DeleteTeam(delete("")));
    let removed = RemovedWorktrees { removed: vec![tree().path], ..RemovedWorktrees::default() };
    let effects = done(&mut state, swept(removed, Ok(())));
    assert!(matches!(effects[0], Effect::File(FileJob::Roster(_))) && grounds(&state).is_empty());
    assert!(job(&effects, |job| matches!(job, FileJob::Delete { .. })));
}

#[test]
fn nobody_is_ended_for_a_delete_that_a_worktree_refuses_and_what_comes_later_is_told_with_the_ended() {
    let mut state = state();
    let bob = running(&mut state, "bob", 5);
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    added(&mut state);
    let order = || DeleteTeamRequest { team: team(), force: true, discard_worktrees: vec![] };
    let lives = |state: &State| matches!(state.agents[&bob].phase, Phase::Running(_));
    let look = |state: &mut State| {
        ask(state, 3, delete(true));
        let may = FileDone::MayDelete { client: 3, order: order(), result: Ok(()) };
        let effects = step(state, Event::Filed(may), NOW);
        let is_look = |effect: &Effect| matches!(effect, Effect::Worktree(TreeJob::Look { joins, .. }) if *joins == [5].into());
        assert!(effects.iter().any(is_look) && lives(state), "{effects:?}");
    };
    let unsaved = || Err(protocol::error::ErrorReport::new(ErrorKind::Refused, "unsaved"));
    look(&mut state);
    let looked = |result| TreeDone::Looked { client: 3, order: order(), result };
    let effects = done(&mut state, looked(unsaved()));
    assert!(kind(&effects, 3) == Some(ErrorKind::Refused) && lives(&state), "{effects:?}");
    look(&mut state);
    assert!(reply(&done(&mut state, looked(Ok(()))), 3).is_none());
    assert!(matches!(state.agents[&bob].phase, Phase::Stopping(..)));
    let swept =
        TreeDone::Swept { client: 3, order: order(), swept: RemovedWorktrees::default(), result: unsaved() };
    let effects = done(&mut state, swept);
    let Some(Response::Failed(fault)) = reply(&effects, 3) else { panic!("{effects:?}") };
    assert!(fault.message.contains("bob ended"), "{}", fault.message);
}

#[test]
fn what_went_before_it_failed_is_told_and_forgotten() {
    let mut state = state();
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    added(&mut state);
    let order = DeleteTeamRequest { team: team(), force: false, discard_worktrees: vec![tree().path] };
    ask(&mut state, 3, Request::DeleteTeam(order.clone()));
    let trashed =
        protocol::control::TrashedWorktree { path: tree().path, trash_dir: "/state/trash/x".into() };
    let swept = RemovedWorktrees { trashed: vec![trashed], ..RemovedWorktrees::default() };
    let result = Err(protocol::error::ErrorReport::new(ErrorKind::Io, "cannot remove bob's"));
    let effects = done(&mut state, TreeDone::Swept { client: 3, order, swept, result });
    let Some(Response::Failed(fault)) = reply(&effects, 3) else { panic!("{effects:?}") };
    assert!(
        fault.message.starts_with("cannot remove bob's") && fault.message.contains("/state/trash/x/README")
    );
    assert_eq!((fault.kind, grounds(&state).len()), (ErrorKind::Io, 0));
    opening(&ask(&mut state, 4, self::order("bob")));
}

#[test]
fn a_team_of_the_same_name_still_sees_to_them() {
    let mut state = state();
    ask(&mut state, 1, wants("ann"));
    planned(&mut state);
    let reply = protocol::control::CreateTeamReply {
        team_name: team(),
        team_file_path: "/x".into(),
        lead_agent_id: String::new(),
    };
    step(
        &mut state,
        Event::Filed(FileDone::Created { client: 1, policy: Default::default(), result: Ok(reply) }),
        NOW,
    );
    assert_eq!(grounds(&state).len(), 1);
    let again = State::new(state.setting.clone(), state.roster(), Tale::default());
    assert_eq!(grounds(&again).len(), 1, "and a daemon that is started anew");
}
