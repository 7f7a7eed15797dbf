//! Tests a mixed team that runs from one file: the built-in worker, Claude Code with native
//! delivery, and Codex with hooks. All run in real panes. Claude Code and Codex use scripted
//! models.
//!
//! Opt-in: `scripts/test-mixed` installs the programs and sets `TEAMD_TEST_MIXED` to their
//! directory. It runs this test in a network namespace that has only the loopback device.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot continue must stop, and a skipped test prints the reason"
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

/// The timeout of each wait. The programs take seconds to start, and longer on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The keys that accept Codex's dialog about hooks.
const TRUST_KEYS: [&str; 2] = ["2", "Enter"];

/// A test environment for all three programs, with their scripted models.
struct MixedEnv {
    env: TestEnv,
    _models: [ScriptedModel; 2],
}

impl MixedEnv {
    /// Starts the models and the daemon. `directory` has the agent programs.
    fn new(directory: &Path) -> MixedEnv {
        let mut env = TestEnv::new();
        let work = env.path("work");
        std::fs::create_dir_all(env.path("home/.codex")).unwrap();
        std::fs::create_dir(&work).unwrap();
        claude_home::write_in_place(&work.join("team.toml"), include_str!("team.toml"));
        let claude = ScriptedModel::start(&env, "claude/scripted_model.mjs", &env.path("out/anthropic"));
        let codex = ScriptedModel::start(&env, "scripted_model.js", &env.path("out/openai"));
        let version = newest_claude_version(directory);
        claude_home::install_claude_home(&env, &version, &work);
        let settings = codex_config::config_toml(codex.address(), &work.display().to_string());
        claude_home::write_in_place(&env.path("home/.codex/config.toml"), &settings);
        env.variables = claude_home::variables(claude.address());
        env.variables.push(("OPENAI_API_KEY".to_owned(), "dummy".to_owned()));
        let path = search_path(directory, &version);
        // Codex runs commands in a login shell, which takes PATH from this file.
        claude_home::write_in_place(&env.path("home/.profile"), &format!("PATH='{path}'\n"));
        env.variables.push(("PATH".to_owned(), path));
        env.start_daemon();
        MixedEnv { env, _models: [claude, codex] }
    }

    /// Waits until `status` shows that Codex waits at its dialog about hooks, and accepts the
    /// dialog.
    fn trust_hooks(&self, run: &mut Child) {
        let at_dialog = |dex: &Value| dex["flags"] == json!(["at_dialog"]);
        let dex = self.env.wait_until_within(TIMEOUT, "Codex shows its dialog about hooks", || {
            assert!(run.try_wait().unwrap().is_none(), "the run has ended\n{}", self.env.dump_state());
            self.env.member("dex").filter(at_dialog)
        });
        let pane = dex["pane"].as_str().unwrap();
        TRUST_KEYS.iter().for_each(|key| drop(self.env.tmux(["send-keys", "-t", pane, key])));
    }

    /// Whether the event log has a message from one member to another.
    fn has_message(&self, from: &str, to: &str) -> bool {
        let events = self.env.teamctl(["events", "--json"]).expect_success();
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .into_iter()
            .any(|event| event["event"] == "message_stored" && event["from"] == from && event["member"] == to)
    }

    /// Checks that no pane, team or process is left. The leak check of the harness would also find
    /// the files that new versions of the programs leave.
    fn assert_no_processes(&self) {
        let panes = self.env.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        assert!(panes.lines().all(str::is_empty), "panes are left: {panes}");
        assert_eq!(self.env.json(["status", "--all"])["teams"], json!([]));
        let program_names = ["--agent-id", "codex", "teamd-shim", "teamctl"];
        let is_left = |line: &String| program_names.iter().any(|name| line.contains(name));
        self.env.wait_until("all processes of the team have ended", || {
            let left = TaggedProcesses::with_tag(&self.env.process_tag()).list();
            (!left.iter().any(is_left)).then_some(())
        });
    }
}

/// The last version of Claude Code in the list that `install` has written.
fn newest_claude_version(directory: &Path) -> String {
    let versions = std::fs::read_to_string(directory.join("claude/versions")).unwrap();
    versions.lines().last().unwrap().to_owned()
}

/// The value of `PATH`: Claude Code, npm's programs, those of teamd, and those of this machine.
fn search_path(directory: &Path, version: &str) -> String {
    let ours = harness::programs().display().to_string();
    let claude = directory.join("claude").join(version).join("node_modules/.bin");
    let npm = directory.join("npm/node_modules/.bin");
    let machine = std::env::var("PATH").unwrap_or_default();
    format!("{}:{}:{ours}:{machine}", claude.display(), npm.display())
}

#[test]
fn mixed_team_completes_one_run_file() {
    let Some(directory) = std::env::var_os("TEAMD_TEST_MIXED").map(PathBuf::from) else {
        return println!("skipped: the agent programs are not installed; scripts/test-mixed installs them");
    };
    let mixed = MixedEnv::new(&directory);
    mixed.env.teamctl(["setup", "codex", "--write"]).expect_success();
    let file = mixed.env.path("work/team.toml").display().to_string();
    let mut run = mixed.env.start_teamctl(["run", &file, "--json", "--timeout", "8m"]);
    mixed.trust_hooks(&mut run);
    let output = run.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{stdout}{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        mixed.env.dump_state()
    );
    let result: Value = serde_json::from_str(&stdout).unwrap();
    let outcomes: Vec<String> = result["tasks"].as_array().unwrap().iter().map(task_outcome).collect();
    assert_eq!(
        outcomes,
        ["count wes completed", "draft cloe completed", "check dex completed", "report wes completed"]
    );
    assert!(mixed.env.read("work/report.txt").ends_with("the draft\n"));
    assert!(mixed.has_message("cloe", "dex"), "cloe has sent no message to dex");
    mixed.assert_no_processes();
    mixed.env.teamctl(["down"]).expect_success();
}

/// The key, owner and outcome of a task in the result of `teamctl run`.
fn task_outcome(task: &Value) -> String {
    let field = |key: &str| task[key].as_str().unwrap_or("-").to_owned();
    [field("key"), field("owner"), field("outcome")].join(" ")
}

/// Runs Claude Code with hooks. Its transcript has the usage of each answer of the model, which is
/// 20 tokens.
#[test]
fn claude_usage_is_read_from_its_transcript() {
    let Some(directory) = std::env::var_os("TEAMD_TEST_MIXED").map(PathBuf::from) else {
        return println!("skipped: the agent programs are not installed; scripts/test-mixed installs them");
    };
    let mut mixed = MixedEnv::new(&directory);
    let home = mixed.env.root().display().to_string();
    mixed.env.variables.push(("CLAUDE_CONFIG_DIR".to_owned(), home));
    mixed.env.teamctl(["setup", "claude-hook", "--write"]).expect_success();
    mixed.env.teamctl(["create", "survey"]).expect_success();
    let work = mixed.env.path("work").display().to_string();
    let prompt = "CALL Bash {\"command\": \"true\", \"description\": \"look\"}\nSAY first";
    mixed
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
    let wait_for_usage = |answers: u64| {
        mixed.env.wait_until_within(TIMEOUT, &format!("{answers} answers are counted"), || {
            let team = mixed.env.json(["status"])["teams"][0].clone();
            let rows = [&team["members"], &team["past_members"]]
                .into_iter()
                .flat_map(|rows| rows.as_array().unwrap());
            let cloe = rows.into_iter().find(|row| row["name"] == "cloe")?;
            assert_eq!(cloe["usage"], team["budget"]["usage"], "{team}");
            (cloe["usage"]["tokens"].as_u64()? >= 20 * answers).then(|| cloe["usage"]["tokens"].clone())
        })
    };
    let wait_for_answer = |text: &str| {
        mixed.env.wait_until_within(TIMEOUT, &format!("the model answers {text}"), || {
            mixed.env.read("out/anthropic").contains(text).then_some(())
        });
        mixed.env.wait_until_within(TIMEOUT, "cloe is idle", || {
            (mixed.env.member("cloe")?["delivery_point"] != "on-pull").then_some(())
        });
    };
    wait_for_answer("first");
    mixed.env.teamctl(["send", "cloe", "SAY second"]).expect_success();
    wait_for_answer("second");
    mixed.env.teamctl(["down", "--suspend"]).expect_success();
    mixed.env.teamctl(["up", "--resume"]).expect_success();
    wait_for_usage(3);
    mixed.env.teamctl(["send", "cloe", "SAY third"]).expect_success();
    wait_for_answer("third");
    mixed.env.teamctl(["kill", "cloe"]).expect_success();
    // Claude Code writes the last answer of a turn to its transcript after the end of the turn. The
    // answer is counted at the next hook, so the very last one may not be counted.
    let answers =
        mixed.env.read("out/anthropic").lines().filter(|line| line.contains("doing")).count() as u64;
    let count = wait_for_usage(answers - 1).as_u64().unwrap();
    assert!(count <= 20 * answers && count % 20 == 0, "{count} tokens for {answers} answers");
    mixed.env.teamctl(["down"]).expect_success();
}
