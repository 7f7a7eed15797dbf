//! What is broken in the middle, how it is asked for again, and what must be so in the end.

use super::env_snapshot::{StoredItem, count_agents, count_shims, members, panes, roster};
use super::worktrees;
use harness::TestEnv;
use serde_json::Value;

/// One thing that a person or an agent asks for.
pub(super) struct SweepOperation {
    pub(super) name: &'static str,
    /// Of what it leaves something in survey, which is there once from then on.
    pub(super) leaves: Option<StoredItem>,
    /// Makes what the `n`th run works on, and says what is typed.
    pub(super) prepare: fn(&TestEnv, u64) -> Vec<String>,
    /// The same asked again; none: as it was asked first.
    pub(super) retry: fn(&TestEnv, u64) -> Option<Vec<String>>,
    /// Once or not at all, before it is asked again: how often it is done by then.
    pub(super) count_done: fn(&TestEnv, u64) -> usize,
    /// It is done once, whole.
    pub(super) check_complete: fn(&TestEnv, u64) -> Result<(), String>,
    /// What it made goes again.
    pub(super) clean_up: fn(&TestEnv, u64),
}

impl SweepOperation {
    pub(super) fn is_spawn(&self) -> bool {
        self.name.starts_with("spawn")
    }

    pub(super) fn is_shutdown(&self) -> bool {
        self.name.ends_with("shutdown") || self.name.ends_with("shutdown of all")
    }

    /// `ONLY` is in its name, or nothing is said.
    pub(super) fn is_selected(&self) -> bool {
        std::env::var("ONLY").map_or(true, |word| self.name.contains(&word))
    }

    /// Done by the daemon: not by teamctl at the files, nor by git, whose own calls would be broken with it.
    pub(super) fn runs_in_daemon(&self) -> bool {
        !["send", "mark read", "claim"].contains(&self.name) && !self.name.contains("worktree")
    }
}

/// And the start of a daemon, which is none of them.
pub(super) fn all_selected() -> bool {
    std::env::var_os("ONLY").is_none()
}

/// Who is there all the time: one without a pane and one in a pane.
pub(super) const RESIDENTS: [&str; 2] = ["ann", "bob"];

/// Where in the list.
pub(super) const A_TEAM: usize = 0;
pub(super) const IN_A_PANE: usize = 1;
pub(super) const IN_A_WORKTREE: usize = 10;

pub(super) const OPERATIONS: [SweepOperation; 13] = [
    SweepOperation {
        name: "create",
        leaves: None,
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
        leaves: None,
        prepare: |env, n| made(env, n, spawn(n, "tmux")),
        retry: |_, n| Some(spawn(n, "tmux")),
        count_done: |env, n| count_running(env, n),
        check_complete: |env, n| expect_single_member(env, n, 1),
        clean_up: |env, n| end_members_and_delete(env, n),
    },
    SweepOperation {
        name: "spawn without a pane",
        leaves: None,
        prepare: |env, n| made(env, n, spawn(n, "in-process")),
        retry: |_, n| Some(spawn(n, "in-process")),
        count_done: |env, n| count_running(env, n),
        check_complete: |env, n| expect_single_member(env, n, 0),
        clean_up: |env, n| end_members_and_delete(env, n),
    },
    SweepOperation {
        name: "send",
        leaves: Some(StoredItem::Message),
        prepare: |_, n| to_strings(&["-t", "survey", "send", "ann", &message_text(n)]),
        retry: |_, _| None,
        count_done: |env, n| count_messages(env, &message_text(n), |_| true),
        check_complete: |env, n| expect_eq("mails", count_messages(env, &message_text(n), |_| true), 1),
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "mark read",
        leaves: Some(StoredItem::Message),
        prepare: |env, n| {
            env.teamctl(["-t", "survey", "send", "ann", &message_text(n)]).expect_success();
            mark_read()
        },
        retry: |_, _| Some(mark_read()),
        count_done: |env, n| count_messages(env, &message_text(n), |mail| mail["read"] == true),
        check_complete: |env, n| {
            expect_eq("mails", count_messages(env, &message_text(n), |_| true), 1)?;
            expect_eq("read ones", count_messages(env, &message_text(n), |mail| mail["read"] == true), 1)
        },
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "claim",
        leaves: Some(StoredItem::Task),
        prepare: |env, n| {
            env.teamctl(["-t", "survey", "task", "create", &message_text(n)]).expect_success();
            claim(env, n)
        },
        retry: |env, n| Some(claim(env, n)),
        count_done: |env, n| tasks(env, |task| task["subject"] == message_text(n) && task["owner"] == "ann"),
        check_complete: |env, n| {
            expect_eq("tasks", tasks(env, |task| task["subject"] == message_text(n)), 1)?;
            expect_eq(
                "hers",
                tasks(env, |task| task["subject"] == message_text(n) && task["owner"] == "ann"),
                1,
            )
        },
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "shutdown",
        leaves: None,
        prepare: |env, n| {
            let begun = made(env, n, to_strings(&["shutdown", "-t", &team_name(n), "eve"]));
            env.teamctl(["spawn", "-t", &team_name(n), "eve", "--profile", "worker"]).expect_success();
            begun
        },
        retry: |_, n| Some(to_strings(&["shutdown", "-t", &team_name(n), "eve"])),
        count_done: |env, _| usize::from(count_shims(env) == RESIDENTS.len()),
        check_complete: |env, n| expect_single_exit(env, n),
        clean_up: delete_team,
    },
    SweepOperation {
        name: "delete",
        leaves: None,
        prepare: |env, n| {
            let begun = made(env, n, to_strings(&["delete", &team_name(n)]));
            env.teamctl(["-t", &team_name(n), "task", "create", "t"]).expect_success();
            env.teamctl(["-t", &team_name(n), "send", "team-lead", "to myself"]).expect_success();
            begun
        },
        retry: |_, n| Some(to_strings(&["delete", &team_name(n)])),
        count_done: |env, n| usize::from(members(env, &team_name(n)).is_empty()),
        check_complete: |env, n| expect_deleted(env, n),
        clean_up: recreate_and_delete,
    },
    SweepOperation {
        name: "run",
        leaves: None,
        prepare: |env, n| to_strings(&["run", &run_file(env, n)]),
        retry: |_, n| Some(to_strings(&["run", &format!("out/{}.toml", team_name(n)), "--resume"])),
        count_done: |env, n| usize::from(has_run(env, n) && expect_deleted(env, n).is_ok()),
        // A task whose worker is killed in it is done once more.
        check_complete: |env, n| {
            expect_eq("its task is done", has_run(env, n), true).and_then(|()| expect_deleted(env, n))
        },
        clean_up: |_, _| {},
    },
    SweepOperation {
        name: "interrupted shutdown of all",
        leaves: None,
        prepare: |env, n| {
            let begun = made(
                env,
                n,
                to_strings(&["shutdown", "-t", &team_name(n), "--all", "--force", "--grace", "0s"]),
            );
            env.teamctl_with(&as_strs(&spawn(n, "tmux")), &[]).expect_success();
            begun
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
        leaves: None,
        prepare: |env, n| made(env, n, worktrees::spawn(env, n)),
        retry: |env, n| Some(worktrees::spawn(env, n)),
        count_done: |env, n| count_running(env, n),
        check_complete: |env, n| {
            expect_single_member(env, n, 0).and_then(|()| worktrees::expect_complete_worktree(env, n))
        },
        clean_up: |env, n| worktrees::check_kept_then_deleted(env, n),
    },
    SweepOperation {
        name: "delete of a worktree with work in it",
        leaves: None,
        prepare: |env, n| worktrees::spawn_with_unsaved_work(env, n),
        retry: |env, n| Some(worktrees::discard(env, n)),
        count_done: |env, n| {
            worktrees::expect_kept_or_in_trash(env, n)
                .unwrap_or_else(|why| panic!("{why}\n{}", env.dump_state()));
            usize::from(members(env, &team_name(n)).is_empty())
        },
        check_complete: |env, n| {
            expect_deleted(env, n).and_then(|()| worktrees::expect_deleted(env, n))?;
            expect_eq("in the trash", worktrees::is_in_trash(env, n), true)
        },
        clean_up: recreate_and_delete,
    },
    SweepOperation {
        name: "kill of three at once",
        leaves: None,
        prepare: |env, n| {
            let begun = made(env, n, to_strings(&["kill", "-t", &team_name(n), "eve", "fay", "gil"]));
            for name in ["eve", "fay", "gil"] {
                env.teamctl(["spawn", "-t", &team_name(n), name, "--", "sleep", "3600"]).expect_success();
            }
            begun
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

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn as_strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn made(env: &TestEnv, n: u64, then: Vec<String>) -> Vec<String> {
    env.teamctl(["create", &team_name(n)]).expect_success();
    then
}

fn spawn(n: u64, backend: &str) -> Vec<String> {
    to_strings(&["spawn", "-t", &team_name(n), "eve", "--backend", backend, "--", "sleep", "3600"])
}

fn mark_read() -> Vec<String> {
    to_strings(&["-t", "survey", "inbox", "ann", "--unread", "--mark-read"])
}

fn claim(env: &TestEnv, n: u64) -> Vec<String> {
    let id = env.json(["-t", "survey", "task", "list"])["tasks"].as_array().and_then(|tasks| {
        tasks
            .iter()
            .find(|task| task["subject"] == message_text(n))
            .map(|task| task["id"].as_str().unwrap().to_owned())
    });
    to_strings(&["-t", "survey", "task", "claim", &id.unwrap()])
}

fn run_file(env: &TestEnv, n: u64) -> String {
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

fn has_run(env: &TestEnv, n: u64) -> bool {
    !env.read(&format!("out/{}", team_name(n))).is_empty()
}

fn expect_eq<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should: T) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is:?}, not {should:?}")) }
}

/// Every file is whole at every instant.
fn count_messages(env: &TestEnv, text: &str, is_it: impl Fn(&Value) -> bool) -> usize {
    let inbox = env.inbox("survey", "ann");
    inbox.iter().filter(|mail| mail["text"] == text && is_it(mail)).count()
}

fn tasks(env: &TestEnv, is_it: impl Fn(&Value) -> bool) -> usize {
    env.tasks("survey").iter().filter(|task| is_it(task)).count()
}

/// Agents of the team that run.
fn count_running(env: &TestEnv, n: u64) -> usize {
    count_agents(env, &team_name(n))
}

/// Expects one process, one shim, one member, one record in the roster, and one pane if the member has one.
fn expect_single_member(env: &TestEnv, n: u64, its_panes: usize) -> Result<(), String> {
    expect_eq("members", members(env, &team_name(n)), to_strings(&["team-lead", "eve"]))?;
    expect_eq("processes", count_running(env, n), 1)?;
    expect_eq("shims", count_shims(env), RESIDENTS.len() + 1)?;
    expect_eq("panes", panes(env), 1 + its_panes)?;
    let agents = roster(env)["records"].as_array().cloned().unwrap_or_default();
    expect_eq(
        "in the roster",
        agents.iter().filter(|agent| agent["request"]["team"] == team_name(n).as_str()).count(),
        1,
    )
}

/// Told to the lead once, and nothing of it left.
pub(super) fn expect_single_exit(env: &TestEnv, n: u64) -> Result<(), String> {
    expect_exits(env, n, 1)
}

fn expect_exits(env: &TestEnv, n: u64, many: usize) -> Result<(), String> {
    expect_eq("members", members(env, &team_name(n)), to_strings(&["team-lead"]))?;
    expect_eq("processes", count_running(env, n), 0)?;
    expect_eq("shims", count_shims(env), RESIDENTS.len())?;
    expect_eq("panes", panes(env), 1)?;
    let lead = env.inbox(&team_name(n), "team-lead");
    let told = |kind: &str| {
        lead.iter().filter(|mail| mail["text"].as_str().is_some_and(|text| text.contains(kind))).count()
    };
    let (approved, terminated) = (told("shutdown_approved"), told("teammate_terminated"));
    if approved + terminated == many {
        Ok(())
    } else {
        Err(format!("told {approved} + {terminated} times: {lead:?}"))
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

/// A team without its config has nothing else either, or just what the next `delete` or `create` takes.
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

/// The end of whoever is there, and of the team.
fn end_members_and_delete(env: &TestEnv, n: u64) {
    let ran = env.teamctl(["kill", "-t", &team_name(n), "eve"]);
    assert!([0, 67].contains(&ran.code), "{ran:#?}");
    delete_team(env, n);
}

/// What could not be removed of the first goes with the second.
fn recreate_and_delete(env: &TestEnv, n: u64) {
    env.teamctl(["create", &team_name(n)]).expect_success();
    delete_team(env, n);
}

/// The end of a team; a member of it may be about to go.
fn delete_team(env: &TestEnv, n: u64) {
    let is_gone = || (env.teamctl(["delete", &team_name(n)]).code == 0).then_some(());
    env.wait_until("its team can be deleted", is_gone);
}
