//! Plants links, pipes and sockets in place of files, in a directory that was open for a moment.

use crate::attack_log::AttackLog;
use crate::user_thread::{as_second_user, can_be_second_user, set_mode};
use harness::TestEnv;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use std::fs::hard_link;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

const SECRET: &str = "[{\"from\": \"bank\", \"text\": \"SECRET\", \"timestamp\": \
    \"2026-01-01T00:00:00.000Z\", \"read\": false}]";

/// What is planted in place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedFile {
    /// A link to a file of the victim.
    Link,
    /// A second name of a file of the victim. The kernel may refuse it to the second user, so root
    /// makes it.
    HardLink,
    Pipe,
    Socket,
    Directory,
}

const FILES: [&str; 6] = [
    "root/teams/survey/inboxes/ann.json",
    "root/teams/survey/inboxes/ann.json.lock",
    "root/teams/survey/config.json",
    "root/tasks/survey/1.json",
    "root/tasks/survey/.lock",
    "root/tasks/survey/.highwatermark",
];

impl PlantedFile {
    const ALL: [PlantedFile; 5] = [
        PlantedFile::Link,
        PlantedFile::HardLink,
        PlantedFile::Pipe,
        PlantedFile::Socket,
        PlantedFile::Directory,
    ];

    /// Replaces `path` with this in one step, because the daemon restores a missing inbox at once.
    fn plant(self, path: &Path, secret: &Path) {
        let prepared = path.with_extension("planted");
        let prepare = || match self {
            PlantedFile::Link => symlink(secret, &prepared).unwrap(),
            PlantedFile::HardLink => hard_link(secret, &prepared).unwrap(),
            PlantedFile::Pipe => {
                mknodat(CWD, &prepared, FileType::Fifo, Mode::RWXU | Mode::RWXG | Mode::RWXO, 0).unwrap();
            }
            PlantedFile::Socket => drop(UnixListener::bind(&prepared).unwrap()),
            PlantedFile::Directory => std::fs::create_dir(&prepared).unwrap(),
        };
        match self {
            PlantedFile::HardLink => prepare(),
            _ => as_second_user(prepare),
        }
        let flags = if path.exists() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        renameat_with(CWD, &prepared, CWD, path, flags).unwrap();
        std::fs::remove_file(&prepared).ok();
    }
}

/// The victim's commands that use the files.
const COMMANDS: [&[&str]; 6] = [
    &["send", "ann", "hello"],
    &["inbox", "ann", "--mark-read"],
    &["task", "create", "dig"],
    &["task", "update", "1", "--subject", "x"],
    &["task", "list"],
    &["status"],
];

fn try_file(file: &str, planted: PlantedFile) -> Result<String, String> {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["send", "ann", "first"]).expect_success();
    env.teamctl(["task", "create", "count"]).expect_success();
    env.write_file("home/secret", SECRET);
    let (path, secret) = (env.path(file), env.path("home/secret"));
    set_mode(&secret, 0o600);
    ["", "home", "root", "root/teams", "root/tasks", "root/teams/survey"]
        .iter()
        .for_each(|name| set_mode(&env.path(name), 0o755));
    let directory = path.parent().unwrap();
    set_mode(directory, 0o777);
    planted.plant(&path, &secret);
    set_mode(directory, 0o700);
    let mut codes = Vec::new();
    for command in COMMANDS {
        let output = env.with_timeout(Duration::from_secs(60), || env.teamctl_with(command, &[]));
        // An error may show the victim its own file under the second name.
        let is_shown = (output.stdout.clone() + &output.stderr).contains("SECRET");
        if is_shown && planted != PlantedFile::HardLink {
            return Err(format!("{command:?} follows it"));
        }
        if output.code >= 128 {
            return Err(format!("{command:?} hangs or crashes: {}", output.code));
        }
        codes.push(output.code.to_string());
    }
    let has_changed = std::fs::read_to_string(&secret).ok().as_deref() != Some(SECRET);
    let panics = env.teamd_log().contains("panicked at");
    match (has_changed, panics) {
        (true, _) => Err("the victim's file has changed".to_owned()),
        (_, true) => Err("the daemon panicked".to_owned()),
        (false, false) => Ok(format!("not changed; exit codes {}", codes.join(" "))),
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    if !can_be_second_user(log) {
        return;
    }
    for file in FILES {
        for planted in PlantedFile::ALL {
            log.record(format!("{planted:?} in place of {file}"), try_file(file, planted));
        }
    }
}
