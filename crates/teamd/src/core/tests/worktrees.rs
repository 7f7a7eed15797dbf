//! Tests of worktrees: they are recorded before git creates anything, held for their agents, and
//! removed before the files of their team.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::worktree_jobs::{WorktreeCreation, WorktreeJob, WorktreePath, WorktreeResult};
use crate::core::recovery::recover;
use crate::core::roster::MemberWorktree;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::core::tests;
use crate::core::tests::shutdown::next_daemon;
use protocol::control_socket::{RemovedWorktrees, WorktreeRequest};
use worktree::{GitEnvironment, WorktreeProposal, WorktreeRecord};

fn worktree_request(name: &str) -> Request {
    Request::CreateWorktree(WorktreeRequest {
        team: survey_team(),
        name: MemberName::parse(name).unwrap(),
        unique: false,
        cwd: "/repo".into(),
        branch: None,
        env: Default::default(),
    })
}

fn worktree_record() -> WorktreeRecord {
    WorktreeRecord {
        path: "/repo.worktrees/survey-ann".into(),
        branch: "teamd/survey/ann".into(),
        branch_created: true,
        common_git_dir: "/repo/.git".into(),
        base_commit: "0".into(),
        inode: 2,
    }
}

fn worktree_creation(client: u64) -> Box<WorktreeCreation> {
    let proposal = WorktreeProposal {
        record: worktree_record(),
        exists: false,
        subdirectory: "sub".into(),
        cwd: "/repo/sub".into(),
    };
    let name = MemberName::parse("ann").unwrap();
    Box::new(WorktreeCreation {
        client,
        team: survey_team(),
        name,
        proposal,
        environment: GitEnvironment::from_vars::<&str, &str>([]),
        setup: None,
    })
}

fn handle_result(state: &mut State, result: WorktreeResult) -> Vec<Effect> {
    handle_event(state, CoreEvent::WorktreeJobDone(result), NOW)
}

fn worktree_proposed(state: &mut State) -> Vec<Effect> {
    let (team, name) = (survey_team(), MemberName::parse("ann").unwrap());
    handle_result(state, WorktreeResult::Proposed { client: 1, team, name, result: Ok(worktree_creation(1)) })
}

fn worktree_filled(state: &mut State) -> Vec<Effect> {
    let result = Ok("/repo.worktrees/survey-ann/sub".into());
    handle_result(
        state,
        WorktreeResult::Filled { creation: worktree_creation(1), result, path: WorktreePath::Present },
    )
}

fn spawn_request_in(path: &str, cwd: &str) -> Request {
    let Request::Spawn(request) = spawn_request("ann") else { unreachable!() };
    Request::Spawn(Box::new(SpawnRequest { worktree: Some(path.into()), cwd: cwd.into(), ..*request }))
}

fn saved_worktrees(state: &State) -> Vec<MemberWorktree> {
    state.to_roster().worktrees[&survey_team()].clone()
}

fn removes_worktrees(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Worktree(WorktreeJob::RemoveAll { .. })))
}

#[test]
fn worktree_is_recorded_before_git_fills_it_and_its_name_is_held() {
    let mut state = new_state();
    let effects = send_call(&mut state, 1, worktree_request("ann"));
    assert!(matches!(effects[..], [Effect::Worktree(WorktreeJob::Propose { .. })]), "{effects:?}");
    for request in [worktree_request("ann"), spawn_request("ann")] {
        assert_eq!(error_kind(&send_call(&mut state, 2, request), 2), Some(ErrorKind::AlreadyExists));
    }
    let delete = forced_delete_request();
    assert_eq!(error_kind(&send_call(&mut state, 2, delete), 2), Some(ErrorKind::Refused));
    let effects = worktree_proposed(&mut state);
    let [Effect::File(FileJob::SaveRoster(roster)), Effect::File(FileJob::ConfirmWorktreeRecorded { .. })] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(roster.worktrees[&survey_team()][0].record, worktree_record());
    let recorded = FileResult::WorktreeRecorded { creation: worktree_creation(1), result: Ok(()) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(recorded), NOW);
    assert!(matches!(effects[..], [Effect::Worktree(WorktreeJob::Fill(_))]), "{effects:?}");
    let Some(Reply::CreateWorktree(reply)) = first_reply(&worktree_filled(&mut state)) else {
        panic!("no reply")
    };
    assert_eq!((reply.path, reply.is_reused), (worktree_record().path, false));
    assert_eq!(
        error_kind(&send_call(&mut state, 2, spawn_request("ann")), 2),
        Some(ErrorKind::AlreadyExists),
        "the name is still held"
    );
    assert_eq!(
        error_kind(&send_call(&mut state, 2, spawn_request_in("/home/u", "/home/u")), 2),
        Some(ErrorKind::Refused)
    );
    let path = "/repo.worktrees/survey-ann";
    assert_eq!(
        error_kind(&send_call(&mut state, 2, spawn_request_in(path, "/repo")), 2),
        Some(ErrorKind::Refused),
        "the cwd is outside the worktree"
    );
    let id =
        opened_spawn_id(&send_call(&mut state, 2, spawn_request_in(path, "/repo.worktrees/survey-ann/sub")));
    assert_eq!(state.agents[&id].record.worktree, Some(worktree_record()));
}

fn first_reply(effects: &[Effect]) -> Option<Reply> {
    tests::reply_value(effects, 1).cloned()
}

#[test]
fn second_request_for_a_name_gets_the_worktree_of_the_first() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    worktree_filled(&mut state);
    let effects = send_call(&mut state, 2, worktree_request("ann"));
    let [Effect::Worktree(WorktreeJob::Propose { options, .. })] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(options.previous, [worktree_record()]);
    // The first client continues too. Only one of the two clients gets the name.
    opened_spawn_id(&send_call(
        &mut state,
        1,
        spawn_request_in("/repo.worktrees/survey-ann", "/repo.worktrees/survey-ann/sub"),
    ));
    worktree_filled(&mut state);
    let second_spawn = spawn_request_in("/repo.worktrees/survey-ann", "/repo.worktrees/survey-ann/sub");
    assert_eq!(error_kind(&send_call(&mut state, 2, second_spawn), 2), Some(ErrorKind::AlreadyExists));
    assert_eq!(state.agents.len(), 1);
}

#[test]
fn worktree_request_waits_for_a_name_that_is_being_freed() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 50);
    handle_event(&mut state, exit_reported(50, ExitReport::Exit(0)), NOW);
    handle_event(&mut state, pane_closed(&ann), NOW);
    assert!(send_call(&mut state, 9, worktree_request("ann")).is_empty());
    let effects = handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
    let proposes =
        |effect: &Effect| matches!(effect, Effect::Worktree(WorktreeJob::Propose { client: 9, .. }));
    assert!(effects.iter().any(proposes), "{effects:?}");
}

#[test]
fn held_name_is_free_again_if_no_spawn_follows() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    worktree_filled(&mut state);
    let later = now_at(60_000);
    let effects = handle_event(
        &mut state,
        CoreEvent::ClientCall { client: 2, call: new_call(spawn_request("ann")) },
        later,
    );
    opened_spawn_id(&effects);
    assert_eq!(saved_worktrees(&state).len(), 1, "the worktree stays on record");
}

#[test]
fn unrecorded_worktree_is_not_filled_and_a_removed_one_is_forgotten() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    let error = || protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "no");
    let recorded = FileResult::WorktreeRecorded { creation: worktree_creation(1), result: Err(error()) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(recorded), NOW);
    assert_eq!(error_kind(&effects, 1), Some(ErrorKind::Io));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Worktree(_))));
    for path in [WorktreePath::Present, WorktreePath::Missing] {
        handle_result(
            &mut state,
            WorktreeResult::Filled { creation: worktree_creation(1), result: Err(error()), path },
        );
        assert_eq!(saved_worktrees(&state).len(), usize::from(path == WorktreePath::Present));
    }
}

#[test]
fn team_is_deleted_after_its_worktrees_unless_a_removal_is_refused() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    worktree_filled(&mut state);
    let delete = |discard: &str| {
        let discard = if discard.is_empty() { vec![] } else { vec![discard.into()] };
        DeleteTeamRequest { discard_worktrees: discard, ..DeleteTeamRequest::forced(survey_team()) }
    };
    let effects = send_call(&mut state, 3, Request::DeleteTeam(delete("/home/u")));
    assert_eq!(error_kind(&effects, 3), Some(ErrorKind::Usage), "the path is not a worktree of the team");
    let deletable_checked =
        |result| FileResult::DeletableChecked { client: Some(3), request: delete(""), result };
    let refusal = || protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Refused, "unsaved");
    let effects = send_call(&mut state, 3, Request::DeleteTeam(delete("")));
    assert!(
        !removes_worktrees(&effects)
            && has_file_job(&effects, |job| matches!(job, FileJob::CheckDeletable { .. }))
    );
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(deletable_checked(Err(refusal()))), NOW);
    assert!(
        error_kind(&effects, 3) == Some(ErrorKind::Refused) && !removes_worktrees(&effects),
        "the files do not allow the deletion"
    );
    send_call(&mut state, 3, Request::DeleteTeam(delete("")));
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(deletable_checked(Ok(()))), NOW);
    assert!(
        removes_worktrees(&effects)
            && !has_file_job(&effects, |job| matches!(job, FileJob::DeleteTeam { .. }))
    );
    for request in [spawn_request("bob"), worktree_request("bob"), delete_request()] {
        assert_eq!(
            error_kind(&send_call(&mut state, 4, request), 4),
            Some(ErrorKind::Refused),
            "the call is refused during the deletion"
        );
    }
    let removed_worktrees = |removed_worktrees, result| WorktreeResult::RemovedAll {
        client: Some(3),
        request: delete(""),
        removed_worktrees,
        result,
    };
    let kept = RemovedWorktrees { kept: vec!["it is not ours".into()], ..RemovedWorktrees::default() };
    let effects = handle_result(&mut state, removed_worktrees(kept, Err(refusal())));
    assert_eq!(error_kind(&effects, 3), Some(ErrorKind::Refused));
    assert_eq!(saved_worktrees(&state).len(), 1, "the kept worktree stays on record");
    assert!(state.teams.contains_key(&survey_team()));
    send_call(&mut state, 3, Request::DeleteTeam(delete("")));
    let removed = RemovedWorktrees { removed: vec![worktree_record().path], ..RemovedWorktrees::default() };
    let effects = handle_result(&mut state, removed_worktrees(removed, Ok(())));
    assert!(matches!(effects[0], Effect::File(FileJob::SaveRoster(_))) && saved_worktrees(&state).is_empty());
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::DeleteTeam { .. })));
}

#[test]
fn deletion_refused_for_a_worktree_ends_no_agent_and_a_later_error_names_the_ended() {
    let mut state = new_state();
    let bob = start_member(&mut state, "bob", 5);
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    worktree_filled(&mut state);
    let request = || DeleteTeamRequest::forced(survey_team());
    let is_running = |state: &State| matches!(state.agents[&bob].record.lifecycle, Lifecycle::Running(_));
    let check_deletion = |state: &mut State| {
        send_call(state, 3, forced_delete_request());
        let deletable = FileResult::DeletableChecked { client: Some(3), request: request(), result: Ok(()) };
        let effects = handle_event(state, CoreEvent::FileJobDone(deletable), NOW);
        let checks_unsaved = |effect: &Effect| matches!(effect, Effect::Worktree(WorktreeJob::CheckUnsaved { shim_pids, .. }) if *shim_pids == [5].into());
        assert!(effects.iter().any(checks_unsaved) && is_running(state), "{effects:?}");
    };
    let unsaved = || Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Refused, "unsaved"));
    check_deletion(&mut state);
    let unsaved_checked =
        |result| WorktreeResult::UnsavedChecked { client: Some(3), request: request(), result };
    let effects = handle_result(&mut state, unsaved_checked(unsaved()));
    assert!(error_kind(&effects, 3) == Some(ErrorKind::Refused) && is_running(&state), "{effects:?}");
    check_deletion(&mut state);
    assert!(reply(&handle_result(&mut state, unsaved_checked(Ok(()))), 3).is_none());
    assert!(matches!(state.agents[&bob].record.lifecycle, Lifecycle::Stopping(..)));
    let removed_worktrees = WorktreeResult::RemovedAll {
        client: Some(3),
        request: request(),
        removed_worktrees: RemovedWorktrees::default(),
        result: unsaved(),
    };
    let effects = handle_result(&mut state, removed_worktrees);
    let Some(Response::Failed(error)) = reply(&effects, 3) else { panic!("{effects:?}") };
    assert!(error.message.contains("bob ended"), "{}", error.message);
}

#[test]
fn accepted_deletion_removes_worktrees_of_a_team_without_files() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    worktree_filled(&mut state);
    send_call(&mut state, 3, forced_delete_request());
    let mut state = next_daemon(&state);
    recover(&mut state, NOW);
    let request = DeleteTeamRequest::forced(survey_team());
    let error = Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::NotFound, "no such team"));
    let checked = FileResult::DeletableChecked { client: None, request, result: error };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(checked), NOW);
    let removes = |effect: &Effect| matches!(effect, Effect::Worktree(WorktreeJob::RemoveAll { .. }));
    assert!(effects.iter().any(removes), "{effects:?}");
}

#[test]
fn worktrees_removed_before_a_failure_are_reported_and_forgotten() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    worktree_filled(&mut state);
    let request = DeleteTeamRequest {
        force: false,
        discard_worktrees: vec![worktree_record().path],
        ..DeleteTeamRequest::forced(survey_team())
    };
    send_call(&mut state, 3, Request::DeleteTeam(request.clone()));
    let trashed = protocol::control_socket::TrashedWorktree {
        path: worktree_record().path,
        trash_dir: "/state/trash/x".into(),
    };
    let removed_worktrees = RemovedWorktrees { trashed: vec![trashed], ..RemovedWorktrees::default() };
    let result = Err(protocol::error_kind_and_report::ErrorReport::new(ErrorKind::Io, "cannot remove bob's"));
    let effects = handle_result(
        &mut state,
        WorktreeResult::RemovedAll { client: Some(3), request, removed_worktrees, result },
    );
    let Some(Response::Failed(error)) = reply(&effects, 3) else { panic!("{effects:?}") };
    assert!(
        error.message.starts_with("cannot remove bob's") && error.message.contains("/state/trash/x/README")
    );
    assert_eq!((error.kind, saved_worktrees(&state).len()), (ErrorKind::Io, 0));
    opened_spawn_id(&send_call(&mut state, 4, tests::spawn_request("bob")));
}

#[test]
fn worktrees_stay_on_record_for_a_new_team_of_the_same_name() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    let reply = protocol::control_socket::CreateTeamReply {
        team_name: survey_team(),
        team_file_path: "/x".into(),
        lead_agent_id: String::new(),
        record: None,
    };
    handle_event(&mut state, team_created(Ok(reply)), NOW);
    assert_eq!(saved_worktrees(&state).len(), 1);
    let next_state = State::new(state.settings.clone(), state.to_roster(), EventLogCursor::default());
    assert_eq!(saved_worktrees(&next_state).len(), 1, "the next daemon has the record too");
}

/// Git fills ann's worktree.
fn state_with_worktree_in_work() -> State {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    worktree_proposed(&mut state);
    let recorded = FileResult::WorktreeRecorded { creation: worktree_creation(1), result: Ok(()) };
    handle_event(&mut state, CoreEvent::FileJobDone(recorded), NOW);
    state
}

fn cancels_setup(effects: &[Effect]) -> bool {
    let path = worktree_record().path;
    effects.iter().any(|effect| matches!(effect, Effect::CancelSetup { worktree } if *worktree == path))
}

#[test]
fn setup_is_cancelled_if_its_client_goes_or_the_daemon_shuts_down() {
    let mut state = state_with_worktree_in_work();
    let closed = |conn| CoreEvent::ConnectionClosed { conn };
    assert!(!cancels_setup(&handle_event(&mut state, closed(2), NOW)), "another client");
    assert!(cancels_setup(&handle_event(&mut state, closed(1), NOW)));
    let mut state = state_with_worktree_in_work();

    assert!(cancels_setup(&send_call(&mut state, 2, Request::StopDaemon)));
}

#[test]
fn worktree_of_a_client_that_has_gone_is_not_filled() {
    let mut state = new_state();
    send_call(&mut state, 1, worktree_request("ann"));
    handle_event(&mut state, CoreEvent::ConnectionClosed { conn: 1 }, NOW);
    worktree_proposed(&mut state);
    let recorded = FileResult::WorktreeRecorded { creation: worktree_creation(1), result: Ok(()) };
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(recorded), NOW);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Worktree(_))), "{effects:?}");
    let again = send_call(&mut state, 2, worktree_request("ann"));
    assert!(matches!(again[..], [Effect::Worktree(WorktreeJob::Propose { .. })]), "{again:?}");
}
