//! What is broken in the middle, how it is asked for again, and what must be so in the end.

use super::sight::{What, agents_of, joins, members, panes, roster};
use super::trees;
use harness::House;
use serde_json::Value;

/// One thing that a person or an agent asks for.
pub(super) struct Operation {
    pub(super) name: &'static str,
    /// Of what it leaves something in survey, which is there once from then on.
    pub(super) keeps: Option<What>,
    /// Makes what the `n`th run works on, and says what is typed.
    pub(super) begin: fn(&House, u64) -> Vec<String>,
    /// The same asked again; none: as it was asked first.
    pub(super) again: fn(&House, u64) -> Option<Vec<String>>,
    /// Once or not at all, before it is asked again: how often it is done by then.
    pub(super) done: fn(&House, u64) -> usize,
    /// It is done once, whole.
    pub(super) whole: fn(&House, u64) -> Result<(), String>,
    /// What it made goes again.
    pub(super) clean: fn(&House, u64),
}

impl Operation {
    pub(super) fn is_spawn(&self) -> bool {
        self.name.starts_with("spawn")
    }

    pub(super) fn is_shutdown(&self) -> bool {
        self.name.ends_with("shutdown") || self.name.ends_with("shutdown of all")
    }

    /// `ONLY` is in its name, or nothing is said.
    pub(super) fn is_wanted(&self) -> bool {
        std::env::var("ONLY").map_or(true, |word| self.name.contains(&word))
    }

    /// Done by the daemon: not by teamctl at the files, nor by git, whose own calls would be broken with it.
    pub(super) fn is_the_daemons(&self) -> bool {
        !["send", "mark read", "claim"].contains(&self.name) && !self.name.contains("worktree")
    }
}

/// And the start of a daemon, which is none of them.
pub(super) fn all_are_wanted() -> bool {
    std::env::var_os("ONLY").is_none()
}

/// Who is there all the time: one without a pane and one in a pane.
pub(super) const RESIDENTS: [&str; 2] = ["ann", "bob"];

/// Where in the list.
pub(super) const A_TEAM: usize = 0;
pub(super) const IN_A_PANE: usize = 1;
pub(super) const IN_A_WORKTREE: usize = 10;

pub(super) const OPERATIONS: [Operation; 13] = [
    Operation {
        name: "create",
        keeps: None,
        begin: |_, n| words(&["create", &team(n)]),
        again: |_, n| Some(words(&["create", &team(n)])),
        done: |house, n| usize::from(members(house, &team(n)) == ["team-lead"]),
        whole: |house, n| is("members", members(house, &team(n)), vec!["team-lead".to_owned()]),
        clean: deleted,
    },
    Operation {
        name: "spawn in a pane",
        keeps: None,
        begin: |house, n| made(house, n, spawn(n, "tmux")),
        again: |_, n| Some(spawn(n, "tmux")),
        done: |house, n| living(house, n),
        whole: |house, n| is_one(house, n, 1),
        clean: |house, n| gone(house, n),
    },
    Operation {
        name: "spawn without a pane",
        keeps: None,
        begin: |house, n| made(house, n, spawn(n, "in-process")),
        again: |_, n| Some(spawn(n, "in-process")),
        done: |house, n| living(house, n),
        whole: |house, n| is_one(house, n, 0),
        clean: |house, n| gone(house, n),
    },
    Operation {
        name: "send",
        keeps: Some(What::Mail),
        begin: |_, n| words(&["-t", "survey", "send", "ann", &text(n)]),
        again: |_, _| None,
        done: |house, n| mails(house, &text(n), |_| true),
        whole: |house, n| is("mails", mails(house, &text(n), |_| true), 1),
        clean: |_, _| {},
    },
    Operation {
        name: "mark read",
        keeps: Some(What::Mail),
        begin: |house, n| {
            house.teamctl(["-t", "survey", "send", "ann", &text(n)]).ok();
            mark_read()
        },
        again: |_, _| Some(mark_read()),
        done: |house, n| mails(house, &text(n), |mail| mail["read"] == true),
        whole: |house, n| {
            is("mails", mails(house, &text(n), |_| true), 1)?;
            is("read ones", mails(house, &text(n), |mail| mail["read"] == true), 1)
        },
        clean: |_, _| {},
    },
    Operation {
        name: "claim",
        keeps: Some(What::Task),
        begin: |house, n| {
            house.teamctl(["-t", "survey", "task", "create", &text(n)]).ok();
            claim(house, n)
        },
        again: |house, n| Some(claim(house, n)),
        done: |house, n| tasks(house, |task| task["subject"] == text(n) && task["owner"] == "ann"),
        whole: |house, n| {
            is("tasks", tasks(house, |task| task["subject"] == text(n)), 1)?;
            is("hers", tasks(house, |task| task["subject"] == text(n) && task["owner"] == "ann"), 1)
        },
        clean: |_, _| {},
    },
    Operation {
        name: "shutdown",
        keeps: None,
        begin: |house, n| {
            let begun = made(house, n, words(&["shutdown", "-t", &team(n), "eve"]));
            house.teamctl(["spawn", "-t", &team(n), "eve", "--agent", "worker"]).ok();
            begun
        },
        again: |_, n| Some(words(&["shutdown", "-t", &team(n), "eve"])),
        done: |house, _| usize::from(joins(house) == RESIDENTS.len()),
        whole: |house, n| has_ended_once(house, n),
        clean: deleted,
    },
    Operation {
        name: "delete",
        keeps: None,
        begin: |house, n| {
            let begun = made(house, n, words(&["delete", &team(n)]));
            house.teamctl(["-t", &team(n), "task", "create", "t"]).ok();
            house.teamctl(["-t", &team(n), "send", "team-lead", "to myself"]).ok();
            begun
        },
        again: |_, n| Some(words(&["delete", &team(n)])),
        done: |house, n| usize::from(members(house, &team(n)).is_empty()),
        whole: |house, n| is_deleted(house, n),
        clean: made_anew_and_deleted,
    },
    Operation {
        name: "run",
        keeps: None,
        begin: |house, n| words(&["run", &run_file(house, n)]),
        again: |_, n| Some(words(&["run", &format!("out/{}.toml", team(n)), "--resume"])),
        done: |house, n| usize::from(has_run(house, n) && is_deleted(house, n).is_ok()),
        // A task whose worker is killed in it is done once more.
        whole: |house, n| is("its task is done", has_run(house, n), true).and_then(|()| is_deleted(house, n)),
        clean: |_, _| {},
    },
    Operation {
        name: "interrupted shutdown of all",
        keeps: None,
        begin: |house, n| {
            let begun =
                made(house, n, words(&["shutdown", "-t", &team(n), "--all", "--force", "--grace", "0s"]));
            house.teamctl_with(&as_str(&spawn(n, "tmux")), &[]).ok();
            begun
        },
        again: |_, n| Some(words(&["shutdown", "-t", &team(n), "--all", "--force", "--grace", "0s"])),
        done: |house, _| usize::from(joins(house) == RESIDENTS.len()),
        whole: |house, n| has_ended_once(house, n),
        clean: deleted,
    },
    Operation {
        name: "spawn in a worktree",
        keeps: None,
        begin: |house, n| made(house, n, trees::spawn(house, n)),
        again: |house, n| Some(trees::spawn(house, n)),
        done: |house, n| living(house, n),
        whole: |house, n| is_one(house, n, 0).and_then(|()| trees::is_whole(house, n)),
        clean: |house, n| trees::stays_and_goes(house, n),
    },
    Operation {
        name: "delete of a worktree with work in it",
        keeps: None,
        begin: |house, n| trees::soiled(house, n),
        again: |house, n| Some(trees::discard(house, n)),
        done: |house, n| {
            trees::is_somewhere(house, n).unwrap_or_else(|why| panic!("{why}\n{}", house.portrait()));
            usize::from(members(house, &team(n)).is_empty())
        },
        whole: |house, n| {
            is_deleted(house, n).and_then(|()| trees::are_gone(house, n))?;
            is("in the trash", trees::in_trash(house, n), true)
        },
        clean: made_anew_and_deleted,
    },
    Operation {
        name: "kill of three at once",
        keeps: None,
        begin: |house, n| {
            let begun = made(house, n, words(&["kill", "-t", &team(n), "eve", "fay", "gil"]));
            for name in ["eve", "fay", "gil"] {
                house.teamctl(["spawn", "-t", &team(n), name, "--", "sleep", "3600"]).ok();
            }
            begun
        },
        again: |_, n| Some(words(&["shutdown", "-t", &team(n), "--all", "--force", "--grace", "0s"])),
        done: |house, n| usize::from(members(house, &team(n)) == ["team-lead"]),
        whole: |house, n| have_ended_once(house, n, 3),
        clean: deleted,
    },
];

pub(super) fn team(n: u64) -> String {
    format!("t{n}")
}

pub(super) fn text(n: u64) -> String {
    format!("the {n}th")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn as_str(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn made(house: &House, n: u64, then: Vec<String>) -> Vec<String> {
    house.teamctl(["create", &team(n)]).ok();
    then
}

fn spawn(n: u64, backend: &str) -> Vec<String> {
    words(&["spawn", "-t", &team(n), "eve", "--backend", backend, "--", "sleep", "3600"])
}

fn mark_read() -> Vec<String> {
    words(&["-t", "survey", "inbox", "ann", "--unread", "--mark-read"])
}

fn claim(house: &House, n: u64) -> Vec<String> {
    let id = house.json(["-t", "survey", "task", "list"])["tasks"].as_array().and_then(|tasks| {
        tasks
            .iter()
            .find(|task| task["subject"] == text(n))
            .map(|task| task["id"].as_str().unwrap().to_owned())
    });
    words(&["-t", "survey", "task", "claim", &id.unwrap()])
}

fn run_file(house: &House, n: u64) -> String {
    let out = house.path(&format!("out/{}", team(n)));
    let text = format!(
        "name = \"{}\"\nagent = \"worker\"\n[[member]]\nname = \"eve\"\nbackend = \"in-process\"\n[[task]]\nkey = \"one\"\n\
         subject = \"write\"\ncommand = \"echo done >> {}\"\n",
        team(n),
        out.display()
    );
    house.put(&format!("out/{}.toml", team(n)), text);
    format!("out/{}.toml", team(n))
}

fn has_run(house: &House, n: u64) -> bool {
    !house.read(&format!("out/{}", team(n))).is_empty()
}

fn is<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should: T) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is:?}, not {should:?}")) }
}

/// Every file is whole at every instant.
fn mails(house: &House, text: &str, is_it: impl Fn(&Value) -> bool) -> usize {
    let inbox = house.inbox("survey", "ann");
    inbox.iter().filter(|mail| mail["text"] == text && is_it(mail)).count()
}

fn tasks(house: &House, is_it: impl Fn(&Value) -> bool) -> usize {
    house.tasks("survey").iter().filter(|task| is_it(task)).count()
}

/// Agents of the team that run.
fn living(house: &House, n: u64) -> usize {
    agents_of(house, &team(n))
}

/// One process, one join, one member, one in the roster, one pane where it has one; no twin anywhere.
fn is_one(house: &House, n: u64, its_panes: usize) -> Result<(), String> {
    is("members", members(house, &team(n)), words(&["team-lead", "eve"]))?;
    is("processes", living(house, n), 1)?;
    is("joins", joins(house), RESIDENTS.len() + 1)?;
    is("panes", panes(house), 1 + its_panes)?;
    let agents = roster(house)["agents"].as_array().cloned().unwrap_or_default();
    is("in the roster", agents.iter().filter(|agent| agent["team"] == team(n).as_str()).count(), 1)
}

/// Told to the lead once, and nothing of it left.
pub(super) fn has_ended_once(house: &House, n: u64) -> Result<(), String> {
    have_ended_once(house, n, 1)
}

fn have_ended_once(house: &House, n: u64, many: usize) -> Result<(), String> {
    is("members", members(house, &team(n)), words(&["team-lead"]))?;
    is("processes", living(house, n), 0)?;
    is("joins", joins(house), RESIDENTS.len())?;
    is("panes", panes(house), 1)?;
    let lead = house.inbox(&team(n), "team-lead");
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

fn is_deleted(house: &House, n: u64) -> Result<(), String> {
    is("members", members(house, &team(n)), Vec::new())?;
    is("processes", living(house, n), 0)?;
    for path in [format!("root/teams/{}", team(n)), format!("root/tasks/{}", team(n))] {
        is(&path, house.path(&path).exists(), false)?;
    }
    Ok(())
}

/// A team without its config has nothing else either, or just what the next `delete` or `create` takes.
pub(super) fn is_no_half(house: &House, n: u64) -> Result<(), String> {
    if !members(house, &team(n)).is_empty() || !house.path(&format!("root/teams/{}", team(n))).exists() {
        return Ok(());
    }
    is("tasks without a config", house.path(&format!("root/tasks/{}/1.json", team(n))).exists(), false)
}

/// The end of whoever is there, and of the team.
fn gone(house: &House, n: u64) {
    let ran = house.teamctl(["kill", "-t", &team(n), "eve"]);
    assert!([0, 67].contains(&ran.code), "{ran:#?}");
    deleted(house, n);
}

/// What could not be removed of the first goes with the second.
fn made_anew_and_deleted(house: &House, n: u64) {
    house.teamctl(["create", &team(n)]).ok();
    deleted(house, n);
}

/// The end of a team; a member of it may be about to go.
fn deleted(house: &House, n: u64) {
    let is_gone = || (house.teamctl(["delete", &team(n)]).code == 0).then_some(());
    house.until("its team can be deleted", is_gone);
}
