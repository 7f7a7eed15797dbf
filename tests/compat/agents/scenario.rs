//! One program's way through a team, in an environment of its own with a model of its own.

use crate::programs::AgentProgram;
use harness::{ScriptedModel, TestEnv};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A program takes seconds to start, on a busy machine many.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What each has to do, in this order.
pub(crate) const STEPS: [&str; 5] = ["check", "first prompt", "while idle", "while busy", "shutdown"];

pub(crate) struct ProgramScenario {
    env: TestEnv,
    program: AgentProgram,
    _model: ScriptedModel,
    cwd: PathBuf,
}

impl ProgramScenario {
    /// The model answers, the program's settings are written, the team is there.
    pub(crate) fn new(program: &AgentProgram, place: &Path) -> ProgramScenario {
        let mut env = TestEnv::new();
        let cwd = env.path("out/work");
        std::fs::create_dir(&cwd).unwrap();
        let model = ScriptedModel::start(&env, "scripted_model.js", &env.path("model.log"));
        let address = model.address();
        for (path, text) in (program.settings)(address, &cwd.display().to_string()) {
            write_file(&env.path("home").join(path), &text);
        }
        env.variables = program
            .variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.replace("MODEL", address)))
            .collect();
        env.variables.push(("PATH".to_owned(), path(place)));
        // Tell no one, and ask for no updates.
        for name in ["DO_NOT_TRACK", "NO_UPDATE_NOTIFIER", "DISABLE_TELEMETRY"] {
            env.variables.push((name.to_owned(), "1".to_owned()));
        }
        // What a login shell finds, in which some programs run commands.
        write_file(&env.path("home/.profile"), &format!("PATH='{}'\n", path(place)));
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        ProgramScenario { env, program: *program, _model: model, cwd }
    }

    /// Counts the steps that were done.
    pub(crate) fn run(self, done: &mut usize) {
        let profile = self.program.profile;
        self.env.teamctl(["setup", profile, "--write"]).expect_success();
        self.env.teamctl(["profiles", "check", profile]).expect_success();
        *done += 1;
        self.spawn(&format!("{}SAY: first-prompt", self.send_and_wait("one")));
        self.model_received("one", "first-prompt");
        *done += 1;
        self.wait_until_idle();
        self.send(&format!("{}SAY: while-idle", self.send_and_wait("two")));
        self.model_received("two", "while-idle");
        *done += 1;
        self.wait_until_idle();
        self.send(&format!("DO: sleep 3\n{}SAY: is-busy", self.send_and_wait("three")));
        self.first_asked_ms("is-busy");
        self.send(&format!("{}SAY: while-busy", self.send_and_wait("four")));
        self.model_received("four", "while-busy");
        *done += 1;
        self.wait_until_idle();
        let ended = self.env.teamctl(["shutdown", "ann", "--grace", "25s"]);
        assert!(ended.code == 0 && ended.stdout.contains("approved"), "{ended:?}\n{}", self.dump_state());
        *done += 1;
        self.shut_down();
    }

    /// Begins in plan mode, and leaves it by the approval of its plan.
    pub(crate) fn run_plan_mode(self) {
        self.env.teamctl(["setup", self.program.profile, "--write"]).expect_success();
        self.spawn_in("plan", "SAY: first-plan");
        let first = self.wait_for_plan("first-plan");
        self.env.teamctl(["deny", &first, "--reason", "SAY: second-plan"]).expect_success();
        let second = self.wait_for_plan("second-plan");
        let yes = self.env.teamctl(["approve", &second, "--mode", "bypassPermissions"]);
        if yes.code != 0 {
            // Its profile has no such mode.
            assert_eq!(yes.code, 76, "{yes:?}");
            self.env.teamctl(["approve", &second]).expect_success();
        }
        self.first_asked_ms("Your plan is approved");
        self.wait_until_idle();
        self.send(&format!("{}SAY: carried-out", self.send_and_wait("one")));
        self.model_received("one", "carried-out");
        self.wait_until_idle();
        self.shut_down();
    }

    /// Whether what is counted in two lives of one session is what the model has told, in each of its answers 15.
    pub(crate) fn run_usage_check(self) {
        self.spawn("DO: shell true\nSAY: first");
        self.first_asked_ms("first");
        self.wait_until_idle();
        self.send("SAY: second");
        self.first_asked_ms("second");
        self.wait_until_idle();
        self.check_usage();
        self.env.teamctl(["down", "--suspend"]).expect_success();
        self.env.teamctl(["up", "--resume"]).expect_success();
        self.send("DO: shell true\nDO: shell true\nDO: shell true\nDO: shell true\nSAY: third");
        self.first_asked_ms("third");
        self.wait_until_idle();
        self.check_usage();
        self.shut_down();
    }

    /// Asks a question, continues the conversation if the program has one, and asks one whose answer takes
    /// too long.
    pub(crate) fn run_ask(self) {
        let cwd = self.cwd.display().to_string();
        let mut options = vec!["--profile", self.program.profile, "--cwd", &cwd, "--timeout", "90s"];
        options.extend(self.program.spawn);
        let ask = |question: &str| {
            self.env.teamctl_with(&[&["--json", "ask", question], &options[..]].concat(), &[])
        };
        let first = ask("SAY: first-answer").json();
        assert!(first["answer"].as_str().is_some_and(|answer| answer.contains("first-answer")), "{first}");
        if first["session_id"].is_string() {
            let id = first["id"].as_str().unwrap();
            let second = self.env.teamctl(["ask", "--resume", id, "SAY: second-answer"]).expect_success();
            assert!(second.contains("second-answer"), "{second}");
        }
        println!("{:14} session {}, usage {}", self.program.profile, first["session_id"], first["usage"]);
        options[5] = "1s";
        let late = self.env.teamctl_with(&[&["ask", "DO: sleep 60\nSAY: late"], &options[..]].concat(), &[]);
        assert_eq!(late.code, 75, "{late:?}");
        self.shut_down();
    }

    fn check_usage(&self) {
        let asked = self.env.read("model.log").lines().filter(|line| line.contains("\"last\"")).count();
        let used = || self.env.member("ann").and_then(|ann| ann["usage"]["tokens"].as_u64());
        println!("{:14} {asked} answers, {:?} tokens", self.program.profile, used());
        self.wait_until("it is counted", || (used() == Some(15 * asked as u64)).then_some(()));
    }

    /// The request with a plan that says so.
    fn wait_for_plan(&self, marker: &str) -> String {
        let requests = || self.env.json(["requests"])["requests"].as_array().cloned().unwrap_or_default();
        let says = |request: &Value| {
            request["body"]["planContent"].as_str().is_some_and(|plan| plan.contains(marker))
        };
        self.wait_until(&format!("it hands in {marker}"), || {
            Some(requests().iter().find(|request| says(request))?["id"].as_str()?.to_owned())
        })
    }

    /// How long each of so many wakes of an idle agent took, ms: from the end of `send` to the program's request.
    pub(crate) fn measure_wakes(self, count: usize) -> Vec<f64> {
        self.env.teamctl(["setup", self.program.profile, "--write"]).expect_success();
        self.spawn("SAY: begun");
        self.first_asked_ms("begun");
        let times = (0..count).map(|n| {
            self.wait_until_idle();
            // An idle program is one that has also put its last turn away: saved, and drawn.
            harness::sleep(Duration::from_secs(2));
            let marker = format!("wake-{n}-");
            self.send(&format!("SAY: {marker}"));
            let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0;
            self.first_asked_ms(&marker) - sent
        });
        let times = times.collect();
        self.env.teamctl(["kill", "ann"]).expect_success();
        self.shut_down();
        times
    }

    fn spawn(&self, prompt: &str) {
        self.spawn_in("bypassPermissions", prompt);
    }

    /// In that mode, where it is a program's whose tests say one.
    fn spawn_in(&self, mode: &str, prompt: &str) {
        let cwd = self.cwd.display().to_string();
        let mut words =
            vec!["spawn", "ann", "--profile", self.program.profile, "--cwd", &cwd, "--prompt", prompt];
        let usual = self.program.spawn.iter().copied();
        words.extend(usual.map(|word| if word == "bypassPermissions" { mode } else { word }));
        if mode == "plan" && !words.contains(&"plan") {
            words.extend(["--mode", "plan"]);
        }
        let spawned = self.env.teamctl_with(&words, &[]).expect_success();
        drop(spawned);
        if let Some((question, keys)) = self.program.asks {
            self.wait_until("it asks its user", || {
                self.env.teamctl(["capture", "ann"]).stdout.contains(question).then_some(())
            });
            keys.iter().for_each(|key| self.type_key(key));
            self.wait_until("the question is answered", || {
                (!self.env.teamctl(["capture", "ann"]).stdout.contains(question)).then_some(())
            });
        }
    }

    /// Types a key, and waits until the screen has changed: a program can take keys that come at once
    /// for a paste.
    fn type_key(&self, key: &str) {
        let pane = self.env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
        let screen = || self.env.teamctl(["capture", "ann"]).stdout;
        let before = screen();
        self.env.tmux(["send-keys", "-t", &pane, key]);
        self.wait_until(&format!("{key} changes the screen"), || (screen() != before).then_some(()));
    }

    fn send(&self, text: &str) {
        self.env.teamctl(["send", "ann", text]).expect_success();
    }

    /// A step in which the agent tells the lead a word; nothing for one that can't.
    fn send_and_wait(&self, word: &str) -> String {
        match self.program.acts {
            // By its path: a login shell has a PATH of its own.
            true => {
                let teamctl = harness::programs().join("teamctl");
                format!("DO: shell {} send team-lead {word}\n", teamctl.display())
            }
            false => String::new(),
        }
    }

    /// The model was asked with this marker in the last words, and the lead has the agent's own word.
    fn model_received(&self, word: &str, marker: &str) {
        self.first_asked_ms(marker);
        if self.program.acts {
            self.wait_until(&format!("the lead has {word}"), || {
                let inbox = self.env.inbox("survey", "team-lead");
                inbox.iter().any(|m| m["from"] == "ann" && m["text"] == word).then_some(())
            });
        }
    }

    /// When the model was first asked with this marker in the last words, ms since the epoch.
    fn first_asked_ms(&self, marker: &str) -> f64 {
        self.wait_until(&format!("the model is asked for {marker}"), || {
            let log = self.env.read("model.log");
            let asked = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            asked.into_iter().find(|it| it["last"].as_str().is_some_and(|last| last.contains(marker)))?["at"]
                .as_f64()
        })
    }

    /// Between turns, and to be reached at once.
    fn wait_until_idle(&self) {
        self.wait_until("it waits for messages", || {
            let member = self.env.member("ann")?;
            (member["activity"] == "idle" && member["delivery_point"] != "on-pull").then_some(())
        });
    }

    fn wait_until<T>(&self, what: &str, condition: impl FnMut() -> Option<T>) -> T {
        self.env.wait_until_within(TIMEOUT, &format!("{}: {what}", self.program.profile), condition)
    }

    fn dump_state(&self) -> String {
        self.env.dump_state()
    }

    /// Without the environment's audit: these programs leave locks and caches of their own behind.
    fn shut_down(self) {
        self.env.teamctl(["down"]).expect_success();
    }
}

/// The programs under test first, then ours, then the machine's.
fn path(place: &Path) -> String {
    let ours = harness::programs().display().to_string();
    let (npm, venv) = (place.join("npm/node_modules/.bin"), place.join("venv/bin"));
    let machine = std::env::var("PATH").unwrap_or_default();
    format!("{}:{ours}:{}:{machine}", npm.display(), venv.display())
}

#[allow(clippy::disallowed_methods, reason = "a test's own file, before anything runs")]
fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it has a directory")).unwrap();
    std::fs::write(path, text).unwrap();
}
