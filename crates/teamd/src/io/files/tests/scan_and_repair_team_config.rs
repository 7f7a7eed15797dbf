//! Tests of the config scan: another program damages, changes or removes config.json.

use super::*;
use crate::core::jobs::file_jobs::{FileJob, RosterMembers};
use crate::core::jobs::file_results::FileResult;

#[test]
fn a_damaged_config_is_rebuilt_with_lead_members_and_foreign_members() {
    for damage in ["", "{\"name\": \"survey\",", "removed"] {
        let dir = tempfile::tempdir().unwrap();
        let mut files = new_files_thread(dir.path(), BTreeMap::new());
        let (team, mut ann) = team_with_ann(&mut files);
        ann.registered[0].record.config_mode = Some("acceptEdits".to_owned());
        let before = team.config().unwrap();
        match damage {
            "removed" => std::fs::remove_file(team.config_path()).unwrap(),
            text => std::fs::write(team.config_path(), text).unwrap(),
        }
        let snapshot = files.check_config(&survey_team(), &ann).unwrap();
        let reason = snapshot.repaired.unwrap();
        assert!(reason.contains("written anew from the roster"), "{reason}");
        let after = team.config().unwrap();
        let team_fields = |config: &TeamConfig| {
            (config.description.clone(), config.created_at, config.lead_session_id.clone())
        };
        assert_eq!(team_fields(&after), team_fields(&before), "{damage}");
        let mut names: Vec<String> = after.members.iter().map(|m| m.name.to_string()).collect();
        assert_eq!(names.remove(0), "team-lead");
        names.sort();
        assert_eq!(names, ["ann", "eve"]);
        let restored = after.member(&MemberName::new_unchecked("ann")).unwrap();
        assert_eq!((restored.is_active, restored.mode.as_deref()), (Some(false), Some("acceptEdits")));
        assert_eq!(snapshot.modes, [(MemberName::new_unchecked("ann"), "acceptEdits".to_owned())]);
        assert_eq!(files.check_config(&survey_team(), &ann).unwrap().repaired, None, "repaired once");
    }
}

#[test]
fn a_config_backup_that_could_not_be_written_is_written_by_the_next_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, ann) = team_with_ann(&mut files);
    let text = std::fs::read_to_string(team.config_path()).unwrap();
    std::fs::write(team.config_path(), text.replacen("a survey", "another", 1)).unwrap();
    let backup = dir.path().join("state/config-backup-survey.json");
    let before = std::fs::read(&backup).unwrap();
    std::fs::remove_file(&backup).unwrap();
    std::fs::create_dir(&backup).unwrap();
    files.check_config(&survey_team(), &ann).unwrap();
    std::fs::remove_dir(&backup).unwrap();
    std::fs::write(&backup, before).unwrap();
    files.check_config(&survey_team(), &ann).unwrap();
    std::fs::write(team.config_path(), "").unwrap();
    assert!(files.check_config(&survey_team(), &ann).unwrap().repaired.is_some());
    assert_eq!(team.config().unwrap().description.as_deref(), Some("another"));
}

#[test]
fn a_request_scan_does_not_wait_for_the_repair_of_a_damaged_config() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let plan = r#"{"type":"plan_approval_request","from":"ann","timestamp":"2026-02-13T16:00:00.000Z","planFilePath":"/p","planContent":"go","requestId":"plan-1"}"#;
    let message = Message::new(&MemberName::new_unchecked("ann"), plan.into(), 1);
    team.inbox(&MemberName::lead()).append(&message).unwrap();
    std::fs::write(team.config_path(), "").unwrap();
    let started = std::time::Instant::now();
    let result = files.run_job(FileJob::ScanRequests { team: survey_team() });
    assert!(matches!(result, Some(FileResult::RequestsScanned { result: Err(_), .. })), "{result:?}");
    assert!(started.elapsed() < std::time::Duration::from_secs(4), "{:?}", started.elapsed());
}

#[test]
fn a_foreign_config_is_not_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let config = team.config().unwrap();
    // Another program's team of the same name has another creation time.
    let text = TeamConfig { created_at: 2, ..config }.to_text();
    std::fs::write(team.config_path(), text).unwrap();
    files.check_config(&survey_team(), &RosterMembers::default()).unwrap();
    std::fs::write(team.config_path(), "").unwrap();
    let error = files.check_config(&survey_team(), &RosterMembers::default()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(std::fs::read(team.config_path()).unwrap(), b"");
}
