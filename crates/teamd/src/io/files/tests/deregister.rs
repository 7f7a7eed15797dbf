//! Members that are taken off, and teams that are deleted.

use super::*;
use crate::core::exit_record::{ExitOutcome, ReportTo};
use crate::core::jobs::files::{FileJob, FileResult, RosterMembers};
use crate::io::files::tests;

#[test]
fn a_team_that_was_deleted_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, ann) = team_with_ann(&mut files);
    std::fs::remove_dir_all(team.path()).unwrap();
    assert!(matches!(files.check_config(&survey_team(), &ann), Err(Error::NoSuchTeam { .. })));
    assert!(!team.path().exists());
}

#[test]
fn who_has_ended_does_not_come_back_by_an_old_clients_hand() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    let stale = std::fs::read(team.config_path()).unwrap();
    deregister(&mut files, new_record("ann", 7));
    std::fs::write(team.config_path(), &stale).unwrap();
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    let is_there = |team: &Team| team.config().unwrap().member(&AgentName::new_unchecked("ann")).is_some();
    assert!(!is_there(&team));
    // A later life of that name is another.
    register(&mut files, new_record("ann", 8));
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    assert!(is_there(&team));
    // And is there again where the earlier one is taken out.
    std::fs::write(team.config_path(), &stale).unwrap();
    let living = vec![RegisteredMember { record: new_record("ann", 8).into(), activity: Activity::Idle }];
    let ours = RosterMembers { all_names: vec![AgentName::new_unchecked("ann")], registered: living };
    assert!(files.check_config(&survey_team(), &ours).unwrap().has_restored_members);
    assert_eq!(team.config().unwrap().member(&AgentName::new_unchecked("ann")).unwrap().joined_at, 8);
}

#[test]
fn whose_team_has_no_config_any_more_needs_not_be_taken_off_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    std::fs::remove_file(team.config_path()).unwrap();
    assert_eq!(deregister(&mut files, new_record("ann", 7)), None);
}

#[test]
fn what_could_not_be_removed_goes_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    created_team(&mut files);
    let policy =
        |team: &str| dir.path().join("state").join(Policy::file_name(&TeamName::parse(team).unwrap()));
    let face = |team: &str| dir.path().join(format!("state/config-{team}.json"));
    let probe = files.root.path().join("teams/.probe.tmp.1");
    for left in [&policy("gone"), &face("gone"), &face("known"), &policy("survey"), &probe] {
        std::fs::write(left, "{}").unwrap();
    }
    files.run_job(FileJob::RescanFiles { teams: vec![TeamName::parse("known").unwrap()] });
    let there = [policy("gone"), face("gone"), face("known"), policy("survey"), face("survey")];
    assert_eq!(there.map(|file| file.exists()), [false, false, true, true, true]);
    assert!(!probe.exists());
}

/// A daemon that was killed knows the question, and not whether it was asked.
#[test]
fn what_was_asked_already_is_not_asked_once_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    let inbox = team.inbox(&AgentName::parse("ann").unwrap());
    let request = RequestId::parse("shutdown-1@ann").unwrap();
    let asked = |unless_unread: Vec<RequestId>| {
        let name = AgentName::parse("ann").unwrap();
        files.send_shutdown_request(&tests::survey_team(), &name, &request, None, &unless_unread, 8).unwrap();
        inbox.read().unwrap().len()
    };
    let before = inbox.read().unwrap().len();
    assert_eq!(asked(vec![request.clone()]), before + 1, "it had not been");
    inbox.mark_read(&inbox.read().unwrap()).unwrap();
    assert_eq!(asked(vec![request.clone()]), before + 1);
}

/// The next daemon would see the end for the first time, and tell it in other words; and know nothing of a question.
#[test]
fn nobody_hears_of_an_end_nor_is_asked_for_one_before_it_is_in_the_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    let end = ExitRecord {
        description: "exit 1".into(),
        outcome: ExitOutcome::Failed,
        next_step: None,
        ended_at: 8,
        report_to: ReportTo::Lead,
    };
    let ann = AgentRecord { exit: Some(end), ..new_record("ann", 7) };
    let roster = || FileJob::SaveRoster(Roster { records: vec![ann.clone().into()], ..Roster::default() });
    let heard = |files: &mut FilesThread| match files.run_job(FileJob::AcknowledgeExit { conn: 1 }) {
        Some(FileResult::ExitAcknowledged { conn: 1, result }) => result.is_ok(),
        _ => panic!("no answer"),
    };
    let farewelled = |files: &mut FilesThread| match files
        .run_job(FileJob::DeregisterMember { record: ann.clone().into() })
    {
        Some(FileResult::MemberDeregistered { error: left, .. }) => left.is_none(),
        _ => panic!("no answer"),
    };
    let asked = |files: &mut FilesThread| {
        let request = RequestId::parse("shutdown-1@ann").unwrap();
        let (spawn, name, team) = (ann.spawn_id.clone(), ann.name.clone(), tests::survey_team());
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
            _ => panic!("no answer"),
        }
    };
    let told = || team.inbox(&AgentName::lead()).read().unwrap().len();
    let is_there = || team.config().unwrap().member(&ann.name).is_some();
    std::fs::create_dir(dir.path().join("state").join(ROSTER_FILE)).unwrap();
    assert!(matches!(files.run_job(roster()), Some(FileResult::RosterNotSaved(_))));
    assert!(!heard(&mut files) && !asked(&mut files) && !farewelled(&mut files));
    assert!(team.inbox(&ann.name).read().unwrap().iter().all(|entry| entry.index == 0), "ann is asked");
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    assert_eq!((told(), is_there()), (0, true));
    std::fs::remove_dir(dir.path().join("state").join(ROSTER_FILE)).unwrap();
    assert!(files.run_job(roster()).is_none());
    assert!(heard(&mut files) && asked(&mut files) && farewelled(&mut files));
    assert_eq!((told(), is_there()), (1, false));
}
