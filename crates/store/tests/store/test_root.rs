//! Test environment: a root with the team orchard (lead, ann and bob), and functions that damage
//! its files.
#![allow(dead_code, reason = "each test binary uses only some of the functions")]

use protocol::inbox_file::Message;
use protocol::member_color::Color;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig, TeammateEntry};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use store::{Durability, Root, Team};
use tempfile::TempDir;

pub struct TestRoot {
    dir: TempDir,
    pub root: Root,
    pub team: Team,
}

impl TestRoot {
    pub fn new() -> TestRoot {
        let private = std::fs::Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let root = open_root(dir.path());
        let team = root.create_team(&config("orchard")).unwrap();
        for name in ["ann", "bob"] {
            team.add_member(&member(name)).unwrap();
        }
        TestRoot { dir, root, team }
    }

    /// A second handle of the same team, as another process would have.
    pub fn reopen_team(&self) -> Team {
        open_root(self.dir.path()).team(self.team.name()).unwrap()
    }

    /// The temporary directory that contains the root.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn inbox_path(&self, name: &str) -> PathBuf {
        self.team.path().join("inboxes").join(name)
    }

    /// The copies of damaged files.
    pub fn backups(&self) -> Vec<PathBuf> {
        list_dir(&self.dir.path().join("corrupt"))
    }
}

pub fn open_root(dir: &Path) -> Root {
    Root::open(&dir.join("root"), dir, Durability::Process).unwrap()
}

pub fn config(name: &str) -> TeamConfig {
    let team = TeamName::sanitize(name).unwrap();
    TeamConfig {
        name: name.to_owned(),
        description: None,
        created_at: 1,
        lead_agent_id: format!("team-lead@{team}"),
        lead_session_id: "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2".to_owned(),
        members: vec![Member::lead(&team, None, String::new(), "/".to_owned(), 1)],
        hidden_pane_ids: vec![],
    }
}

pub fn member(name: &str) -> Member {
    let entry = TeammateEntry {
        name: agent(name),
        agent_type: None,
        model: String::new(),
        prompt: "do".to_owned(),
        color: Color::Blue,
        plan_mode_required: false,
        joined_at: 2,
        tmux_pane_id: "%1".to_owned(),
        cwd: "/".to_owned(),
        backend_type: "tmux".to_owned(),
        worktree_path: None,
    };
    Member::teammate(&TeamName::parse("orchard").unwrap(), entry)
}

pub fn agent(name: &str) -> MemberName {
    MemberName::new_unchecked(name)
}

pub fn message(text: &str) -> Message {
    Message {
        from: "ann".to_owned(),
        text: text.to_owned(),
        summary: None,
        timestamp: "2026-02-13T10:05:44.590Z".to_owned(),
        color: None,
        read: false,
    }
}

/// Truncates the file and writes it in place, like older foreign writers.
pub fn overwrite_in_place(path: &Path, bytes: impl AsRef<[u8]>) {
    File::create(path).unwrap().write_all(bytes.as_ref()).unwrap();
}

pub fn set_mtime(path: &Path, time: SystemTime) {
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// The paths in a directory, without shadow copies.
pub fn list_dir(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.to_string_lossy().ends_with(".json.shadow"));
    paths.sort();
    paths
}

#[allow(clippy::disallowed_methods, reason = "the test is about a delay")]
pub fn sleep_ms(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Reports that a test is skipped because this machine can't run it. Also writes the reason to a
/// file in `$FIGURES`, like the harness of the e2e tests, on which this crate does not depend.
#[allow(clippy::print_stderr, reason = "a skipped test must be visible in the output")]
pub fn report_skipped(name: &str, reason: &str) {
    eprintln!("SKIPPED {name}: {reason}");
    let Some(figures) = std::env::var_os("FIGURES").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&figures).unwrap();
    overwrite_in_place(
        &figures.join(format!("{name}.json")),
        serde_json::json!({"skipped": reason}).to_string(),
    );
}

/// Reads a sample inbox with unusual or invalid content.
pub fn hostile_inbox(name: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/data/hostile-inboxes");
    std::fs::read(data.join(format!("{name}.json"))).unwrap()
}
