//! The operations in which faults are injected: how each is prepared, repeated, checked and undone.

use super::env_snapshot::{StoredItem, count_agents, count_panes, count_shims, members, roster};
use super::worktrees;
use harness::TestEnv;
use serde_json::Value;

/// One command of a person or an agent.
pub(super) struct SweepOperation {
    pub(super) name: &'static str,
    /// The kind of item that the operation stores in the team survey. The item stays there.
    pub(super) stored_item: Option<StoredItem>,
    /// Creates what the `n`th run works on, and returns the arguments of the command.
    pub(super) prepare: fn(&TestEnv, u64) -> Vec<String>,
    /// Returns the arguments with which the command is repeated. `None`: those of `prepare`.
    pub(super) retry: fn(&TestEnv, u64) -> Option<Vec<String>>,
    /// Returns how often the operation is done. Must be 0 or 1 before a repetition.
    pub(super) count_done: fn(&TestEnv, u64) -> usize,
    /// Checks that the operation is done once and completely.
    pub(super) check_complete: fn(&TestEnv, u64) -> Result<(), String>,
    /// Removes what the operation created.
    pub(super) clean_up: fn(&TestEnv, u64),
}

impl SweepOperation {
    pub(super) fn is_spawn(&self) -> bool {
        self.name.starts_with("spawn")
    }

    pub(super) fn is_shutdown(&self) -> bool {
        self.name.ends_with("shutdown") || self.name.ends_with("shutdown of all")
    }

    /// Whether its name contains the value of `ONLY`. True if `ONLY` is not set.
    pub(super) fn is_selected(&self) -> bool {
        std::env::var("ONLY").map_or(true, |text| self.name.contains(&text))
    }

    /// Whether the daemon carries out the operation. False if teamctl changes the files itself, and
    /// if git takes part, because strace would also break the system calls of git.
    pub(super) fn runs_in_daemon(&self) -> bool {
        !["send", "mark read", "claim"].contains(&self.name) && !self.name.contains("worktree")
    }
}

/// Whether all operations are selected, and so the start of a daemon too.
pub(super) fn all_selected() -> bool {
    std::env::var_os("ONLY").is_none()
}

/// The permanent members of the team survey: the first without a pane, the second in a pane.
pub(super) const RESIDENTS: [&str; 2] = ["ann", "bob"];

/// Indexes in `OPERATIONS`.
pub(super) const CREATE_TEAM: usize = 0;
pub(super) const SPAWN_IN_PANE: usize = 1;
pub(super) const SEND: usize = 3;
pub(super) const SPAWN_IN_WORKTREE: usize = 10;

pub(super) const OPERATIONS: [SweepOperation; 13] = [
    SweepOperation {
        name: "create",
        stored_item: None,
        prepare: |_, n| to_strings(&["create", &team_name(n)]),
        retry: |_, n| Some(to_strings(&["create", &team_name(n)])),
        count_done: |env, n| usize::from(members(env, &team_name(n)) == ["team-lead"]),
        check_complete: |env, n| {
            expect_eq("members", members(env, &team_name(n)), vec!["team-lead".to_owned()])
        },
        clean_up: delete_team,
    },
    SweepOperation {
        name: "spawn in a pane",
        stored_item: None,
        prepare: |env, n| create_team_for(env, n, spawn_args(n, "tmux")),
        retry: |_, n| Some(spawn_args(n, "tmux")),
        count_done: |env, n| count_running(env, n),
        check_complete: |env, n| expect_single_member(env, n, 1),
        clean_up: |env, n| end_members_and_delete(env, n),
    },
    SweepOperation {
        name: "spawn without a pane",
        stored_item: None,
        prepare: |env, n| create_team_for(env, n, spawn_args(n, "in-process")),
        retry: |_, n| Some(spawn_args(n, "in-process")),
        count_done: |env, n| count_running(env, n),
        check_complete: |env, n| expect_single_member(env, n, 0),
        clean_up: |env, n| end_members_and_delete(env, n),
    },
    SweepOperation {
        name: "send",
        stored_item: Some(StoredItem::Message),
        prepare: |_, n| to_strings(&["-t", "survey", "send", "ann", &message_text(n)]),
        retry: |_, _| None,
        count_done: |env, n| count_messages(env, &message_text(n), |_| true),
        check_complete: |env, n| expect_eq("messages", count_messages(env, &message_text(n), |_| true), 1),
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "mark read",
        stored_item: Some(StoredItem::Message),
        prepare: |env, n| {
            env.teamctl(["-t", "survey", "send", "ann", &message_text(n)]).expect_success();
            mark_read_args()
        },
        retry: |_, _| Some(mark_read_args()),
        count_done: |env, n| count_messages(env, &message_text(n), |message| message["read"] == true),
        check_complete: |env, n| {
            expect_eq("messages", count_messages(env, &message_text(n), |_| true), 1)?;
            let is_read = |message: &Value| message["read"] == true;
            expect_eq("read messages", count_messages(env, &message_text(n), is_read), 1)
        },
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "claim",
        stored_item: Some(StoredItem::Task),
        prepare: |env, n| {
            env.teamctl(["-t", "survey", "task", "create", &message_text(n)]).expect_success();
            claim_args(env, n)
        },
        retry: |env, n| Some(claim_args(env, n)),
        count_done: |env, n| {
            count_tasks(env, |task| task["subject"] == message_text(n) && task["owner"] == "ann")
        },
        check_complete: |env, n| {
            expect_eq("tasks", count_tasks(env, |task| task["subject"] == message_text(n)), 1)?;
            expect_eq(
                "tasks of ann",
                count_tasks(env, |task| task["subject"] == message_text(n) && task["owner"] == "ann"),
                1,
            )
        },
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "shutdown",
        stored_item: None,
        prepare: |env, n| {
            let args = create_team_for(env, n, to_strings(&["shutdown", "-t", &team_name(n), "eve"]));
            env.teamctl(["spawn", "-t", &team_name(n), "eve", "--profile", "worker"]).expect_success();
            args
        },
        retry: |_, n| Some(to_strings(&["shutdown", "-t", &team_name(n), "eve"])),
        count_done: |env, _| usize::from(count_shims(env) == RESIDENTS.len()),
        check_complete: |env, n| expect_single_exit(env, n),
        clean_up: delete_team,
    },
    SweepOperation {
        name: "delete",
        stored_item: None,
        prepare: |env, n| {
            let args = create_team_for(env, n, to_strings(&["delete", &team_name(n)]));
            env.teamctl(["-t", &team_name(n), "task", "create", "t"]).expect_success();
            env.teamctl(["-t", &team_name(n), "send", "team-lead", "to myself"]).expect_success();
            args
        },
        retry: |_, n| Some(to_strings(&["delete", &team_name(n)])),
        count_done: |env, n| usize::from(members(env, &team_name(n)).is_empty()),
        check_complete: |env, n| expect_deleted(env, n),
        clean_up: recreate_and_delete,
    },
    SweepOperation {
        name: "run",
        stored_item: None,
        prepare: |env, n| to_strings(&["run", &write_run_file(env, n)]),
        retry: |_, n| Some(to_strings(&["run", &format!("out/{}.toml", team_name(n)), "--resume"])),
        count_done: |env, n| usize::from(has_run(env, n) && expect_deleted(env, n).is_ok()),
        // The task's command may run twice: if a worker is killed while it runs, the task starts
        // again.
        check_complete: |env, n| {
            expect_eq("the task has run", has_run(env, n), true).and_then(|()| expect_deleted(env, n))
        },
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "interrupted shutdown of all",
        stored_item: None,
        prepare: |env, n| {
            let args = create_team_for(
                env,
                n,
                to_strings(&["shutdown", "-t", &team_name(n), "--all", "--force", "--grace", "0s"]),
            );
            env.teamctl_with(&as_strs(&spawn_args(n, "tmux")), &[]).expect_success();
            args
        },
        retry: |_, n| {
            Some(to_strings(&["shutdown", "-t", &team_name(n), "--all", "--force", "--grace", "0s"]))
        },
        count_done: |env, _| usize::from(count_shims(env) == RESIDENTS.len()),
        check_complete: |env, n| expect_single_exit(env, n),
        clean_up: delete_team,
    },
    SweepOperation {
        name: "spawn in a worktree",
        stored_item: None,
        prepare: |env, n| create_team_for(env, n, worktrees::spawn_args(env, n)),
        retry: |env, n| Some(worktrees::spawn_args(env, n)),
        count_done: |env, n| count_running(env, n),
        check_complete: |env, n| {
            expect_single_member(env, n, 0).and_then(|()| worktrees::expect_complete_worktree(env, n))
        },
        clean_up: |env, n| worktrees::check_kept_then_deleted(env, n),
    },
    SweepOperation {
        name: "delete of a worktree with work in it",
        stored_item: None,
        prepare: |env, n| worktrees::spawn_with_unsaved_work(env, n),
        retry: |env, n| Some(worktrees::delete_args(env, n)),
        count_done: |env, n| {
            worktrees::expect_kept_or_in_trash(env, n)
                .unwrap_or_else(|error| panic!("{error}\n{}", env.dump_state()));
            usize::from(members(env, &team_name(n)).is_empty())
        },
        check_complete: |env, n| {
            expect_deleted(env, n).and_then(|()| worktrees::expect_deleted(env, n))?;
            expect_eq("the work is in the trash", worktrees::is_in_trash(env, n), true)
        },
        clean_up: recreate_and_delete,
    },
    SweepOperation {
        name: "kill of three at once",
        stored_item: None,
        prepare: |env, n| {
            let args =
                create_team_for(env, n, to_strings(&["kill", "-t", &team_name(n), "eve", "fay", "gil"]));
            for name in ["eve", "fay", "gil"] {
                env.teamctl(["spawn", "-t", &team_name(n), name, "--", "sleep", "3600"]).expect_success();
            }
            args
        },
        retry: |_, n| {
            Some(to_strings(&["shutdown", "-t", &team_name(n), "--all", "--force", "--grace", "0s"]))
        },
        count_done: |env, n| usize::from(members(env, &team_name(n)) == ["team-lead"]),
        check_complete: |env, n| expect_exits(env, n, 3),
        clean_up: delete_team,
    },
];

pub(super) fn team_name(n: u64) -> String {
    format!("t{n}")
}

pub(super) fn message_text(n: u64) -> String {
    format!("the {n}th")
}

fn to_strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

pub(super) fn as_strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Creates the team of the `n`th run, and returns `args`.
fn create_team_for(env: &TestEnv, n: u64, args: Vec<String>) -> Vec<String> {
    env.teamctl(["create", &team_name(n)]).expect_success();
    args
}

fn spawn_args(n: u64, backend: &str) -> Vec<String> {
    to_strings(&["spawn", "-t", &team_name(n), "eve", "--backend", backend, "--", "sleep", "3600"])
}

fn mark_read_args() -> Vec<String> {
    to_strings(&["-t", "survey", "inbox", "ann", "--unread", "--mark-read"])
}

fn claim_args(env: &TestEnv, n: u64) -> Vec<String> {
    let id = env.json(["-t", "survey", "task", "list"])["tasks"].as_array().and_then(|tasks| {
        tasks
            .iter()
            .find(|task| task["subject"] == message_text(n))
            .map(|task| task["id"].as_str().unwrap().to_owned())
    });
    to_strings(&["-t", "survey", "task", "claim", &id.unwrap()])
}

/// Writes the run file of the `n`th run, and returns its path.
fn write_run_file(env: &TestEnv, n: u64) -> String {
    let out = env.path(&format!("out/{}", team_name(n)));
    let text = format!(
        "name = \"{}\"\nprofile = \"worker\"\n[[member]]\nname = \"eve\"\nbackend = \"in-process\"\n[[task]]\nkey = \"one\"\n\
         subject = \"write\"\ncommand = \"echo done >> {}\"\n",
        team_name(n),
        out.display()
    );
    env.write_file(&format!("out/{}.toml", team_name(n)), text);
    format!("out/{}.toml", team_name(n))
}

/// Whether the task of the run file has run.
fn has_run(env: &TestEnv, n: u64) -> bool {
    !env.read(&format!("out/{}", team_name(n))).is_empty()
}

fn expect_eq<T: PartialEq + std::fmt::Debug>(name: &str, actual: T, expected: T) -> Result<(), String> {
    if actual == expected { Ok(()) } else { Err(format!("{name}: {actual:?}, not {expected:?}")) }
}

/// Counts messages in ann's inbox. Fails if the inbox is not valid JSON at any time.
fn count_messages(env: &TestEnv, text: &str, is_wanted: impl Fn(&Value) -> bool) -> usize {
    let inbox = env.inbox("survey", "ann");
    inbox.iter().filter(|message| message["text"] == text && is_wanted(message)).count()
}

fn count_tasks(env: &TestEnv, is_wanted: impl Fn(&Value) -> bool) -> usize {
    env.tasks("survey").iter().filter(|task| is_wanted(task)).count()
}

/// Counts the running agents of the team of the `n`th run.
fn count_running(env: &TestEnv, n: u64) -> usize {
    count_agents(env, &team_name(n))
}

/// Expects one process, one shim, one member, one record in the roster, and one pane if the member
/// has one.
fn expect_single_member(env: &TestEnv, n: u64, member_panes: usize) -> Result<(), String> {
    expect_eq("members", members(env, &team_name(n)), to_strings(&["team-lead", "eve"]))?;
    expect_eq("processes", count_running(env, n), 1)?;
    expect_eq("shims", count_shims(env), RESIDENTS.len() + 1)?;
    expect_eq("panes", count_panes(env), 1 + member_panes)?;
    let records = roster(env)["records"].as_array().cloned().unwrap_or_default();
    expect_eq(
        "records in the roster",
        records.iter().filter(|record| record["request"]["team"] == team_name(n).as_str()).count(),
        1,
    )
}

/// Expects that the member has ended, that the lead has got one notification of this, and that
/// nothing of the member remains.
pub(super) fn expect_single_exit(env: &TestEnv, n: u64) -> Result<(), String> {
    expect_exits(env, n, 1)
}

/// Expects the same of `count` members.
fn expect_exits(env: &TestEnv, n: u64, count: usize) -> Result<(), String> {
    expect_eq("members", members(env, &team_name(n)), to_strings(&["team-lead"]))?;
    expect_eq("processes", count_running(env, n), 0)?;
    expect_eq("shims", count_shims(env), RESIDENTS.len())?;
    expect_eq("panes", count_panes(env), 1)?;
    let inbox = env.inbox(&team_name(n), "team-lead");
    let count_kind = |kind: &str| {
        let is_kind = |message: &&Value| message["text"].as_str().is_some_and(|text| text.contains(kind));
        inbox.iter().filter(is_kind).count()
    };
    let (approved, terminated) = (count_kind("shutdown_approved"), count_kind("teammate_terminated"));
    if approved + terminated == count {
        Ok(())
    } else {
        Err(format!("{approved} + {terminated} notifications, not {count}: {inbox:?}"))
    }
}

fn expect_deleted(env: &TestEnv, n: u64) -> Result<(), String> {
    expect_eq("members", members(env, &team_name(n)), Vec::new())?;
    expect_eq("processes", count_running(env, n), 0)?;
    for path in [format!("root/teams/{}", team_name(n)), format!("root/tasks/{}", team_name(n))] {
        expect_eq(&path, env.path(&path).exists(), false)?;
    }
    Ok(())
}

/// Expects that a team without config.json has no tasks. The next `delete` or `create` removes
/// other files of such a team.
pub(super) fn expect_no_partial_team(env: &TestEnv, n: u64) -> Result<(), String> {
    if !members(env, &team_name(n)).is_empty() || !env.path(&format!("root/teams/{}", team_name(n))).exists()
    {
        return Ok(());
    }
    expect_eq(
        "tasks without a config",
        env.path(&format!("root/tasks/{}/1.json", team_name(n))).exists(),
        false,
    )
}

/// Kills the member, which may have ended already, and deletes the team.
fn end_members_and_delete(env: &TestEnv, n: u64) {
    let output = env.teamctl(["kill", "-t", &team_name(n), "eve"]);
    assert!([0, 67].contains(&output.code), "{output:#?}");
    delete_team(env, n);
}

/// Creates the team again and deletes it. This removes files of the first team that could not be
/// removed before.
fn recreate_and_delete(env: &TestEnv, n: u64) {
    env.teamctl(["create", &team_name(n)]).expect_success();
    delete_team(env, n);
}

/// Deletes the team, and retries while a member is about to exit.
fn delete_team(env: &TestEnv, n: u64) {
    let delete = || (env.teamctl(["delete", &team_name(n)]).code == 0).then_some(());
    env.wait_until("the team is deleted", delete);
}
