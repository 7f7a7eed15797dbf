//! Many who come or go at once.

use super::*;

/// What the thread tells of these jobs, which all wait when it begins.
fn told_of(files: &mut Files, jobs: Vec<FileJob>) -> Vec<FileDone> {
    let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
    files.events = events;
    let (mut giver, queue) = queue::queue();
    jobs.into_iter().for_each(|job| giver.give(job));
    giver.go();
    drop(giver);
    files.run(queue);
    let told = std::iter::from_fn(|| told.try_recv().ok());
    told.filter_map(|event| if let Event::Filed(done) = event { Some(done) } else { None }).collect()
}

fn coming(name: &str, born: u64) -> FileJob {
    let record = Record { env: format!("{name}.json"), ..record(name, born) };
    FileJob::Register { spawn: record.spawn.clone(), record: record.into(), again: false, at: born }
}

fn going(name: &str, born: u64) -> FileJob {
    let end = End { how: "exit 1".into(), outcome: Outcome::Failed, then: None, at: 9, told: Told::Lead };
    FileJob::Farewell { record: Record { ended: Some(end), ..record(name, born) }.into() }
}

fn environment_of(name: &str) -> FileJob {
    FileJob::Environment { file: format!("{name}.json"), env: BTreeMap::new() }
}

/// How often the config was put in place while `act` ran.
fn changes_of_config(team: &Team, act: impl FnOnce()) -> usize {
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

fn names_on(team: &Team) -> Vec<String> {
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
        let all = gather(first, next_if, |_| aside += 1);
        (all.len(), aside, waiting.len())
    };
    let log = || FileJob::Log("{}".to_owned());
    let roster = FileJob::Roster(Roster::default());
    let heard = FileJob::Heard { conn: 1 };
    let many = vec![coming("ann", 7), log(), environment_of("bob"), coming("bob", 7), heard, roster];
    assert_eq!(of(many), (2, 4, 0));
    assert_eq!(of(vec![going("ann", 7), going("bob", 7), log(), FileJob::Probe, going("eve", 7)]), (2, 1, 2));
    assert_eq!(of(vec![coming("ann", 7), coming("ANN", 8)]), (1, 0, 1), "one of a name");
    assert_eq!(of(vec![going("ann", 7), coming("bob", 8)]), (1, 0, 1), "of one kind");
    assert_eq!(of(vec![log(), log(), going("ann", 7)]), (1, 0, 2), "nothing else is put in another order");
    let mut other = coming("bob", 7);
    if let FileJob::Register { record, .. } = &mut other {
        record.team = TeamName::parse("other").unwrap();
    }
    assert_eq!(of(vec![coming("ann", 7), other]), (1, 0, 1), "of one team");
}

#[test]
fn many_who_come_and_go_at_once_change_the_config_once_and_each_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let names = ["ann", "bob", "carl", "dora"];
    let mut told = Vec::new();
    let come = names.into_iter().flat_map(|name| [environment_of(name), coming(name, 7)]).collect();
    assert_eq!(changes_of_config(&team, || told = told_of(&mut files, come)), 1);
    let tracking = |done: &FileDone| match done {
        FileDone::Registered { result: Ok(Enrolled { tracking, .. }), .. } => tracking.number(),
        other => panic!("{other:?}"),
    };
    assert_eq!(told.iter().map(tracking).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(names_on(&team), ["team-lead", "ann", "bob", "carl", "dora"]);
    for name in names {
        assert_eq!(
            team.inbox(&AgentName::new_unchecked(name)).read().unwrap().len(),
            1,
            "{name} has its prompt"
        );
    }
    // Of bob there is another life by now.
    team.set_member_fields(&AgentName::new_unchecked("bob"), &[("joinedAt", 8.into())]).unwrap();
    let gone = |files: &mut Files| {
        let told = told_of(files, names.map(|name| going(name, 7)).into());
        let is_done = |done: &FileDone| matches!(done, FileDone::Farewelled { left: None, .. });
        assert!(told.len() == 4 && told.iter().all(is_done), "{told:?}");
    };
    assert_eq!(changes_of_config(&team, || gone(&mut files)), 1);
    assert_eq!(names_on(&team), ["team-lead", "bob"]);
    // A daemon that was killed behind it does it once more.
    assert_eq!(changes_of_config(&team, || gone(&mut files)), 0);
    let news = team.inbox(&AgentName::lead()).read().unwrap();
    assert_eq!(news.iter().map(|entry| &entry.message.as_ref().unwrap().from).collect::<Vec<_>>(), names);
}

#[test]
fn of_many_who_come_or_go_at_once_each_has_its_own_fault() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let (team, _) = with_ann(&mut files);
    // Nothing of this name can be written.
    std::fs::create_dir_all(dir.path().join("state/env/carl.json/x")).unwrap();
    std::fs::create_dir_all(team.path().join("inboxes/fred.json")).unwrap();
    let come = ["bob", "eve", "carl", "fred", "dora"];
    let jobs = come.into_iter().flat_map(|name| [environment_of(name), coming(name, 7)]).collect();
    let faults: Vec<Option<String>> = told_of(&mut files, jobs)
        .into_iter()
        .map(|done| match done {
            FileDone::Registered { result, .. } => result.err().map(|fault| fault.message),
            other => panic!("{other:?}"),
        })
        .collect();
    let says = |at: usize, what: &str| faults[at].as_ref().is_some_and(|fault| fault.contains(what));
    assert!(says(1, "member eve") && says(2, "carl.json") && says(3, "fred.json"), "{faults:?}");
    assert_eq!([0, 4].map(|at| faults[at].clone()), [None, None]);
    assert_eq!(names_on(&team), ["team-lead", "ann", "eve", "bob", "dora"]);
    // A damaged inbox keeps nobody on the team, nor does one whose task can't be written keep the others.
    std::fs::write(team.path().join("inboxes/team-lead.json"), "{").unwrap();
    let (bobs, dora) = (TaskId::from_number(2).unwrap(), going("dora", 7));
    std::fs::write(team.tasks().path().join("2.json"), "{").unwrap();
    let mut bob = going("bob", 7);
    if let FileJob::Farewell { record } = &mut bob {
        (record.tracking, record.ended) = (Some(bobs), None);
    }
    let left: Vec<Option<String>> = told_of(&mut files, vec![going("ann", 7), bob, dora])
        .into_iter()
        .map(|done| match done {
            FileDone::Farewelled { left, .. } => left.map(|fault| fault.message),
            other => panic!("{other:?}"),
        })
        .collect();
    let says = |at: usize, what: &str| left[at].as_ref().is_some_and(|fault| fault.contains(what));
    assert!(says(0, "team-lead.json") && says(1, "2.json") && says(2, "team-lead.json"), "{left:?}");
    assert_eq!(names_on(&team), ["team-lead", "eve", "bob"]);
}
