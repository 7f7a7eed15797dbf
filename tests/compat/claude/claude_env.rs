//! A test environment for one version of Claude Code: home directory, settings, the scripted model,
//! and teamd with its own tmux server.

use crate::claude_home::{install_claude_home, variables};
use harness::{CommandOutput, ScriptedModel, TestEnv};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long the model must get no request before it counts as idle. This is longer than the
/// interval at which Claude Code reads its inbox.
const QUIET: Duration = Duration::from_millis(2_500);

pub(crate) struct ClaudeEnv {
    pub(crate) env: TestEnv,
    _model: ScriptedModel,
    /// Receives a value for each file event in `out`, where the model logs its requests.
    log_events: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl ClaudeEnv {
    /// Starts the model and the daemon, and creates the team. `directory` has the installed
    /// versions.
    pub(crate) fn start(version: &str, directory: &Path) -> ClaudeEnv {
        let claude = ClaudeEnv::without_team(version, directory);
        claude.teamctl(&["create", "survey"]).expect_success();
        claude
    }

    /// As [`ClaudeEnv::start`], without a team.
    pub(crate) fn without_team(version: &str, directory: &Path) -> ClaudeEnv {
        let mut env = TestEnv::new();
        std::fs::create_dir(env.path("work")).unwrap();
        install_claude_home(&env, version, &env.path("work"));
        let bin = directory.join(version).join("node_modules/.bin");
        let path = std::env::var("PATH").unwrap();
        let model = ScriptedModel::start(&env, "claude/scripted_model.mjs", &env.path("out/model"));
        env.variables = variables(model.address());
        let path = format!("{}:{}:{path}", bin.display(), harness::programs().display());
        env.variables.push(("PATH".to_owned(), path));
        env.start_daemon();
        let (sender, log_events) = channel();
        let mut watcher = notify::recommended_watcher(move |_| sender.send(()).unwrap_or_default()).unwrap();
        watcher.watch(&env.path("out"), RecursiveMode::NonRecursive).unwrap();
        ClaudeEnv { env, _model: model, log_events, _watcher: watcher }
    }

    /// Spawns Claude Code as a teammate with native delivery.
    pub(crate) fn spawn(&self, name: &str, options: &[&str], prompt: &str) {
        let work = self.work_path("").display().to_string();
        let fixed =
            ["spawn", name, "--profile", "claude", "--model", "sonnet", "--cwd", &work, "--prompt", prompt];
        self.env.teamctl_with(&[&fixed[..], options].concat(), &[]).expect_success();
    }

    pub(crate) fn teamctl(&self, arguments: &[&str]) -> CommandOutput {
        self.env.teamctl_with(arguments, &[])
    }

    /// The path of a file in the agents' working directory.
    pub(crate) fn work_path(&self, name: &str) -> PathBuf {
        self.env.path("work").join(name)
    }

    /// The path of a file below the root.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.env.root().join(path)
    }

    /// The messages of an inbox. Empty while a client that truncates the file writes it.
    pub(crate) fn inbox(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read(self.file(&format!("teams/survey/inboxes/{name}.json")));
        text.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// The payloads of one type that a member has sent to the lead.
    pub(crate) fn payloads_to_lead(&self, from: &str, kind: &str) -> Vec<Value> {
        let messages = self.inbox("team-lead").into_iter().filter(|message| message["from"] == from);
        let payloads =
            messages.filter_map(|message| serde_json::from_str::<Value>(message["text"].as_str()?).ok());
        payloads.filter(|payload| payload["type"] == kind).collect()
    }

    /// The message with this text from a member to the lead. `None` if the lead does not have it.
    pub(crate) fn message_to_lead(&self, from: &str, text: &str) -> Option<Value> {
        self.inbox("team-lead").into_iter().find(|message| message["from"] == from && message["text"] == text)
    }

    /// An open request of this kind from a member. `None` if there is none.
    pub(crate) fn open_request(&self, from: &str, kind: &str) -> Option<Value> {
        let requests = self.teamctl(&["requests", "--json"]).json();
        let requests = requests["requests"].as_array()?.clone();
        requests.into_iter().find(|request| request["from"] == from && request["kind"] == kind)
    }

    /// Sends a message with steps for the model, calls `during`, and waits until the turn has
    /// ended.
    pub(crate) fn run_turn(&self, name: &str, text: &str, during: impl FnOnce()) {
        let before = self.payloads_to_lead(name, "idle_notification").len();
        self.teamctl(&["send", name, text]).expect_success();
        during();
        self.wait_for_idle(name, before);
    }

    /// Waits for more than `before` idle notifications of a member. Then waits until `status` shows
    /// the member as idle and the model is idle.
    pub(crate) fn wait_for_idle(&self, name: &str, before: usize) {
        self.env.wait_until("the member sends an idle notification", || {
            (self.payloads_to_lead(name, "idle_notification").len() > before).then_some(())
        });
        self.env.wait_until("status shows the member as idle", || {
            self.env.member(name).filter(|it| it["activity"] == "idle")
        });
        self.wait_until_model_idle();
    }

    /// Waits until the model has got no request for [`QUIET`].
    ///
    /// An old client that is busy loses a message that arrives beside another one, or handles a
    /// message twice. So a test sends one message at a time, and only to an idle client.
    pub(crate) fn wait_until_model_idle(&self) {
        while self.log_events.recv_timeout(QUIET).is_ok() {}
    }

    /// The content of config.json. `None` while the file is missing or invalid.
    pub(crate) fn config(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.file("teams/survey/config.json")).ok()?).ok()
    }

    /// The entry of a member in config.json. `None` if there is none.
    pub(crate) fn member_entry(&self, name: &str) -> Option<Value> {
        self.config()?["members"].as_array()?.iter().find(|member| member["name"] == name).cloned()
    }
}
