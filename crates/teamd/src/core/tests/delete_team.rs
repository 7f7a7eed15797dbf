//! Tests of the deletion of teams: members end before the files are deleted, and the team accepts
//! no spawns meanwhile.

use super::*;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::{FileJob, TaskSelection};
use crate::core::jobs::file_results::FileResult;
use crate::core::recovery::recover;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::tests::shutdown::next_daemon;
use protocol::control_socket::{CreateTeamRequest, WorktreeRequest};
use protocol::error_kind_and_report::ErrorReport;

fn worktree_request(name: &str) -> Request {
    let name = MemberName::parse(name).unwrap();
    let (cwd, env) = ("/repo".into(), Default::default());
    Request::CreateWorktree(WorktreeRequest {
        team: survey_team(),
        name,
        unique: false,
        cwd,
        branch: None,
        env,
    })
}

/// The result of the check whether the files of the team can be deleted.
fn deletable_checked(client: u64, result: Result<(), ErrorReport>) -> CoreEvent {
    let request = DeleteTeamRequest::forced(survey_team());
    CoreEvent::FileJobDone(FileResult::DeletableChecked { client: Some(client), request, result })
}

fn team_deleted(client: u64, result: Result<(), ErrorReport>) -> CoreEvent {
    CoreEvent::FileJobDone(FileResult::TeamDeleted {
        client: Some(client),
        team: survey_team(),
        result,
        worktrees: Default::default(),
    })
}

#[test]
fn team_accepts_no_spawn_during_its_deletion() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    assert_eq!(error_kind(&send_call(&mut state, 2, delete_request()), 2), Some(ErrorKind::Refused));
    opened_spawn_id(&send_call(&mut state, 3, spawn_request("eve")));
    assert!(!ends_agent(&send_call(&mut state, 2, forced_delete_request())), "the files are checked first");
    let refuses_calls = |state: &mut State| {
        [spawn_request("bob"), worktree_request("bob"), delete_request()]
            .map(|request| error_kind(&send_call(state, 4, request), 4))
            == [Some(ErrorKind::Refused); 3]
    };
    assert!(refuses_calls(&mut state), "while the files are checked");
    assert!(ends_agent(&handle_event(&mut state, deletable_checked(2, Ok(())), NOW)));
    assert!(refuses_calls(&mut state), "while the members end");
    handle_event(&mut state, exit_reported(1, ExitReport::Signal(9)), NOW);
    handle_event(&mut state, pane_closed(&ann), NOW);
    let effects = handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
    let position = |is_wanted: fn(&FileJob) -> bool| {
        effects.iter().position(|effect| matches!(effect, Effect::File(job) if is_wanted(job)))
    };
    let scan = position(|job| matches!(job, FileJob::ScanTasks { selection: TaskSelection::All, .. }));
    let deletion = position(|job| matches!(job, FileJob::DeleteTeam { .. }));
    assert!(scan.is_some() && scan < deletion, "the last changes of tasks are logged: {effects:?}");
    assert!(refuses_calls(&mut state), "while the files are deleted");
    let effects = handle_event(&mut state, team_deleted(2, Err(ErrorReport::new(ErrorKind::Io, "no"))), NOW);
    let Some(Response::Failed(error)) = reply(&effects, 2) else { panic!("{effects:?}") };
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(
        ["no\nBefore that: ", "ann", "eve", " ended"].iter().all(|part| error.message.contains(part)),
        "{error:?}"
    );
    opened_spawn_id(&send_call(&mut state, 4, spawn_request("bob")));
}

#[test]
fn deletion_that_the_files_do_not_allow_ends_no_agent() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    send_call(&mut state, 2, forced_delete_request());
    let effects = handle_event(
        &mut state,
        deletable_checked(2, Err(ErrorReport::new(ErrorKind::Refused, "notes.txt"))),
        NOW,
    );
    assert!(!ends_agent(&effects) && error_kind(&effects, 2) == Some(ErrorKind::Refused), "{effects:?}");
    assert!(matches!(state.agents[&ann].record.lifecycle, Lifecycle::Running(_)));
    opened_spawn_id(&send_call(&mut state, 4, spawn_request("bob")));
}

#[test]
fn refused_deletion_does_not_block_spawns() {
    let mut state = new_state();
    start_member(&mut state, "ann", 1);
    send_call(&mut state, 2, delete_request());
    opened_spawn_id(&send_call(&mut state, 3, spawn_request("bob")));
}

#[test]
fn stop_of_the_daemon_ends_agents_without_a_team() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    state.teams.remove(&survey_team());
    let effects = send_call(&mut state, 2, Request::StopDaemon);
    assert!(
        reply_value(&effects, 2).is_none() && !effects.iter().any(|effect| matches!(effect, Effect::Exit))
    );
    handle_event(&mut state, exit_reported(1, ExitReport::Exit(0)), NOW);
    handle_event(&mut state, pane_closed(&ann), NOW);
    let effects = handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
    assert!(reply_value(&effects, 2).is_none(), "the roster is saved before the reply");
    let effects = with_replies(&mut state, effects);
    assert!(
        reply_value(&effects, 2).is_some() && effects.iter().any(|effect| matches!(effect, Effect::Exit))
    );
}

#[test]
fn next_daemon_completes_an_accepted_deletion() {
    let mut state = new_state();
    let ann = start_member(&mut state, "ann", 1);
    send_call(&mut state, 2, forced_delete_request());
    let mut without_acceptance = next_daemon(&state);
    recover(&mut without_acceptance, NOW);
    assert!(without_acceptance.teams[&survey_team()].deletion.is_none(), "the deletion was not accepted yet");
    handle_event(&mut state, deletable_checked(2, Ok(())), NOW);
    let mut state = next_daemon(&state);
    recover(&mut state, NOW);
    assert_eq!(error_kind(&send_call(&mut state, 4, spawn_request("bob")), 4), Some(ErrorKind::Refused));
    let effects = handle_event(&mut state, shim_connected(&ann, 51, 1, Some(99)), NOW);
    assert!(ends_agent(&effects), "{effects:?}");
    handle_event(&mut state, exit_reported(51, ExitReport::Signal(9)), NOW);
    handle_event(&mut state, pane_closed(&ann), NOW);
    let effects = handle_event(&mut state, member_deregistered(&ann, ShutdownApproval::NotGiven, None), NOW);
    assert!(deletes_files(&effects), "{effects:?}");
    // This daemon is killed too, after it has deleted the last file.
    let mut state = next_daemon(&state);
    let effects = recover(&mut state, NOW);
    assert!(deletes_files(&effects), "{effects:?}");
    let restores = |job: &FileJob| matches!(job, FileJob::CheckConfig { .. });
    assert!(!has_file_job(&effects, restores), "a scan would write config.json again: {effects:?}");
    let error = ErrorReport::new(ErrorKind::NotFound, "no such team");
    let deleted = FileResult::TeamDeleted {
        client: None,
        team: survey_team(),
        result: Err(error),
        worktrees: Default::default(),
    };
    assert!(
        reply(&send_call(&mut state, 8, forced_delete_request()), 8).is_none(),
        "the second call waits for the deletion"
    );
    let effects = handle_event(&mut state, CoreEvent::FileJobDone(deleted), NOW);
    assert!(reply_value(&effects, 8).is_some(), "{effects:?}");
    assert!(state.teams.is_empty() && state.to_roster().deletions.is_empty());
}

#[test]
fn name_of_a_team_that_is_being_deleted_is_not_free() {
    let mut state = new_state();
    send_call(&mut state, 2, forced_delete_request());
    let create = || Request::CreateTeam(CreateTeamRequest::new(survey_team(), "/".into()));
    assert_eq!(error_kind(&send_call(&mut state, 3, create()), 3), Some(ErrorKind::Refused));
    handle_event(&mut state, team_deleted(2, Ok(())), NOW);
    let effects = send_call(&mut state, 3, create());
    assert!(has_file_job(&effects, |job| matches!(job, FileJob::CreateTeam(_))), "{effects:?}");
}

#[test]
fn taken_name_gets_the_next_number_if_the_client_accepts_any_name() {
    let mut state = new_state();
    let request = CreateTeamRequest { unique: true, ..CreateTeamRequest::new(survey_team(), "/".into()) };
    let mut effects = send_call(&mut state, 3, Request::CreateTeam(request));
    for name in ["survey", "survey-2", "survey-3"] {
        let creation = effects.into_iter().find_map(|effect| match effect {
            Effect::File(FileJob::CreateTeam(creation)) => Some(creation),
            _ => None,
        });
        let creation = creation.unwrap();
        assert_eq!(creation.name.as_str(), name);
        let result = Err(ErrorReport::new(ErrorKind::AlreadyExists, "taken"));
        let done = CoreEvent::FileJobDone(FileResult::TeamCreated { creation, result });
        effects = handle_event(&mut state, done, NOW);
    }
}

#[test]
fn acceptance_keeps_its_time_in_the_next_daemon() {
    let mut state = new_state();
    send_call(&mut state, 2, forced_delete_request());
    let deletions = state.to_roster().deletions;
    let mut state = next_daemon(&state);
    recover(&mut state, Now { wall: NOW.wall + 60_000, ..NOW });
    assert_eq!(state.to_roster().deletions, deletions);
}

fn deletes_files(effects: &[Effect]) -> bool {
    has_file_job(effects, |job| matches!(job, FileJob::DeleteTeam { .. }))
}

#[test]
fn failed_deletion_is_not_tried_again_by_the_next_daemon() {
    let mut state = new_state();
    send_call(&mut state, 2, forced_delete_request());
    assert_eq!(state.to_roster().deletions.len(), 1);
    handle_event(&mut state, team_deleted(2, Err(ErrorReport::new(ErrorKind::Io, "no"))), NOW);
    assert!(state.to_roster().deletions.is_empty());
}
