//! The files thread beside somebody who removes and remakes what it knows.

#![allow(clippy::disallowed_methods, reason = "the tests are that somebody")]

use super::job::{Living, Mail, Ours};
use super::*;
use crate::roster::{End, Outcome, Record, Roster, Told};
use protocol::config::TeamConfig;
use protocol::control::{Activity, Commands, Create};
use protocol::id::{RequestId, TaskId};
use protocol::message::Message;
use protocol::policy::Policy;
use std::collections::BTreeSet;
use std::path::Path;
use store::{Durability, NewTask};

fn files(at: &Path, told: BTreeMap<(TeamName, AgentName), usize>) -> Files {
    let root = at.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let root = Root::open(&root, &at.join("aside"), Durability::Process).unwrap();
    let state = StateDir::open(&at.join("state")).unwrap();
    let (events, _) = tokio::sync::mpsc::unbounded_channel();
    Files::new(root, state, told, events)
}

fn name() -> TeamName {
    TeamName::parse("survey").unwrap()
}

fn create() -> Create {
    Create {
        team: name(),
        description: None,
        agent_type: None,
        model: None,
        cwd: "/".into(),
        unique: false,
        policy: Policy::default(),
        lead_mode: None,
    }
}

fn made(files: &mut Files) -> Team {
    files.create(&create(), 1).unwrap();
    files.root.team(&name()).unwrap()
}

fn task(team: &Team, subject: &str) -> TaskId {
    team.tasks().create(NewTask::new(subject, &AgentName::lead())).unwrap().id
}

#[test]
fn what_an_earlier_daemon_left_of_an_environment_goes_with_the_first_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    files.keep_environment("left.json", &BTreeMap::new()).unwrap();
    files.save(&Roster::default()).unwrap();
    assert!(!dir.path().join("state/env/left.json").exists());
}

#[test]
fn an_environment_goes_although_another_has_come_with_the_same_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let of = |name: &str| {
        let record = Record { env: format!("{name}.json"), ..record(name, 7) };
        Roster { agents: vec![record.into()], ..Roster::default() }
    };
    for name in ["ann", "bob"] {
        files.keep_environment(&format!("{name}.json"), &BTreeMap::new()).unwrap();
        files.save(&of(name)).unwrap();
    }
    let left = std::fs::read_dir(dir.path().join("state/env")).unwrap();
    assert_eq!(left.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["bob.json"]);
}

#[test]
fn an_environment_that_could_not_be_removed_goes_with_the_next_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let left = dir.path().join("state/env/left.json");
    files.keep_environment("left.json", &BTreeMap::new()).unwrap();
    std::fs::remove_file(&left).unwrap();
    // No file can be removed here.
    std::fs::create_dir(&left).unwrap();
    files.save(&Roster::default()).unwrap();
    std::fs::remove_dir(&left).unwrap();
    files.keep_environment("left.json", &BTreeMap::new()).unwrap();
    files.save(&Roster::default()).unwrap();
    assert!(!left.exists());
}

#[test]
fn a_handle_that_an_inbox_made_has_seen_no_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let (one, two) = (task(&team, "one"), task(&team, "two"));
    assert_eq!(files.tasks(&name(), Which::All).unwrap().len(), 2);
    // config's directory is made anew by somebody else, the tasks stay.
    let home = dir.path().join("root/teams/survey");
    let config = std::fs::read(home.join("config.json")).unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::create_dir_all(home.join("inboxes")).unwrap();
    std::fs::write(home.join("config.json"), config).unwrap();
    files.job(FileJob::Inbox { team: name(), inbox: "team-lead".into(), guard: Guard::Looks });
    let seen = files.tasks(&name(), Which::These(BTreeSet::from([one]))).unwrap();
    assert_eq!(seen.iter().map(|task| task.id).collect::<Vec<_>>(), [one, two]);
}

#[test]
fn a_task_directory_that_is_made_anew_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    task(&team, "one");
    assert_eq!(files.tasks(&name(), Which::All).unwrap().len(), 1);
    std::fs::remove_dir_all(dir.path().join("root/tasks/survey")).unwrap();
    let again = files.root.team(&name()).unwrap();
    let one = task(&again, "one");
    task(&again, "two");
    assert_eq!(again.tasks().list().unwrap().len(), 2);
    assert_eq!(files.tasks(&name(), Which::These(BTreeSet::from([one]))).unwrap().len(), 2);
    assert_eq!(files.tasks(&name(), Which::All).unwrap().len(), 2, "all");
}

#[test]
fn who_is_on_the_team_is_told_with_its_tasks_where_one_of_them_may_have_been_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let one = task(&team, "one");
    let members = |files: &mut Files| match files.job(FileJob::Tasks { team: name(), which: Which::All }) {
        Some(FileDone::Tasks { members, result: Ok(_), .. }) => members,
        other => panic!("{other:?}"),
    };
    assert_eq!(members(&mut files), []);
    team.tasks().claim(Some(&one), &AgentName::lead()).unwrap();
    assert_eq!(members(&mut files), [AgentName::lead()]);
}

#[test]
fn mail_of_a_new_team_is_told_although_an_old_one_had_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let told = BTreeMap::from([((name(), AgentName::lead()), 5)]);
    let mut files = files(dir.path(), told);
    files.job(FileJob::Create { client: 1, create: create(), created_at: 1 });
    let team = files.root.team(&name()).unwrap();
    team.inbox(&AgentName::lead()).append(&Message::new(&AgentName::lead(), "x".into(), 1)).unwrap();
    assert_eq!(mail_of_lead(&mut files).new.len(), 1);
}

fn mail_of_lead(files: &mut Files) -> Mail {
    match files.job(FileJob::Inbox { team: name(), inbox: "team-lead".into(), guard: Guard::Looks }) {
        Some(FileDone::Inbox { result: Ok(mail), .. }) => mail,
        other => panic!("{other:?}"),
    }
}

/// So many looks, until there is no more: what was new, told before, put back, and the last word of what is unread.
fn looks(files: &mut Files) -> (usize, [usize; 3], Option<usize>) {
    let (mut count, mut sums) = (0, [0; 3]);
    loop {
        let mail = mail_of_lead(files);
        count += 1;
        let found = [mail.new.len(), mail.earlier.len(), mail.put_back.len()];
        sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        if !mail.more {
            return (count, sums, mail.unread);
        }
    }
}

#[test]
fn what_is_read_between_two_parts_is_told_with_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let inbox = made(&mut files).inbox(&AgentName::lead());
    let message = |n: u64| Message::new(&AgentName::lead(), n.to_string(), n);
    inbox.append_all(&(0..10_000).map(message).collect::<Vec<_>>()).unwrap();
    let first = mail_of_lead(&mut files);
    assert_eq!((first.more, first.unread), (true, None));
    let entries = inbox.read().unwrap();
    inbox.mark_read(&entries[1..4]).unwrap();
    let (parts, [new, ..], unread) = looks(&mut files);
    assert_eq!((parts > 2, first.new.len() + new, unread), (true, 10_000, Some(9_997)));
    assert_eq!(looks(&mut files), (1, [0, 0, 0], None), "told once");
}

#[test]
fn a_long_inbox_is_looked_at_in_parts_and_what_is_gone_of_it_is_found_after_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let told = BTreeMap::from([((name(), AgentName::lead()), 7_000)]);
    files(dir.path(), BTreeMap::new()).create(&create(), 1).unwrap();
    let mut files = files(dir.path(), told);
    let inbox = files.root.team(&name()).unwrap().inbox(&AgentName::lead());
    let message = |n: u64| Message::new(&AgentName::lead(), n.to_string(), n);
    inbox.append_all(&(0..10_000).map(message).collect::<Vec<_>>()).unwrap();
    let (parts, found, unread) = looks(&mut files);
    assert_eq!((parts > 3, found, unread), (true, [3_000, 7_000, 0], None), "{parts} parts");
    assert_eq!(looks(&mut files), (1, [0, 0, 0], None));
    // One that somebody dropped, with others after it, and one that is read.
    inbox.append(&message(10_000)).unwrap();
    assert_eq!(looks(&mut files), (1, [1, 0, 0], None));
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    inbox.append(&message(10_001)).unwrap();
    std::fs::write(inbox.path(), text.replacen("\"read\": false", "\"read\": true", 1)).unwrap();
    assert_eq!(looks(&mut files), (1, [0, 0, 1], Some(10_000)), "the end stands where it stood, but for one");
    assert_eq!(
        looks(&mut files),
        (1, [1, 0, 0], None),
        "the one that was put back, and what came before it could be"
    );
    std::fs::write(inbox.path(), text.replacen("\"text\": \"5\"", "\"text\": \"-\"", 1)).unwrap();
    let (parts, [new, earlier, back], _) = looks(&mut files);
    assert_eq!((parts > 3, new, earlier, back), (true, 0, 10_001, 1), "begun again");
}

#[test]
fn mail_is_told_although_what_was_noted_of_it_can_not_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let inbox = made(&mut files).inbox(&AgentName::lead());
    let send = |text: &str| inbox.append(&Message::new(&AgentName::lead(), text.into(), 1)).unwrap();
    let look = |files: &mut Files| {
        let mail = mail_of_lead(files);
        (mail.new.len(), mail.put_back.len())
    };
    send("a");
    let in_the_way = dir.path().join("journal/survey.jsonl.1");
    std::fs::create_dir(&in_the_way).unwrap();
    assert_eq!(look(&mut files), (1, 0));
    send("b");
    assert_eq!(look(&mut files), (1, 0), "from where the last look ended");
    std::fs::write(inbox.path(), "[]").unwrap();
    assert_eq!(look(&mut files).1, 0);
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(look(&mut files).1, 2, "both are still noted");
}

#[test]
fn a_name_that_is_taken_makes_nobody_forget_what_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    team.inbox(&AgentName::lead()).append(&Message::new(&AgentName::lead(), "x".into(), 1)).unwrap();
    let new = |files: &mut Files| mail_of_lead(files).new.len();
    assert_eq!(new(&mut files), 1);
    let policy = |files: &Files| files.state.read("policy-survey.json").unwrap();
    let before = policy(&files);
    let any = Create { policy: Policy { commands: Commands::Any, ..Policy::default() }, ..create() };
    files.job(FileJob::Create { client: 1, create: any, created_at: 2 });
    assert_eq!((new(&mut files), policy(&files)), (0, before));
}

#[test]
fn a_team_whose_policy_can_not_be_written_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    std::fs::create_dir(dir.path().join("state/policy-survey.json")).unwrap();
    assert!(files.create(&create(), 1).is_err());
    assert!(files.root.team(&name()).is_err());
}

fn record(name: &str, born: u64) -> Record {
    let record = serde_json::json!({
        "spawn": "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2", "team": "survey", "name": name, "token": "t",
        "color": "blue", "feed": "native", "agent_type": null, "model": "", "prompt": "go", "cwd": "/",
        "plan_mode_required": false, "born": born, "tracking": null, "pane": null, "join": null, "agent": null,
        "ended": null
    });
    serde_json::from_value(record).unwrap()
}

fn ours(names: &[(&str, Activity)]) -> Ours {
    let living =
        |(name, activity): &(&str, Activity)| Living { record: record(name, 7).into(), activity: *activity };
    let living: Vec<Living> = names.iter().map(living).collect();
    Ours { names: living.iter().map(|one| one.record.name.clone()).collect(), living }
}

fn register(files: &mut Files, record: Record) {
    let (spawn, at) = (record.spawn.clone(), record.born);
    match files.job(FileJob::Register { spawn, record: record.into(), again: false, at }) {
        Some(FileDone::Registered { result, .. }) => drop(result.unwrap()),
        other => panic!("{other:?}"),
    }
}

fn farewell(files: &mut Files, record: Record) -> Option<Fault> {
    match files.job(FileJob::Farewell { record: record.into() }) {
        Some(FileDone::Farewelled { left, .. }) => left,
        other => panic!("{other:?}"),
    }
}

/// The team with ann of ours, who was seen there, and eve of somebody else's.
fn with_ann(files: &mut Files) -> (Team, Ours) {
    let described = Create { description: Some("a survey".into()), ..create() };
    files.create(&described, 1).unwrap();
    let team = files.root.team(&name()).unwrap();
    register(files, record("ann", 7));
    team.add_member(&member::member(&record("eve", 9), Activity::Idle)).unwrap();
    let ann = ours(&[("ann", Activity::Idle)]);
    files.look_at_config(&name(), &ann).unwrap();
    (team, ann)
}

#[test]
fn a_damaged_config_comes_back_with_lead_members_and_what_others_put_there() {
    for damage in ["", "{\"name\": \"survey\",", "away"] {
        let dir = tempfile::tempdir().unwrap();
        let mut files = files(dir.path(), BTreeMap::new());
        let (team, mut ann) = with_ann(&mut files);
        ann.living[0].record.mode = Some("acceptEdits".to_owned());
        let before = team.config().unwrap();
        match damage {
            "away" => std::fs::remove_file(team.config_path()).unwrap(),
            text => std::fs::write(team.config_path(), text).unwrap(),
        }
        let seen = files.look_at_config(&name(), &ann).unwrap();
        let why = seen.mended.unwrap();
        assert!(why.contains("written anew from the roster"), "{why}");
        let after = team.config().unwrap();
        let head = |config: &TeamConfig| {
            (config.description.clone(), config.created_at, config.lead_session_id.clone())
        };
        assert_eq!(head(&after), head(&before), "{damage}");
        let mut names: Vec<String> = after.members.iter().map(|m| m.name.to_string()).collect();
        assert_eq!(names.remove(0), "team-lead");
        names.sort();
        assert_eq!(names, ["ann", "eve"]);
        let back = after.member(&AgentName::foreign("ann")).unwrap();
        assert_eq!((back.is_active, back.mode.as_deref()), (Some(false), Some("acceptEdits")));
        assert_eq!(seen.modes, [(AgentName::foreign("ann"), "acceptEdits".to_owned())]);
        assert_eq!(files.look_at_config(&name(), &ann).unwrap().mended, None, "once");
    }
}

#[test]
fn what_could_not_be_remembered_of_a_config_is_with_the_next_look_although_that_has_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let (team, ann) = with_ann(&mut files);
    let text = std::fs::read_to_string(team.config_path()).unwrap();
    std::fs::write(team.config_path(), text.replacen("a survey", "another", 1)).unwrap();
    let face = dir.path().join("state/config-survey.json");
    let before = std::fs::read(&face).unwrap();
    std::fs::remove_file(&face).unwrap();
    std::fs::create_dir(&face).unwrap();
    files.look_at_config(&name(), &ann).unwrap();
    std::fs::remove_dir(&face).unwrap();
    std::fs::write(&face, before).unwrap();
    files.look_at_config(&name(), &ann).unwrap();
    std::fs::write(team.config_path(), "").unwrap();
    assert!(files.look_at_config(&name(), &ann).unwrap().mended.is_some());
    assert_eq!(team.config().unwrap().description.as_deref(), Some("another"));
}

#[test]
fn whoever_mends_a_config_does_not_wait_for_itself_to_see_what_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let plan = r#"{"type":"plan_approval_request","from":"ann","timestamp":"2026-02-13T16:00:00.000Z","planFilePath":"/p","planContent":"go","requestId":"plan-1"}"#;
    let message = Message::new(&AgentName::foreign("ann"), plan.into(), 1);
    team.inbox(&AgentName::lead()).append(&message).unwrap();
    std::fs::write(team.config_path(), "").unwrap();
    let begun = std::time::Instant::now();
    let done = files.job(FileJob::Requests { team: name() });
    assert!(matches!(done, Some(FileDone::Requests { result: Err(_), .. })), "{done:?}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_config_that_is_not_ours_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let config = team.config().unwrap();
    // Another program's, under a name that we had: its moment of creation is another.
    let text = TeamConfig { created_at: 2, ..config }.to_text();
    std::fs::write(team.config_path(), text).unwrap();
    files.look_at_config(&name(), &Ours::default()).unwrap();
    std::fs::write(team.config_path(), "").unwrap();
    let error = files.look_at_config(&name(), &Ours::default()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(std::fs::read(team.config_path()).unwrap(), b"");
}

#[test]
fn a_team_that_was_deleted_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let (team, ann) = with_ann(&mut files);
    std::fs::remove_dir_all(team.path()).unwrap();
    assert!(matches!(files.look_at_config(&name(), &ann), Err(Error::NoSuchTeam { .. })));
    assert!(!team.path().exists());
}

#[test]
fn who_has_ended_does_not_come_back_by_an_old_clients_hand() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let (team, _) = with_ann(&mut files);
    let stale = std::fs::read(team.config_path()).unwrap();
    farewell(&mut files, record("ann", 7));
    std::fs::write(team.config_path(), &stale).unwrap();
    files.look_at_config(&name(), &Ours::default()).unwrap();
    let is_there = |team: &Team| team.config().unwrap().member(&AgentName::foreign("ann")).is_some();
    assert!(!is_there(&team));
    // A later life of that name is another.
    register(&mut files, record("ann", 8));
    files.look_at_config(&name(), &Ours::default()).unwrap();
    assert!(is_there(&team));
    // And is there again where the earlier one is taken out.
    std::fs::write(team.config_path(), &stale).unwrap();
    let living = vec![Living { record: record("ann", 8).into(), activity: Activity::Idle }];
    let ours = Ours { names: vec![AgentName::foreign("ann")], living };
    assert!(files.look_at_config(&name(), &ours).unwrap().members_back);
    assert_eq!(team.config().unwrap().member(&AgentName::foreign("ann")).unwrap().joined_at, 8);
}

#[test]
fn whose_team_has_no_config_any_more_needs_not_be_taken_off_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let (team, _) = with_ann(&mut files);
    std::fs::remove_file(team.config_path()).unwrap();
    assert_eq!(farewell(&mut files, record("ann", 7)), None);
}

#[test]
fn what_a_deletion_could_not_remove_goes_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    made(&mut files);
    let policy = |team: &str| dir.path().join("state").join(Policy::file(&TeamName::parse(team).unwrap()));
    let face = |team: &str| dir.path().join(format!("state/config-{team}.json"));
    for left in [policy("gone"), face("gone"), face("known"), policy("survey")] {
        std::fs::write(left, "{}").unwrap();
    }
    files.job(FileJob::Rescan { teams: vec![TeamName::parse("known").unwrap()] });
    let there = [policy("gone"), face("gone"), face("known"), policy("survey"), face("survey")];
    assert_eq!(there.map(|file| file.exists()), [false, false, true, true, true]);
}

/// The next daemon would see the end for the first time, and tell it in other words; and know nothing of a question.
#[test]
fn nobody_hears_of_an_end_nor_is_asked_for_one_before_it_is_in_the_roster() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let (team, _) = with_ann(&mut files);
    let end = End { how: "exit 1".into(), outcome: Outcome::Failed, then: None, at: 8, told: Told::Lead };
    let ann = Record { ended: Some(end), ..record("ann", 7) };
    let roster = || FileJob::Roster(Roster { agents: vec![ann.clone().into()], ..Roster::default() });
    let heard = |files: &mut Files| match files.job(FileJob::Heard { conn: 1 }) {
        Some(FileDone::Heard { conn: 1, result }) => result.is_ok(),
        _ => panic!("no answer"),
    };
    let farewelled = |files: &mut Files| match files.job(FileJob::Farewell { record: ann.clone().into() }) {
        Some(FileDone::Farewelled { left, .. }) => left.is_none(),
        _ => panic!("no answer"),
    };
    let asked = |files: &mut Files| {
        let request = RequestId::parse("shutdown-1@ann").unwrap();
        let (spawn, name, team) = (ann.spawn.clone(), ann.name.clone(), self::name());
        match files.job(FileJob::Ask {
            spawn,
            team,
            name,
            request,
            reason: None,
            unless_unread: vec![],
            at: 8,
        }) {
            Some(FileDone::Asked { result, .. }) => result.is_ok(),
            _ => panic!("no answer"),
        }
    };
    let told = || team.inbox(&AgentName::lead()).read().unwrap().len();
    let is_there = || team.config().unwrap().member(&ann.name).is_some();
    std::fs::create_dir(dir.path().join("state").join(ROSTER)).unwrap();
    assert!(matches!(files.job(roster()), Some(FileDone::Unsaved(_))));
    assert!(!heard(&mut files) && !asked(&mut files) && !farewelled(&mut files));
    assert!(team.inbox(&ann.name).read().unwrap().iter().all(|entry| entry.index == 0), "ann is asked");
    files.look_at_config(&name(), &Ours::default()).unwrap();
    assert_eq!((told(), is_there()), (0, true));
    std::fs::remove_dir(dir.path().join("state").join(ROSTER)).unwrap();
    assert!(files.job(roster()).is_none());
    assert!(heard(&mut files) && asked(&mut files) && farewelled(&mut files));
    assert_eq!((told(), is_there()), (1, false));
}

#[test]
fn nobody_is_registered_whose_environment_could_not_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    let ann = Record { env: "7.json".to_owned(), ..record("ann", 7) };
    let registered = |files: &mut Files| {
        let env = [("PATH".to_owned(), "/bin".to_owned())].into();
        assert!(files.job(FileJob::Environment { file: "7.json".to_owned(), env }).is_none());
        let (spawn, record) = (ann.spawn.clone(), ann.clone().into());
        match files.job(FileJob::Register { spawn, record, again: false, at: 7 }) {
            Some(FileDone::Registered { result, .. }) => result.is_ok(),
            _ => panic!("no answer"),
        }
    };
    std::fs::write(dir.path().join("state/env"), "in its place").unwrap();
    assert!(!registered(&mut files));
    assert!(team.config().unwrap().member(&AgentName::foreign("ann")).is_none());
    std::fs::remove_file(dir.path().join("state/env")).unwrap();
    assert!(registered(&mut files));
}

#[test]
fn who_has_never_written_anything_is_known_to_be_silent() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let log = dir.path().join("ann.log");
    let mut written = || {
        let logs = vec![(record("ann", 7).spawn, log.clone())];
        match files.job(FileJob::Written { logs }) {
            Some(FileDone::Written { written }) => written[0].1,
            _ => panic!("no answer"),
        }
    };
    assert_eq!(written(), 0);
    std::fs::write(&log, "here").unwrap();
    assert!(written() > 0);
}

/// What the thread tells of these jobs, which all wait when it begins.
fn told_of(files: &mut Files, jobs: Vec<FileJob>) -> Vec<FileDone> {
    let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
    files.events = events;
    let (giver, queue) = queue::queue();
    jobs.into_iter().for_each(|job| giver.send(job));
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
        assert_eq!(team.inbox(&AgentName::foreign(name)).read().unwrap().len(), 1, "{name} has its prompt");
    }
    // Of bob there is another life by now.
    team.set_member(&AgentName::foreign("bob"), &[("joinedAt", 8.into())]).unwrap();
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
