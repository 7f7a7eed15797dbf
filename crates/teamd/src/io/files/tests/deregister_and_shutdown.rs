//! Tests of the deregistration of members and of shutdown requests.

use super::*;
use crate::core::exit_record::{ExitOutcome, ReportTo};
use crate::core::jobs::file_jobs::{FileJob, RosterMembers};
use crate::core::jobs::file_results::FileResult;
use crate::io::files::tests;

#[test]
fn a_deregistered_member_that_an_old_client_writes_back_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    let stale = std::fs::read(team.config_path()).unwrap();
    deregister(&mut files, new_record("ann", 7));
    std::fs::write(team.config_path(), &stale).unwrap();
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    let is_member = |team: &Team| team.config().unwrap().member(&MemberName::new_unchecked("ann")).is_some();
    assert!(!is_member(&team));
    // A later spawn of the same name stays.
    register(&mut files, new_record("ann", 8));
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    assert!(is_member(&team));
    // The later spawn is restored when the earlier one is removed.
    std::fs::write(team.config_path(), &stale).unwrap();
    let registered = vec![RegisteredMember { record: new_record("ann", 8).into(), activity: Activity::Idle }];
    let members = RosterMembers { all_names: vec![MemberName::new_unchecked("ann")], registered };
    assert!(files.check_config(&survey_team(), &members).unwrap().has_restored_members);
    assert_eq!(team.config().unwrap().member(&MemberName::new_unchecked("ann")).unwrap().joined_at, 8);
}

#[test]
fn a_member_of_a_team_without_a_config_is_deregistered() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    std::fs::remove_file(team.config_path()).unwrap();
    assert_eq!(deregister(&mut files, new_record("ann", 7)), None);
}

/// After a crash the daemon knows the request, but not whether it was sent.
#[test]
fn a_shutdown_request_is_not_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    let inbox = team.inbox(&MemberName::parse("ann").unwrap());
    let request = RequestId::parse("shutdown-1@ann").unwrap();
    let count_after_sending = |unless_unread: Vec<RequestId>| {
        let name = MemberName::parse("ann").unwrap();
        files.send_shutdown_request(&tests::survey_team(), &name, &request, None, &unless_unread, 8).unwrap();
        inbox.read().unwrap().len()
    };
    let before = inbox.read().unwrap().len();
    assert_eq!(count_after_sending(vec![request.clone()]), before + 1, "the request was not sent before");
    inbox.mark_read(&inbox.read().unwrap()).unwrap();
    assert_eq!(count_after_sending(vec![request.clone()]), before + 1);
}

/// The roster must be saved first. Otherwise the next daemon might report an exit again, with
/// another text, and might not know a shutdown request that was sent.
#[test]
fn exits_are_reported_and_shutdowns_requested_only_after_the_roster_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    let exit = ExitRecord {
        description: "exit 1".into(),
        outcome: ExitOutcome::Failed,
        next_step: None,
        ended_at: 8,
        report_to: ReportTo::Lead,
    };
    let ann = AgentRecord { lifecycle: exited(exit), ..new_record("ann", 7) };
    let roster = || FileJob::SaveRoster(Roster { records: vec![ann.clone().into()], ..Roster::default() });
    let acknowledge = |files: &mut FilesThread| match files.run_job(FileJob::AcknowledgeExit { conn: 1 }) {
        Some(FileResult::ExitAcknowledged { conn: 1, result }) => result.is_ok(),
        _ => panic!("no result"),
    };
    let deregister = |files: &mut FilesThread| match files
        .run_job(FileJob::DeregisterMember { record: ann.clone().into() })
    {
        Some(FileResult::MemberDeregistered { error, .. }) => error.is_none(),
        _ => panic!("no result"),
    };
    let request_shutdown = |files: &mut FilesThread| {
        let request = RequestId::parse("shutdown-1@ann").unwrap();
        let (spawn, name, team) = (ann.spawn_id.clone(), ann.request.name.clone(), tests::survey_team());
        match files.run_job(FileJob::SendShutdownRequest {
            spawn,
            team,
            name,
            request,
            reason: None,
            unless_unread: vec![],
            at: 8,
        }) {
            Some(FileResult::ShutdownRequestSent { result, .. }) => result.is_ok(),
            _ => panic!("no result"),
        }
    };
    let message_count = || team.inbox(&MemberName::lead()).read().unwrap().len();
    let is_member = || team.config().unwrap().member(&ann.request.name).is_some();
    std::fs::create_dir(dir.path().join("state").join(protocol::state_file_names::ROSTER)).unwrap();
    assert!(matches!(files.run_job(roster()), Some(FileResult::RosterNotSaved(_))));
    assert!(!acknowledge(&mut files) && !request_shutdown(&mut files) && !deregister(&mut files));
    assert!(team.inbox(&ann.request.name).read().unwrap().iter().all(|entry| entry.index == 0), "no request");
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    assert_eq!((message_count(), is_member()), (0, true));
    std::fs::remove_dir(dir.path().join("state").join(protocol::state_file_names::ROSTER)).unwrap();
    assert!(files.run_job(roster()).is_none());
    assert!(acknowledge(&mut files) && request_shutdown(&mut files) && deregister(&mut files));
    assert_eq!((message_count(), is_member()), (1, false));
}
