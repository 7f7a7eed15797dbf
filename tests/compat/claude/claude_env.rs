//! One version of Claude Code with an environment around it: home, settings, the scripted model, teamd on a tmux of its own.

use crate::claude_home::{install_claude_home, variables};
use harness::{CommandOutput, ScriptedModel, TestEnv};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than a client lets pass between two looks into its inbox.
const QUIET: Duration = Duration::from_millis(2_500);

pub(crate) struct ClaudeEnv {
    pub(crate) env: TestEnv,
    _model: ScriptedModel,
    /// Something for each question that the model is asked.
    questions: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl ClaudeEnv {
    pub(crate) fn start(version: &str, directory: &Path) -> ClaudeEnv {
        let mut env = TestEnv::new();
        std::fs::create_dir(env.path("work")).unwrap();
        install_claude_home(&env, version, &env.path("work"));
        let bin = directory.join(version).join("node_modules/.bin");
        let path = std::env::var("PATH").unwrap();
        let model = ScriptedModel::start(&env, "claude/scripted_model.mjs", &env.path("out/model"));
        env.variables = variables(model.address());
        env.variables.push(("PATH".to_owned(), format!("{}:{path}", bin.display())));
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        let (tell, questions) = channel();
        let mut watcher = notify::recommended_watcher(move |_| tell.send(()).unwrap_or_default()).unwrap();
        watcher.watch(&env.path("out"), RecursiveMode::NonRecursive).unwrap();
        ClaudeEnv { env, _model: model, questions, _watcher: watcher }
    }

    /// A native teammate.
    pub(crate) fn spawn(&self, name: &str, more: &[&str], prompt: &str) {
        let work = self.work_path("").display().to_string();
        let fixed =
            ["spawn", name, "--profile", "claude", "--model", "sonnet", "--cwd", &work, "--prompt", prompt];
        self.env.teamctl_with(&[&fixed[..], more].concat(), &[]).expect_success();
    }

    pub(crate) fn teamctl(&self, arguments: &[&str]) -> CommandOutput {
        self.env.teamctl_with(arguments, &[])
    }

    /// A file where the agents work.
    pub(crate) fn work_path(&self, name: &str) -> PathBuf {
        self.env.path("work").join(name)
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.env.root().join(path)
    }

    /// An inbox; empty while a client that truncates is in the middle of writing it.
    pub(crate) fn inbox(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read(self.file(&format!("teams/survey/inboxes/{name}.json")));
        text.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// What a member has sent its lead, by kind.
    pub(crate) fn payloads_to_lead(&self, from: &str, kind: &str) -> Vec<Value> {
        let hers = self.inbox("team-lead").into_iter().filter(|message| message["from"] == from);
        let parsed = hers.filter_map(|message| serde_json::from_str::<Value>(message["text"].as_str()?).ok());
        parsed.filter(|payload| payload["type"] == kind).collect()
    }

    /// A plain message from a member.
    pub(crate) fn message_to_lead(&self, from: &str, text: &str) -> Option<Value> {
        self.inbox("team-lead").into_iter().find(|message| message["from"] == from && message["text"] == text)
    }

    /// What waits for an answer, of one kind.
    pub(crate) fn open_request(&self, from: &str, kind: &str) -> Option<Value> {
        let requests = self.teamctl(&["requests", "--json"]).json();
        let requests = requests["requests"].as_array()?.clone();
        requests.into_iter().find(|request| request["from"] == from && request["kind"] == kind)
    }

    /// Sends what the model is to do, and waits until the turn has ended, with what `during` does meanwhile.
    pub(crate) fn run_turn(&self, name: &str, text: &str, during: impl FnOnce()) {
        let before = self.payloads_to_lead(name, "idle_notification").len();
        self.teamctl(&["send", name, text]).expect_success();
        during();
        self.wait_for_idle(name, before);
    }

    /// Waits for one more idle notification than `before`, and for `status` to know.
    pub(crate) fn wait_for_idle(&self, name: &str, before: usize) {
        self.env.wait_until("the turn ends", || {
            (self.payloads_to_lead(name, "idle_notification").len() > before).then_some(())
        });
        self.env
            .wait_until("status says idle", || self.env.member(name).filter(|it| it["activity"] == "idle"));
        self.wait_until_model_idle();
    }

    /// Waits until the model has not been asked for a while. An old client that works loses what comes beside another
    /// message, and may take up one twice: so each gets one message, and only when it rests.
    pub(crate) fn wait_until_model_idle(&self) {
        while self.questions.recv_timeout(QUIET).is_ok() {}
    }

    /// config.json, once it is whole.
    pub(crate) fn config(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.file("teams/survey/config.json")).ok()?).ok()
    }

    pub(crate) fn member_entry(&self, name: &str) -> Option<Value> {
        self.config()?["members"].as_array()?.iter().find(|member| member["name"] == name).cloned()
    }
}
