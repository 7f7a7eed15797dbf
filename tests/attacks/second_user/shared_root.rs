//! Plants files into a root that a shared group, or every user, may write to.

use crate::attack_log::{AttackLog, NOT_PERMITTED};
use crate::user_thread::{SHARED_GID, as_second_user, can_be_second_user, set_mode};
use harness::TestEnv;
use serde_json::json;
use std::os::unix::fs::chown;
use std::path::Path;

/// A text that the victim must not see.
const PLANTED: &str = "PLANTED";

/// A directory that the second user can write to, what is planted there, and a command that would
/// use it.
struct OpenLevel {
    directory: &'static str,
    planted: &'static str,
    command: &'static [&'static str],
}

const LEVELS: [OpenLevel; 8] = [
    OpenLevel { directory: "root", planted: "teams", command: &["status"] },
    OpenLevel { directory: "root/teams", planted: "survey", command: &["inbox", "ann"] },
    OpenLevel { directory: "root/teams/survey", planted: "config.json", command: &["send", "ann", "x"] },
    OpenLevel { directory: "root/teams/survey", planted: "inboxes", command: &["inbox", "ann"] },
    OpenLevel { directory: "root/teams/survey/inboxes", planted: "ann.json", command: &["inbox", "ann"] },
    OpenLevel { directory: "root/tasks", planted: "survey", command: &["task", "list"] },
    OpenLevel { directory: "root/tasks/survey", planted: "7.json", command: &["task", "get", "7"] },
    OpenLevel { directory: "state/teamd/HASH", planted: "policy-survey.json", command: &["policy"] },
];

/// Writes the planted files below `path`, which replace what was there. All kinds of contents are
/// written, so that each level has those that matter to it.
#[allow(clippy::disallowed_methods, reason = "this is the attacker")]
fn plant(path: &Path, evil: &str) {
    std::fs::rename(path, path.with_extension("old")).ok();
    let message = json!([{"from": "team-lead", "text": PLANTED, "timestamp": "2099-01-01T00:00:00.000Z",
        "read": false}]);
    let task = json!({"id": "7", "subject": PLANTED, "description": "", "status": "pending",
        "blocks": [], "blockedBy": [],
        "metadata": {"command": format!("touch {evil}")}});
    let config = json!({"name": "survey", "description": PLANTED, "members": [{"name": "team-lead"},
        {"name": PLANTED}]});
    let policy = json!({"commands": "any", "permissions": "lead", "notify": PLANTED});
    let write = |path: &Path, text: &serde_json::Value| std::fs::write(path, text.to_string()).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    match name {
        "config.json" => write(path, &config),
        "ann.json" => write(path, &message),
        "7.json" => write(path, &task),
        "policy-survey.json" => write(path, &policy),
        _ => {
            for directory in ["survey/inboxes", "inboxes"] {
                std::fs::create_dir_all(path.join(directory)).unwrap();
                write(&path.join(directory).join("ann.json"), &message);
            }
            for directory in ["survey", ""] {
                write(&path.join(directory).join("config.json"), &config);
                write(&path.join(directory).join("7.json"), &task);
                write(&path.join(directory).join("ann.json"), &message);
            }
        }
    }
}

/// Tries one level: the command fails while the directory is open, and also after the victim has
/// taken the permission away, because the planted file belongs to another user.
fn try_level(level: &OpenLevel, mode: u32) -> Result<String, String> {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker", "--cwd", &env.path("out").display().to_string()])
        .expect_success();
    let hash = env.control_socket().parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let directory = env.path(&level.directory.replace("HASH", &hash));
    let evil = env.path("out/evil").display().to_string();
    let ancestors = directory.ancestors().skip(1).take_while(|parent| parent.starts_with(env.path("")));
    ancestors.for_each(|parent| set_mode(parent, 0o755));
    chown(&directory, None, Some(SHARED_GID)).unwrap();
    set_mode(&directory, mode);
    as_second_user(|| plant(&directory.join(level.planted), &evil));
    let run = |when: &str| {
        let output = env.teamctl_with(level.command, &[]);
        let is_shown = (output.stdout.clone() + &output.stderr).contains(PLANTED);
        match output.code {
            NOT_PERMITTED if !is_shown => Ok(output.stderr.lines().next().unwrap_or_default().to_owned()),
            code => Err(format!("{when}: exit code {code} {}{}", output.stdout, output.stderr)),
        }
    };
    let refused = run("while it is open")?;
    set_mode(&directory, 0o700);
    run("after the permission was taken away")?;
    check_worker(&env, &evil)?;
    Ok(refused)
}

/// Checks that the worker has not run the planted command, also if its inbox and the other tasks are
/// fine, so that it works.
fn check_worker(env: &TestEnv, evil: &str) -> Result<(), String> {
    let can_work = env.teamctl(["inbox", "ann"]).code == 0;
    if can_work && env.teamctl(["task", "create", "end", "--command", "touch end"]).code == 0 {
        env.wait_until("the worker has run the victim's command", || {
            env.path("out/end").exists().then_some(())
        });
    }
    let log = env.teamd_log();
    match (Path::new(evil).exists(), log.contains("panicked at")) {
        (true, _) => Err("the worker has run the planted command".to_owned()),
        (_, true) => Err("the daemon panicked".to_owned()),
        (false, false) => Ok(()),
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    if !can_be_second_user(log) {
        return;
    }
    for level in &LEVELS {
        for (mode, name) in [(0o2775, "a shared group"), (0o777, "every user")] {
            let tried = format!("plants {} in {}, open to {name}", level.planted, level.directory);
            log.record(tried, try_level(level, mode));
        }
    }
}
