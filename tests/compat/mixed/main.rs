//! A mixed team, run from one file: the built-in worker, Claude Code in its own way, and Codex through its hooks, in
//! real panes, each against a scripted model.
//!
//! Opt-in: `scripts/test-mixed` installs the programs, names their place in `TEAMD_TEST_MIXED`, and runs this where nothing
//! but loopback can be reached.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on must stop, and says so where it is skipped"
)]

#[path = "../claude/claude_home.rs"]
mod claude_home;
#[path = "../agents/codex_config.rs"]
mod codex_config;

use harness::{ScriptedModel, TaggedProcesses, TestEnv};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// Two programs that take seconds to start, on a busy machine many.
const PATIENCE: Duration = Duration::from_secs(180);

/// What Codex's person types where it asks whether the hooks may run: trust them.
const TRUST: [&str; 2] = ["2", "Enter"];

/// An environment in which all three can work, with the models that they ask.
struct MixedEnv {
    env: TestEnv,
    _models: [ScriptedModel; 2],
}

impl MixedEnv {
    fn new(place: &Path) -> MixedEnv {
        let mut env = TestEnv::new();
        let work = env.path("work");
        std::fs::create_dir_all(env.path("home/.codex")).unwrap();
        std::fs::create_dir(&work).unwrap();
        claude_home::put(&work.join("team.toml"), include_str!("team.toml"));
        let claude = ScriptedModel::start(&env, "claude/scripted_model.mjs", &env.path("out/anthropic"));
        let codex = ScriptedModel::start(&env, "scripted_model.js", &env.path("out/openai"));
        let version = newest_claude_version(place);
        claude_home::install_claude_home(&env, &version, &work);
        let settings = codex_config::config_toml(codex.address(), &work.display().to_string());
        claude_home::put(&env.path("home/.codex/config.toml"), &settings);
        env.variables = claude_home::variables(claude.address());
        env.variables.push(("OPENAI_API_KEY".to_owned(), "dummy".to_owned()));
        let path = path(place, &version);
        // A login shell, in which Codex runs commands, has a PATH of its own.
        claude_home::put(&env.path("home/.profile"), &format!("PATH='{path}'\n"));
        env.variables.push(("PATH".to_owned(), path));
        env.start_daemon();
        MixedEnv { env, _models: [claude, codex] }
    }

    /// Sees in `status` that Codex waits at its dialog, and answers as its person.
    fn trust_hooks(&self, run: &mut Child) {
        let at_dialog = |dex: &Value| dex["flags"] == json!(["at_dialog"]);
        let dex = self.env.wait_until_within(PATIENCE, "Codex asks its person", || {
            assert!(run.try_wait().unwrap().is_none(), "the run has ended\n{}", self.env.dump_state());
            self.env.member("dex").filter(at_dialog)
        });
        let pane = dex["pane"].as_str().unwrap();
        TRUST.iter().for_each(|key| drop(self.env.tmux(["send-keys", "-t", pane, key])));
    }

    fn has_message(&self, from: &str, to: &str) -> bool {
        let events = self.env.teamctl(["events", "--json"]).expect_success();
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .into_iter()
            .any(|event| event["event"] == "message_stored" && event["from"] == from && event["member"] == to)
    }

    /// The newest clients leave files of their own behind, so this is not the environment's own audit.
    fn assert_no_processes(&self) {
        let panes = self.env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        assert!(panes.lines().all(str::is_empty), "panes are left: {panes}");
        assert_eq!(self.env.json(["status", "--all"])["teams"], json!([]));
        let of_agents = ["--agent-id", "codex", "teamd-shim", "teamctl"];
        let is_left = |line: &String| of_agents.iter().any(|word| line.contains(word));
        self.env.wait_until("every process of theirs has ended", || {
            let left = TaggedProcesses::with_tag(&self.env.process_tag()).list();
            (!left.iter().any(is_left)).then_some(())
        });
    }
}

/// The version of Claude Code that was installed last.
fn newest_claude_version(place: &Path) -> String {
    let versions = std::fs::read_to_string(place.join("claude/versions")).unwrap();
    versions.lines().last().unwrap().to_owned()
}

fn path(place: &Path, version: &str) -> String {
    let ours = harness::programs().display().to_string();
    let claude = place.join("claude").join(version).join("node_modules/.bin");
    let npm = place.join("npm/node_modules/.bin");
    let machine = std::env::var("PATH").unwrap_or_default();
    format!("{}:{}:{ours}:{machine}", claude.display(), npm.display())
}

#[test]
fn mixed_team_completes_one_run_file() {
    let Some(place) = std::env::var_os("TEAMD_TEST_MIXED").map(PathBuf::from) else {
        return println!("skipped: it needs the programs; scripts/test-mixed brings them");
    };
    let world = MixedEnv::new(&place);
    world.env.teamctl(["setup", "codex", "--write"]).expect_success();
    let file = world.env.path("work/team.toml").display().to_string();
    let mut run = world.env.start_teamctl(["run", &file, "--json", "--timeout", "8m"]);
    world.trust_hooks(&mut run);
    let ran = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success(),
        "{said}{}\n{}",
        String::from_utf8_lossy(&ran.stderr),
        world.env.dump_state()
    );
    let result: Value = serde_json::from_str(&said).unwrap();
    let fates: Vec<String> = result["tasks"].as_array().unwrap().iter().map(task_outcome).collect();
    assert_eq!(
        fates,
        ["count wes completed", "draft cloe completed", "check dex completed", "report wes completed"]
    );
    assert!(world.env.read("work/report.txt").ends_with("the draft\n"));
    assert!(world.has_message("cloe", "dex"), "Claude Code has told Codex");
    world.assert_no_processes();
    world.env.teamctl(["down"]).expect_success();
}

fn task_outcome(task: &Value) -> String {
    let word = |key: &str| task[key].as_str().unwrap_or("-").to_owned();
    [word("key"), word("owner"), word("outcome")].join(" ")
}

/// Through its hooks: its transcript tells what each answer of the model has used up, here 20.
#[test]
fn claude_usage_is_read_from_its_transcript() {
    let Some(place) = std::env::var_os("TEAMD_TEST_MIXED").map(PathBuf::from) else {
        return println!("skipped: it needs the programs; scripts/test-mixed brings them");
    };
    let mut world = MixedEnv::new(&place);
    let home = world.env.root().display().to_string();
    world.env.variables.push(("CLAUDE_CONFIG_DIR".to_owned(), home));
    world.env.teamctl(["setup", "claude-hook", "--write"]).expect_success();
    world.env.teamctl(["create", "survey"]).expect_success();
    let work = world.env.path("work").display().to_string();
    let prompt = "CALL Bash {\"command\": \"true\", \"description\": \"look\"}\nSAY first";
    world
        .env
        .teamctl([
            "spawn",
            "cloe",
            "--profile",
            "claude-hook",
            "--cwd",
            &work,
            "--model",
            "sonnet",
            "--mode",
            "bypassPermissions",
            "--prompt",
            prompt,
        ])
        .expect_success();
    let counted = |at_least: u64| {
        world.env.wait_until_within(PATIENCE, &format!("{at_least} answers are counted"), || {
            let team = world.env.json(["status"])["teams"][0].clone();
            let rows = [&team["members"], &team["past_members"]]
                .into_iter()
                .flat_map(|rows| rows.as_array().unwrap());
            let cloe = rows.into_iter().find(|row| row["name"] == "cloe")?;
            assert_eq!(cloe["usage"], team["budget"]["usage"], "{team}");
            (cloe["usage"]["tokens"].as_u64()? >= 20 * at_least).then(|| cloe["usage"]["tokens"].clone())
        })
    };
    let answered = |word: &str| {
        world.env.wait_until_within(PATIENCE, &format!("{word} is said"), || {
            world.env.read("out/anthropic").contains(word).then_some(())
        });
        world.env.wait_until_within(PATIENCE, "it is idle", || {
            (world.env.member("cloe")?["delivery_point"] != "on-pull").then_some(())
        });
    };
    answered("first");
    world.env.teamctl(["send", "cloe", "SAY second"]).expect_success();
    answered("second");
    world.env.teamctl(["down", "--suspend"]).expect_success();
    world.env.teamctl(["up", "--resume"]).expect_success();
    counted(3);
    world.env.teamctl(["send", "cloe", "SAY third"]).expect_success();
    answered("third");
    world.env.teamctl(["kill", "cloe"]).expect_success();
    // It writes down the last answer of a turn after that turn's end: so that counts with what its hooks tell next.
    let answers =
        world.env.read("out/anthropic").lines().filter(|line| line.contains("doing")).count() as u64;
    let count = counted(answers - 1).as_u64().unwrap();
    assert!(count <= 20 * answers && count % 20 == 0, "{count} of {answers} answers");
    world.env.teamctl(["down"]).expect_success();
}
