//! Tests of batches: several members that are registered or deregistered at once.

use super::*;
use crate::core::exit_record::{ExitOutcome, ReportTo};
use crate::core::jobs::file_jobs::{FileJob, Registration};
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::queue_and_batch_of_file_job::collect_batch;
use crate::io::files::files_thread::start_lanes;

/// The results of jobs that all wait in the queue when the files thread starts.
fn run_jobs(files: &mut FilesThread, jobs: Vec<FileJob>) -> Vec<FileResult> {
    let (events, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut sender = start_lanes(Arc::clone(&files.shared), Arc::clone(&files.state), events).unwrap();
    jobs.into_iter().for_each(|job| sender.push(job));
    sender.finish();
    let received = std::iter::from_fn(|| receiver.try_recv().ok());
    received
        .filter_map(|event| if let CoreEvent::FileJobDone(result) = event { Some(result) } else { None })
        .collect()
}

fn registration_job(name: &str, spawned_at: u64) -> FileJob {
    let record = record_with_environment(name, spawned_at, &format!("{name}.json"));
    FileJob::RegisterMember { record: record.into(), at: spawned_at }
}

fn deregistration_job(name: &str, spawned_at: u64) -> FileJob {
    let exit = ExitRecord {
        description: "exit 1".into(),
        outcome: ExitOutcome::Failed,
        next_step: None,
        ended_at: 9,
        report_to: ReportTo::Lead,
    };
    FileJob::DeregisterMember {
        record: AgentRecord { lifecycle: exited(exit), ..new_record(name, spawned_at) }.into(),
    }
}

fn environment_job(name: &str) -> FileJob {
    FileJob::SaveEnvironment { file: format!("{name}.json"), env: BTreeMap::new() }
}

/// How often config.json was replaced while `action` ran.
fn count_config_changes(team: &Team, action: impl FnOnce()) -> usize {
    use notify::Watcher;
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        event.iter().for_each(|event| drop(sender.send(event.clone())));
    })
    .unwrap();
    watcher.watch(&team.path(), notify::RecursiveMode::NonRecursive).unwrap();
    action();
    let last = team.path().join("last");
    std::fs::write(&last, "").unwrap();
    let moved_to = notify::EventKind::Modify(notify::event::ModifyKind::Name(notify::event::RenameMode::To));
    let until_last = std::iter::from_fn(|| receiver.recv_timeout(std::time::Duration::from_secs(20)).ok())
        .take_while(|event| event.paths != [last.clone()]);
    until_last.filter(|event| event.kind == moved_to && event.paths == [team.config_path()]).count()
}

fn member_names(team: &Team) -> Vec<String> {
    team.config().unwrap().members.iter().map(|member| member.name.to_string()).collect()
}

#[test]
fn consecutive_registrations_form_a_batch() {
    let counts = |jobs: Vec<FileJob>| {
        let mut waiting = VecDeque::from(jobs);
        let first = waiting.pop_front().unwrap();
        let next_if = |is_wanted: &dyn Fn(&FileJob) -> bool| match waiting.front() {
            Some(job) if is_wanted(job) => waiting.pop_front(),
            _ => None,
        };
        let batch = collect_batch(first, next_if);
        (batch.len(), waiting.len())
    };
    let scan = || FileJob::ScanRequests { team: survey_team() };
    assert_eq!(counts(vec![registration_job("ann", 7), registration_job("bob", 7), scan()]), (2, 1));
    let interrupted = vec![
        deregistration_job("ann", 7),
        deregistration_job("bob", 7),
        scan(),
        deregistration_job("eve", 7),
    ];
    assert_eq!(counts(interrupted), (2, 2));
    assert_eq!(counts(vec![registration_job("ann", 7), registration_job("ANN", 8)]), (1, 1), "one per name");
    assert_eq!(counts(vec![deregistration_job("ann", 7), registration_job("bob", 8)]), (1, 1), "one kind");
    assert_eq!(counts(vec![scan(), scan(), deregistration_job("ann", 7)]), (1, 2), "no other job");
}

#[test]
fn a_batch_changes_the_config_once_and_each_job_has_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let names = ["ann", "bob", "carl", "dora"];
    let mut results = Vec::new();
    let registrations =
        names.into_iter().flat_map(|name| [environment_job(name), registration_job(name, 7)]).collect();
    assert_eq!(count_config_changes(&team, || results = run_jobs(&mut files, registrations)), 1);
    let task_number = |result: &FileResult| match result {
        FileResult::MemberRegistered { result: Ok(Registration { tracking_task, .. }), .. } => {
            tracking_task.number()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(results.iter().map(task_number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(member_names(&team), ["team-lead", "ann", "bob", "carl", "dora"]);
    for name in names {
        assert_eq!(
            team.inbox(&MemberName::new_unchecked(name)).read().unwrap().len(),
            1,
            "{name} has its prompt"
        );
    }
    // Another spawn of bob is registered.
    team.set_member_fields(&MemberName::new_unchecked("bob"), &[("joinedAt", 8.into())]).unwrap();
    let deregister_all = |files: &mut FilesThread| {
        let results = run_jobs(files, names.map(|name| deregistration_job(name, 7)).into());
        let is_done =
            |result: &FileResult| matches!(result, FileResult::MemberDeregistered { error: None, .. });
        assert!(results.len() == 4 && results.iter().all(is_done), "{results:?}");
    };
    assert_eq!(count_config_changes(&team, || deregister_all(&mut files)), 1);
    assert_eq!(member_names(&team), ["team-lead", "bob"]);
    // After a crash the next daemon repeats the deregistration.
    assert_eq!(count_config_changes(&team, || deregister_all(&mut files)), 0);
    let messages = team.inbox(&MemberName::lead()).read().unwrap();
    assert_eq!(messages.iter().map(|entry| &entry.message.as_ref().unwrap().from).collect::<Vec<_>>(), names);
}

#[test]
fn each_job_of_a_batch_has_its_own_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    // A directory in the place of a file makes its write fail.
    std::fs::create_dir_all(dir.path().join("state/environments/carl.json/x")).unwrap();
    std::fs::create_dir_all(team.path().join("inboxes/fred.json")).unwrap();
    let names = ["bob", "eve", "carl", "fred", "dora"];
    let jobs =
        names.into_iter().flat_map(|name| [environment_job(name), registration_job(name, 7)]).collect();
    let errors: Vec<Option<String>> = run_jobs(&mut files, jobs)
        .into_iter()
        .map(|result| match result {
            FileResult::MemberRegistered { result, .. } => result.err().map(|error| error.message),
            other => panic!("{other:?}"),
        })
        .collect();
    let has_error =
        |index: usize, text: &str| errors[index].as_ref().is_some_and(|error| error.contains(text));
    assert!(
        has_error(1, "member eve") && has_error(2, "carl.json") && has_error(3, "fred.json"),
        "{errors:?}"
    );
    assert_eq!([0, 4].map(|index| errors[index].clone()), [None, None]);
    assert_eq!(member_names(&team), ["team-lead", "ann", "eve", "bob", "dora"]);
    // A damaged inbox does not keep a member on the team. A damaged task does not affect others.
    std::fs::write(team.path().join("inboxes/team-lead.json"), "{").unwrap();
    let (bob_task, dora) = (TaskId::from_number(2).unwrap(), deregistration_job("dora", 7));
    std::fs::write(team.tasks().path().join("2.json"), "{").unwrap();
    let mut bob = deregistration_job("bob", 7);
    if let FileJob::DeregisterMember { record } = &mut bob {
        record.tracking_task = Some(bob_task);
        record.lifecycle = new_record("bob", 7).lifecycle;
    }
    let errors: Vec<Option<String>> = run_jobs(&mut files, vec![deregistration_job("ann", 7), bob, dora])
        .into_iter()
        .map(|result| match result {
            FileResult::MemberDeregistered { error, .. } => error.map(|error| error.message),
            other => panic!("{other:?}"),
        })
        .collect();
    let has_error =
        |index: usize, text: &str| errors[index].as_ref().is_some_and(|error| error.contains(text));
    assert!(
        has_error(0, "team-lead.json") && has_error(1, "2.json") && has_error(2, "team-lead.json"),
        "{errors:?}"
    );
    assert_eq!(member_names(&team), ["team-lead", "eve", "bob"]);
}
