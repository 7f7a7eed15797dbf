//! Creates teams for benchmarks, with inboxes and task lists of any length. `$TMPDIR` chooses the
//! file system.

use protocol::inbox_file::Message;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig};
use std::path::Path;
use store::{BatchTask, Durability, NewTask, Root, Team};
use tempfile::TempDir;

pub(crate) fn team() -> (TempDir, Team) {
    let dir = TempDir::new().unwrap();
    let team = create_team(dir.path(), Durability::Process);
    (dir, team)
}

fn root(dir: &Path, durability: Durability) -> Root {
    Root::open(&dir.join("root"), dir, durability).unwrap()
}

/// Opens the existing team with new handles, as another process would.
pub(crate) fn open_team(dir: &Path, durability: Durability) -> Team {
    root(dir, durability).team(&TeamName::parse("bench").unwrap()).unwrap()
}

pub(crate) fn create_team(dir: &Path, durability: Durability) -> Team {
    let name = TeamName::parse("bench").unwrap();
    let config = TeamConfig {
        name: name.to_string(),
        description: None,
        created_at: 1,
        lead_agent_id: format!("team-lead@{name}"),
        lead_session_id: "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2".to_owned(),
        members: vec![Member::lead(&name, None, String::new(), "/".to_owned(), 1)],
        hidden_pane_ids: vec![],
    };
    root(dir, durability).create_team(&config).unwrap()
}

/// A team whose lead has `count` messages of about 300 bytes.
pub(crate) fn team_with_messages(count: usize) -> (TempDir, Team) {
    let (dir, team) = team();
    let messages: Vec<Message> = (0..count).map(|n| message(format!("{n:0>180}"))).collect();
    messages.chunks(10_000).for_each(|chunk| team.inbox(&MemberName::lead()).append_all(chunk).unwrap());
    (dir, team)
}

pub(crate) fn message(text: String) -> Message {
    Message::new(&MemberName::lead(), text, 1_771_000_000_000)
}

/// Tasks in a chain of diamonds: one task, two that it blocks, one that both block, and so on.
pub(crate) fn diamond_tasks(count: usize) -> Vec<BatchTask> {
    let blockers = |index: usize| match index % 3 {
        0 if index == 0 => vec![],
        0 => vec![index - 2, index - 1],
        position => vec![index - position],
    };
    let task =
        |index: usize| NewTask::new(&format!("work on part {index} of the whole"), &MemberName::lead());
    (0..count).map(|index| BatchTask { task: task(index), blocked_by_index: blockers(index) }).collect()
}
