//! Many who come or go at once.

use super::*;
use crate::core::exit_record::{ExitOutcome, ReportTo};
use crate::core::jobs::files::{FileJob, FileResult, Registration, collect_batch};
use crate::core::roster::Roster;
use crate::io::files::queue;

/// What the thread tells of these jobs, which all wait when it begins.
fn results_of(files: &mut FilesThread, jobs: Vec<FileJob>) -> Vec<FileResult> {
    let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
    files.events = events;
    let (mut giver, queue) = queue::new_queue();
    jobs.into_iter().for_each(|job| giver.push(job));
    giver.flush();
    drop(giver);
    files.run(queue);
    let told = std::iter::from_fn(|| told.try_recv().ok());
    told.filter_map(|event| if let CoreEvent::FileJobDone(done) = event { Some(done) } else { None })
        .collect()
}

fn registration_job(name: &str, born: u64) -> FileJob {
    let record = AgentRecord { environment_file: format!("{name}.json"), ..new_record(name, born) };
    FileJob::RegisterMember {
        spawn: record.spawn_id.clone(),
        record: record.into(),
        is_respawn: false,
        at: born,
    }
}

fn deregistration_job(name: &str, born: u64) -> FileJob {
    let end = ExitRecord {
        description: "exit 1".into(),
        outcome: ExitOutcome::Failed,
        next_step: None,
        ended_at: 9,
        report_to: ReportTo::Lead,
    };
    FileJob::DeregisterMember { record: AgentRecord { exit: Some(end), ..new_record(name, born) }.into() }
}

fn environment_job(name: &str) -> FileJob {
    FileJob::SaveEnvironment { file: format!("{name}.json"), env: BTreeMap::new() }
}

/// How often the config was put in place while `act` ran.
fn count_config_changes(team: &Team, act: impl FnOnce()) -> usize {
    use notify::Watcher;
    let (tell, told) = std::sync::mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        event.iter().for_each(|event| drop(tell.send(event.clone())));
    })
    .unwrap();
    watcher.watch(&team.path(), notify::RecursiveMode::NonRecursive).unwrap();
    act();
    let last = team.path().join("last");
    std::fs::write(&last, "").unwrap();
    let moved_to = notify::EventKind::Modify(notify::event::ModifyKind::Name(notify::event::RenameMode::To));
    let until_last = std::iter::from_fn(|| told.recv_timeout(std::time::Duration::from_secs(20)).ok())
        .take_while(|event| event.paths != [last.clone()]);
    until_last.filter(|event| event.kind == moved_to && event.paths == [team.config_path()]).count()
}

fn member_names(team: &Team) -> Vec<String> {
    team.config().unwrap().members.iter().map(|member| member.name.to_string()).collect()
}

#[test]
fn those_who_come_or_go_behind_one_another_are_gathered_with_what_is_aside_ahead_of_them() {
    let of = |jobs: Vec<FileJob>| {
        let mut waiting = VecDeque::from(jobs);
        let (first, mut aside) = (waiting.pop_front().unwrap(), 0);
        let next_if = |wanted: &dyn Fn(&FileJob) -> bool| match waiting.front() {
            Some(job) if wanted(job) => waiting.pop_front(),
            _ => None,
        };
        let all = collect_batch(first, next_if, |_| aside += 1);
        (all.len(), aside, waiting.len())
    };
    let log = || FileJob::AppendEvent("{}".to_owned());
    let roster = FileJob::SaveRoster(Roster::default());
    let heard = FileJob::AcknowledgeExit { conn: 1 };
    let many = vec![
        registration_job("ann", 7),
        log(),
        environment_job("bob"),
        registration_job("bob", 7),
        heard,
        roster,
    ];
    assert_eq!(of(many), (2, 4, 0));
    assert_eq!(
        of(vec![
            deregistration_job("ann", 7),
            deregistration_job("bob", 7),
            log(),
            FileJob::ProbeWatcher,
            deregistration_job("eve", 7)
        ]),
        (2, 1, 2)
    );
    assert_eq!(of(vec![registration_job("ann", 7), registration_job("ANN", 8)]), (1, 0, 1), "one of a name");
    assert_eq!(of(vec![deregistration_job("ann", 7), registration_job("bob", 8)]), (1, 0, 1), "of one kind");
    assert_eq!(
        of(vec![log(), log(), deregistration_job("ann", 7)]),
        (1, 0, 2),
        "nothing else is put in another order"
    );
    let mut other = registration_job("bob", 7);
    if let FileJob::RegisterMember { record, .. } = &mut other {
        record.team = TeamName::parse("other").unwrap();
    }
    assert_eq!(of(vec![registration_job("ann", 7), other]), (1, 0, 1), "of one team");
}

#[test]
fn many_who_come_and_go_at_once_change_the_config_once_and_each_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let team = created_team(&mut files);
    let names = ["ann", "bob", "carl", "dora"];
    let mut told = Vec::new();
    let come =
        names.into_iter().flat_map(|name| [environment_job(name), registration_job(name, 7)]).collect();
    assert_eq!(count_config_changes(&team, || told = results_of(&mut files, come)), 1);
    let tracking = |done: &FileResult| match done {
        FileResult::MemberRegistered { result: Ok(Registration { tracking_task: tracking, .. }), .. } => {
            tracking.number()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(told.iter().map(tracking).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(member_names(&team), ["team-lead", "ann", "bob", "carl", "dora"]);
    for name in names {
        assert_eq!(
            team.inbox(&AgentName::new_unchecked(name)).read().unwrap().len(),
            1,
            "{name} has its prompt"
        );
    }
    // Of bob there is another life by now.
    team.set_member_fields(&AgentName::new_unchecked("bob"), &[("joinedAt", 8.into())]).unwrap();
    let gone = |files: &mut FilesThread| {
        let told = results_of(files, names.map(|name| deregistration_job(name, 7)).into());
        let is_done = |done: &FileResult| matches!(done, FileResult::MemberDeregistered { error: None, .. });
        assert!(told.len() == 4 && told.iter().all(is_done), "{told:?}");
    };
    assert_eq!(count_config_changes(&team, || gone(&mut files)), 1);
    assert_eq!(member_names(&team), ["team-lead", "bob"]);
    // A daemon that was killed behind it does it once more.
    assert_eq!(count_config_changes(&team, || gone(&mut files)), 0);
    let news = team.inbox(&AgentName::lead()).read().unwrap();
    assert_eq!(news.iter().map(|entry| &entry.message.as_ref().unwrap().from).collect::<Vec<_>>(), names);
}

#[test]
fn of_many_who_come_or_go_at_once_each_has_its_own_fault() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let (team, _) = team_with_ann(&mut files);
    // Nothing of this name can be written.
    std::fs::create_dir_all(dir.path().join("state/env/carl.json/x")).unwrap();
    std::fs::create_dir_all(team.path().join("inboxes/fred.json")).unwrap();
    let come = ["bob", "eve", "carl", "fred", "dora"];
    let jobs = come.into_iter().flat_map(|name| [environment_job(name), registration_job(name, 7)]).collect();
    let faults: Vec<Option<String>> = results_of(&mut files, jobs)
        .into_iter()
        .map(|done| match done {
            FileResult::MemberRegistered { result, .. } => result.err().map(|fault| fault.message),
            other => panic!("{other:?}"),
        })
        .collect();
    let says = |at: usize, what: &str| faults[at].as_ref().is_some_and(|fault| fault.contains(what));
    assert!(says(1, "member eve") && says(2, "carl.json") && says(3, "fred.json"), "{faults:?}");
    assert_eq!([0, 4].map(|at| faults[at].clone()), [None, None]);
    assert_eq!(member_names(&team), ["team-lead", "ann", "eve", "bob", "dora"]);
    // A damaged inbox keeps nobody on the team, nor does one whose task can't be written keep the others.
    std::fs::write(team.path().join("inboxes/team-lead.json"), "{").unwrap();
    let (bobs, dora) = (TaskId::from_number(2).unwrap(), deregistration_job("dora", 7));
    std::fs::write(team.tasks().path().join("2.json"), "{").unwrap();
    let mut bob = deregistration_job("bob", 7);
    if let FileJob::DeregisterMember { record } = &mut bob {
        (record.tracking_task, record.exit) = (Some(bobs), None);
    }
    let left: Vec<Option<String>> = results_of(&mut files, vec![deregistration_job("ann", 7), bob, dora])
        .into_iter()
        .map(|done| match done {
            FileResult::MemberDeregistered { error: left, .. } => left.map(|fault| fault.message),
            other => panic!("{other:?}"),
        })
        .collect();
    let says = |at: usize, what: &str| left[at].as_ref().is_some_and(|fault| fault.contains(what));
    assert!(says(0, "team-lead.json") && says(1, "2.json") && says(2, "team-lead.json"), "{left:?}");
    assert_eq!(member_names(&team), ["team-lead", "eve", "bob"]);
}
