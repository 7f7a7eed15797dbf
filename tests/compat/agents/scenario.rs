//! The scenario that each agent program runs through, with its own test environment and scripted
//! model.

use crate::programs::AgentProgram;
use harness::{ScriptedModel, TestEnv};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The timeout of each wait. A program takes seconds to start, and longer on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The steps of [`ProgramScenario::run`], in order.
pub(crate) const STEPS: [&str; 5] = ["check", "first prompt", "while idle", "while busy", "shutdown"];

pub(crate) struct ProgramScenario {
    env: TestEnv,
    program: AgentProgram,
    _model: ScriptedModel,
    cwd: PathBuf,
}

impl ProgramScenario {
    /// Starts the model and the daemon, writes the program's settings and creates the team.
    /// `directory` has the agent programs.
    pub(crate) fn new(program: &AgentProgram, directory: &Path) -> ProgramScenario {
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
        env.variables.push(("PATH".to_owned(), search_path(directory)));
        // These variables disable telemetry and checks for updates.
        for name in ["DO_NOT_TRACK", "NO_UPDATE_NOTIFIER", "DISABLE_TELEMETRY"] {
            env.variables.push((name.to_owned(), "1".to_owned()));
        }
        // Some programs run commands in a login shell, which takes PATH from this file.
        write_file(&env.path("home/.profile"), &format!("PATH='{}'\n", search_path(directory)));
        env.start_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        ProgramScenario { env, program: *program, _model: model, cwd }
    }

    /// Runs all [`STEPS`]. Adds 1 to `done` after each step, so a panic keeps the count.
    pub(crate) fn run(self, done: &mut usize) {
        let profile = self.program.profile;
        self.env.teamctl(["setup", profile, "--write"]).expect_success();
        self.env.teamctl(["profiles", "check", profile]).expect_success();
        *done += 1;
        self.spawn(&format!("{}SAY: first-prompt", self.send_to_lead_line("one")));
        self.wait_for_messages("one", "first-prompt");
        *done += 1;
        self.wait_until_idle();
        self.send(&format!("{}SAY: while-idle", self.send_to_lead_line("two")));
        self.wait_for_messages("two", "while-idle");
        *done += 1;
        self.wait_until_idle();
        self.send(&format!("DO: sleep 3\n{}SAY: is-busy", self.send_to_lead_line("three")));
        self.first_request_ms("is-busy");
        self.send(&format!("{}SAY: while-busy", self.send_to_lead_line("four")));
        self.wait_for_messages("four", "while-busy");
        *done += 1;
        self.wait_until_idle();
        let ended = self.env.teamctl(["shutdown", "ann", "--grace", "25s"]);
        assert!(ended.code == 0 && ended.stdout.contains("approved"), "{ended:?}\n{}", self.dump_state());
        *done += 1;
        self.shut_down();
    }

    /// Spawns the agent in plan mode, rejects its first plan and approves the second one. Checks
    /// that the agent then carries out a message.
    pub(crate) fn run_plan_mode(self) {
        self.env.teamctl(["setup", self.program.profile, "--write"]).expect_success();
        self.spawn_in("plan", "SAY: first-plan");
        let first = self.wait_for_plan("first-plan");
        self.env.teamctl(["deny", &first, "--reason", "SAY: second-plan"]).expect_success();
        let second = self.wait_for_plan("second-plan");
        let approval = self.env.teamctl(["approve", &second, "--mode", "bypassPermissions"]);
        if approval.code != 0 {
            // The profile does not have this mode.
            assert_eq!(approval.code, 76, "{approval:?}");
            self.env.teamctl(["approve", &second]).expect_success();
        }
        self.first_request_ms("Your plan is approved");
        self.wait_until_idle();
        self.send(&format!("{}SAY: carried-out", self.send_to_lead_line("one")));
        self.wait_for_messages("one", "carried-out");
        self.wait_until_idle();
        self.shut_down();
    }

    /// Checks the usage of two spawns with the same session. It must equal the usage that the model
    /// has reported, which is 15 tokens for each answer.
    pub(crate) fn run_usage_check(self) {
        self.spawn("DO: shell true\nSAY: first");
        self.first_request_ms("first");
        self.wait_until_idle();
        self.send("SAY: second");
        self.first_request_ms("second");
        self.wait_until_idle();
        self.check_usage();
        self.env.teamctl(["down", "--suspend"]).expect_success();
        self.env.teamctl(["up", "--resume"]).expect_success();
        self.send("DO: shell true\nDO: shell true\nDO: shell true\nDO: shell true\nSAY: third");
        self.first_request_ms("third");
        self.wait_until_idle();
        self.check_usage();
        self.shut_down();
    }

    /// Asks a question, and a second one in the same session if the program has sessions. Then asks
    /// a question whose answer takes longer than the timeout.
    pub(crate) fn run_ask(self) {
        let cwd = self.cwd.display().to_string();
        let mut options = vec!["--profile", self.program.profile, "--cwd", &cwd, "--timeout", "90s"];
        options.extend(self.program.spawn_args);
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

    /// Waits until the member's usage equals that of all answers of the model so far.
    fn check_usage(&self) {
        let answers = self.env.read("model.log").lines().filter(|line| line.contains("\"last\"")).count();
        let usage = || self.env.member("ann").and_then(|ann| ann["usage"]["tokens"].as_u64());
        println!("{:14} {answers} answers, {:?} tokens", self.program.profile, usage());
        self.wait_until("the usage is counted", || (usage() == Some(15 * answers as u64)).then_some(()));
    }

    /// Waits for the request whose plan contains `marker`. Returns its id.
    fn wait_for_plan(&self, marker: &str) -> String {
        let requests = || self.env.json(["requests"])["requests"].as_array().cloned().unwrap_or_default();
        let has_marker = |request: &Value| {
            request["body"]["planContent"].as_str().is_some_and(|plan| plan.contains(marker))
        };
        self.wait_until(&format!("the agent submits the plan {marker}"), || {
            Some(requests().iter().find(|request| has_marker(request))?["id"].as_str()?.to_owned())
        })
    }

    /// Measures `count` wakes of an idle agent. Each time, in ms, is from the end of `teamctl send`
    /// to the program's request to the model.
    pub(crate) fn measure_wakes(self, count: usize) -> Vec<f64> {
        self.env.teamctl(["setup", self.program.profile, "--write"]).expect_success();
        self.spawn("SAY: begun");
        self.first_request_ms("begun");
        let times = (0..count).map(|n| {
            self.wait_until_idle();
            // After a turn, a program still saves its session and redraws its screen. No event
            // shows when it has finished, so this waits.
            harness::sleep(Duration::from_secs(2));
            let marker = format!("wake-{n}-");
            self.send(&format!("SAY: {marker}"));
            let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0;
            self.first_request_ms(&marker) - sent
        });
        let times = times.collect();
        self.env.teamctl(["kill", "ann"]).expect_success();
        self.shut_down();
        times
    }

    fn spawn(&self, prompt: &str) {
        self.spawn_in("bypassPermissions", prompt);
    }

    /// Spawns ann in a permission mode, and accepts the dialog about hooks. `mode` replaces the
    /// mode `bypassPermissions` of the program's arguments. If they have no mode, only `plan` is
    /// passed.
    fn spawn_in(&self, mode: &str, prompt: &str) {
        let cwd = self.cwd.display().to_string();
        let mut args =
            vec!["spawn", "ann", "--profile", self.program.profile, "--cwd", &cwd, "--prompt", prompt];
        let usual = self.program.spawn_args.iter().copied();
        args.extend(usual.map(|arg| if arg == "bypassPermissions" { mode } else { arg }));
        if mode == "plan" && !args.contains(&"plan") {
            args.extend(["--mode", "plan"]);
        }
        self.env.teamctl_with(&args, &[]).expect_success();
        if let Some((question, keys)) = self.program.hook_dialog {
            self.wait_until("the program shows its dialog about hooks", || {
                self.env.teamctl(["capture", "ann"]).stdout.contains(question).then_some(())
            });
            keys.iter().for_each(|key| self.type_key(key));
            self.wait_until("the dialog is closed", || {
                (!self.env.teamctl(["capture", "ann"]).stdout.contains(question)).then_some(())
            });
        }
    }

    /// Types a key and waits until the screen has changed. A program can mistake keys in quick
    /// succession for a paste.
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

    /// A line of a prompt with which the agent sends `text` to the lead. Empty if the program can't
    /// run commands.
    fn send_to_lead_line(&self, text: &str) -> String {
        match self.program.runs_commands {
            // A login shell may set another PATH, so the line has the path of teamctl.
            true => {
                let teamctl = harness::programs().join("teamctl");
                format!("DO: shell {} send team-lead {text}\n", teamctl.display())
            }
            false => String::new(),
        }
    }

    /// Waits until the model has received `marker`, and the lead has the agent's message `text`. A
    /// program that can't run commands sends no such message.
    fn wait_for_messages(&self, text: &str, marker: &str) {
        self.first_request_ms(marker);
        if self.program.runs_commands {
            self.wait_until(&format!("the lead has {text}"), || {
                let inbox = self.env.inbox("survey", "team-lead");
                inbox.iter().any(|message| message["from"] == "ann" && message["text"] == text).then_some(())
            });
        }
    }

    /// Waits until the model gets a request whose last user message contains `marker`. Returns the
    /// time of the first such request in ms since the epoch.
    fn first_request_ms(&self, marker: &str) -> f64 {
        self.wait_until(&format!("the model gets a request with {marker}"), || {
            let log = self.env.read("model.log");
            let requests = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            requests.into_iter().find(|it| it["last"].as_str().is_some_and(|last| last.contains(marker)))?["at"]
                .as_f64()
        })
    }

    /// Waits until the member is idle, and messages reach it at once.
    fn wait_until_idle(&self) {
        self.wait_until("the member is idle", || {
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

    /// Ends the daemon. Does not check for leftover files, because these programs leave locks and
    /// caches.
    fn shut_down(self) {
        self.env.teamctl(["down"]).expect_success();
    }
}

/// The value of `PATH`: npm's programs, those of teamd, those of the Python environment, and those
/// of this machine.
fn search_path(directory: &Path) -> String {
    let ours = harness::programs().display().to_string();
    let (npm, venv) = (directory.join("npm/node_modules/.bin"), directory.join("venv/bin"));
    let machine = std::env::var("PATH").unwrap_or_default();
    format!("{}:{ours}:{}:{machine}", npm.display(), venv.display())
}

#[allow(clippy::disallowed_methods, reason = "a file of the test, which only the test writes")]
fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("the path has a parent")).unwrap();
    std::fs::write(path, text).unwrap();
}
