//! A team at its home, and another host on which Claude Code runs as a member of this team. The
//! other host is a second environment on this machine.

use crate::claude_env::ClaudeEnv;
use harness::{MemberEnv, TestEnv};
use serde_json::{Value, json};
use std::path::Path;

/// The hosts file, from the test's directory.
const HOSTS_FILE: &str = "home/.config/teamd/hosts.toml";

pub(crate) struct ClaudeAnnex {
    /// The home with the team `survey`.
    pub(crate) home: TestEnv,
    /// A member of the team at its home.
    pub(crate) bob: MemberEnv,
    /// The host `devbox` with Claude Code and the scripted model.
    pub(crate) devbox: ClaudeEnv,
}

impl ClaudeAnnex {
    /// Starts both daemons and the model, and spawns bob at the home. `directory` has the installed
    /// versions.
    pub(crate) fn start(version: &str, directory: &Path) -> ClaudeAnnex {
        let devbox = ClaudeEnv::without_team(version, directory);
        let home = TestEnv::with_team();
        let command = devbox.env.command("teamctl");
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, value?.to_str()?)));
        let connect: Vec<String> = ["env", "-i"].map(str::to_owned).into_iter().chain(variables).collect();
        home.write_file(HOSTS_FILE, format!("[host.devbox]\nconnect = {}\n", json!(connect)));
        let bob = home.spawn_member("survey", "bob");
        ClaudeAnnex { home, bob, devbox }
    }

    /// Waits until the inbox of `to` at the home has a message with this text from ann.
    pub(crate) fn wait_for_message(&self, to: &str, text: &str) -> Value {
        self.home.wait_until(&format!("{to} has the message {text:?}"), || {
            let inbox = self.home.inbox("survey", to);
            inbox.into_iter().find(|message| message["from"] == "ann" && message["text"] == text)
        })
    }

    /// Runs `act`, which makes ann work. Waits until her turn has ended.
    pub(crate) fn run_turn(&self, act: impl FnOnce()) {
        let before = self.idle_notifications();
        act();
        self.wait_for_idle(before);
    }

    /// Waits until the lead at the home has more than `before` idle notifications of ann, and until
    /// the model is idle.
    pub(crate) fn wait_for_idle(&self, before: usize) {
        self.home.wait_until("ann's idle notification is at the home", || {
            (self.idle_notifications() > before).then_some(())
        });
        self.devbox.wait_until_model_idle();
    }

    fn idle_notifications(&self) -> usize {
        let inbox = self.home.inbox("survey", "team-lead").into_iter();
        inbox.filter(|message| message["from"] == "ann" && is_idle_notification(message)).count()
    }

    /// The task with this id at the home.
    pub(crate) fn task(&self, id: &str) -> Value {
        self.home.tasks("survey").into_iter().find(|task| task["id"] == id).expect("the home has the task")
    }
}

fn is_idle_notification(message: &Value) -> bool {
    message["text"].as_str().is_some_and(|text| text.contains("\"idle_notification\""))
}
