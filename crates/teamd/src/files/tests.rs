//! The files thread beside somebody who removes and remakes what it knows.

#![allow(clippy::disallowed_methods, reason = "the tests are that somebody")]

use super::*;
use protocol::control::{Commands, Create};
use protocol::id::TaskId;
use protocol::message::Message;
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
        commands: Commands::Lead,
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
    files.job(FileJob::Inbox { team: name(), inbox: "team-lead".into() });
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
fn mail_of_a_new_team_is_told_although_an_old_one_had_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let told = BTreeMap::from([((name(), AgentName::lead()), 5)]);
    let mut files = files(dir.path(), told);
    files.job(FileJob::Create { client: 1, create: create(), created_at: 1 });
    let team = files.root.team(&name()).unwrap();
    team.inbox(&AgentName::lead()).append(&Message::new(&AgentName::lead(), "x".into(), 1)).unwrap();
    let Some(FileDone::Inbox { result: Ok(mail), .. }) =
        files.job(FileJob::Inbox { team: name(), inbox: "team-lead".into() })
    else {
        panic!()
    };
    assert_eq!(mail.new.len(), 1);
}

#[test]
fn a_name_that_is_taken_makes_nobody_forget_what_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), BTreeMap::new());
    let team = made(&mut files);
    team.inbox(&AgentName::lead()).append(&Message::new(&AgentName::lead(), "x".into(), 1)).unwrap();
    let new = |files: &mut Files| match files.job(FileJob::Inbox { team: name(), inbox: "team-lead".into() })
    {
        Some(FileDone::Inbox { result: Ok(mail), .. }) => mail.new.len(),
        _ => panic!(),
    };
    assert_eq!(new(&mut files), 1);
    let policy = |files: &Files| files.state.read("policy-survey.json").unwrap();
    let before = policy(&files);
    let any = Create { commands: Commands::Any, ..create() };
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
