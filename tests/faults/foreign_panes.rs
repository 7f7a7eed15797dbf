//! Ends hundreds of agents while a simulated user creates, closes, moves and respawns panes, forges
//! pane tags, and moves agents' panes. Tests that the panes of ended agents are closed, and that
//! each pane of the user stays with its process.
//!
//! `KILLS_UNDER_CHURN=n` sets the number of agents that teamd ends (150 by default); `SEED=n`
//! chooses the actions.

use harness::{TestEnv, number_from_env, record_result, start_time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Maximum number of the user's panes.
const PANES: usize = 12;
/// Number of agents that are spawned and ended at the same time.
const BATCH_SIZE: usize = 6;
/// Time between two actions of the user.
const ACTION_INTERVAL: Duration = Duration::from_millis(3);

/// A simulated user with a tmux control client.
struct SimulatedUser<'a> {
    client: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    env: &'a TestEnv,
    rng: fastrand::Rng,
    /// The user's panes, each with its process.
    own: BTreeMap<String, UserProcess>,
    /// The user's first pane. It never leaves its window, so the window stays. Agents' panes are
    /// joined only to this window: up to version 3.6, a tmux server with a control client crashes
    /// if two clients remove the last two panes of a window at the same time.
    first: String,
    /// Number of commands so far.
    commands: u64,
}

/// A pid and the start time of its process.
type UserProcess = (u32, Option<u64>);

fn user_process(pid: &str) -> UserProcess {
    let pid = pid.parse().unwrap();
    (pid, start_time(pid))
}

/// What the test asks of the user.
enum UserRequest {
    /// Make an agent's pane hard to distinguish from the user's panes.
    Disturb { pane: String },
    /// Reply with those of the agents' panes that still exist, or with an error if one of the
    /// user's panes has changed.
    Check { panes: Vec<String>, answer: Sender<Result<Vec<String>, String>> },
}

impl<'a> SimulatedUser<'a> {
    fn attach(env: &'a TestEnv, seed: u64) -> SimulatedUser<'a> {
        let mut command = env.command("tmux");
        command.arg("-u").arg("-S").arg(env.tmux_socket()).args(["-C", "attach", "-t", "=user"]);
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (client.stdin.take().unwrap(), BufReader::new(client.stdout.take().unwrap()));
        let rng = fastrand::Rng::with_seed(seed);
        let first = env.tmux(["list-panes", "-t", "=user:", "-F", "#{pane_id}"]);
        let mut user =
            SimulatedUser { client, stdin, stdout, env, rng, own: BTreeMap::new(), first, commands: 0 };
        user.respawn_pane(&user.first.clone()).unwrap();
        while user.own.len() < PANES / 2 {
            user.open_pane("new-window -t =user:");
        }
        user
    }

    /// Runs a tmux command and returns the lines that it printed, or the error text.
    fn run_tmux(&mut self, command: &str) -> Result<Vec<String>, String> {
        self.commands += 1;
        let end_marker = format!("said-{}", self.commands);
        writeln!(self.stdin, "{command}\ndisplay-message -p {end_marker}").unwrap();
        let (mut lines, mut failed) = (Vec::new(), false);
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the tmux server has ended: {command}");
            let line = line.trim_end();
            if line == end_marker {
                break;
            }
            failed |= line.starts_with("%error");
            if !line.starts_with('%') || line[1..].starts_with(|c: char| c.is_ascii_digit()) {
                lines.push(line.to_owned());
            }
        }
        if failed { Err(lines.concat()) } else { Ok(lines) }
    }

    /// Returns one of the user's panes, but not the first one.
    fn random_own_pane(&mut self) -> String {
        let panes: Vec<&String> = self.own.keys().filter(|pane| **pane != self.first).collect();
        self.rng.choice(panes).unwrap().clone()
    }

    fn open_pane(&mut self, command: &str) {
        // tmux creates no pane if there is no space for it.
        let Ok(lines) = self.run_tmux(&format!("{command} -d -P -F '#{{pane_id}} #{{pane_pid}}' -- cat -"))
        else {
            return;
        };
        let (pane, pid) = lines[0].split_once(' ').unwrap();
        self.own.insert(pane.to_owned(), user_process(pid));
    }

    /// Does a random action with the user's panes.
    fn act(&mut self) {
        let (pane, other) = (self.random_own_pane(), self.random_own_pane());
        match self.rng.u32(0..8) {
            0 if self.own.len() < PANES => self.open_pane(&format!("split-window -t {pane}")),
            1 if self.own.len() < PANES => self.open_pane("new-window -t =user:"),
            2 if self.own.len() > PANES / 2 => {
                self.own.remove(&pane);
                self.run_tmux(&format!("kill-pane -t {pane}")).unwrap();
            }
            3 => self.respawn_pane(&pane).unwrap(),
            4 => drop(self.run_tmux(&format!("swap-pane -d -s {pane} -t {other}"))),
            5 => drop(self.run_tmux(&format!("join-pane -d -s {pane} -t {other}"))),
            6 => drop(self.run_tmux(&format!("break-pane -d -s {pane}"))),
            _ => drop(self.run_tmux(&format!("resize-pane -Z -t {pane}"))),
        }
    }

    fn respawn_pane(&mut self, pane: &str) -> Result<(), String> {
        let pid = format!("display-message -p -t {pane} '#{{pane_pid}}'");
        let lines = self.run_tmux(&format!("respawn-pane -k -t {pane} -- cat - ; {pid}"))?;
        self.own.insert(pane.to_owned(), user_process(&lines[0]));
        Ok(())
    }

    /// Moves an agent's pane among the user's panes, gives a user's pane the agent's tag, or
    /// respawns the agent's pane, which then belongs to the user. Does nothing if the pane has been
    /// closed.
    fn disturb_agent_pane(&mut self, pane: &str) {
        let (user_pane, first) = (self.random_own_pane(), self.first.clone());
        match self.rng.u32(0..6) {
            0 => drop(self.run_tmux(&format!("join-pane -d -s {pane} -t {first}"))),
            1 => {
                drop(self.run_tmux(&format!(
                    "swap-pane -d -s {pane} -t {first} ; swap-pane -d -s {pane} -t {first}"
                )));
            }
            2 => drop(self.run_tmux(&format!("break-pane -d -s {pane}"))),
            3 => self.forge_tag(pane, &user_pane),
            4 => drop(self.respawn_pane(pane)),
            _ => {}
        }
    }

    fn forge_tag(&mut self, agent_pane: &str, user_pane: &str) {
        let command = format!("display-message -p -t {agent_pane} '#{{@teamd_spawn}} #{{@teamd_pane_pid}}'");
        let tags = self.run_tmux(&command).unwrap_or_default().concat();
        let (tag, pid) = tags.split_once(' ').unwrap_or_default();
        let set = format!("set-option -p -t {user_pane}");
        self.run_tmux(&format!("{set} @teamd_spawn '{tag}' ; {set} @teamd_pane_pid '{pid}'")).unwrap();
    }

    /// Checks that the user's panes have not changed. Returns those of the agents' panes that still
    /// exist.
    fn check_panes(&mut self, agent_panes: &[String]) -> Result<Vec<String>, String> {
        let rows = self.run_tmux("list-panes -a -F '#{pane_id} #{pane_pid} #{pane_dead}'").unwrap();
        for (pane, (pid, started)) in &self.own {
            if !rows.contains(&format!("{pane} {pid} 0")) || start_time(*pid) != *started {
                return Err(format!("{pane} with process {pid} has changed: {rows:?}"));
            }
        }
        let exists = |pane: &&String| rows.iter().any(|row| row.starts_with(&format!("{pane} ")));
        let not_respawned = agent_panes.iter().filter(|pane| !self.own.contains_key(*pane));
        Ok(not_respawned.filter(exists).cloned().collect())
    }

    /// Acts and answers requests until the channel of the requests is closed. Then closes the
    /// user's panes except for the first one.
    fn run(mut self, requests: &Receiver<UserRequest>) {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        loop {
            match requests.recv_timeout(ACTION_INTERVAL) {
                Ok(UserRequest::Disturb { pane }) => self.disturb_agent_pane(&pane),
                Ok(UserRequest::Check { panes, answer }) => answer.send(self.check_panes(&panes)).unwrap(),
                Err(Timeout) => self.act(),
                Err(Disconnected) => break,
            }
        }
        let panes: Vec<String> = self.own.keys().filter(|pane| **pane != self.first).cloned().collect();
        panes.iter().for_each(|pane| drop(self.run_tmux(&format!("kill-pane -t {pane}")).unwrap()));
        drop(self.stdin);
        self.client.wait().unwrap();
        self.env.tmux(["has-session", "-t", "=user"]);
    }
}

/// How an agent is ended.
#[derive(Clone, Copy, PartialEq)]
enum EndMethod {
    Kill,
    Shutdown,
    /// SIGKILL to the agent.
    Signal,
}

/// Spawns a batch of agents, lets the user disturb their panes, ends all agents, and checks all
/// panes. Returns how many agents teamd has ended on request.
fn spawn_and_end_batch(env: &TestEnv, rng: &mut fastrand::Rng, user: &Sender<UserRequest>) -> u64 {
    let names: Vec<String> = (0..BATCH_SIZE).map(|n| format!("a{n}")).collect();
    let spawns = names.iter().map(|name| env.start_teamctl(["--json", "spawn", name, "--", "sleep", "3600"]));
    let panes: Vec<(String, Value)> = spawns
        .collect::<Vec<_>>()
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            let spawned: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
            (spawned["pane"].as_str().unwrap().to_owned(), spawned["pid"].clone())
        })
        .collect();
    let methods: Vec<EndMethod> = panes
        .iter()
        .map(|_| {
            *rng.choice(&[EndMethod::Kill, EndMethod::Kill, EndMethod::Shutdown, EndMethod::Signal]).unwrap()
        })
        .collect();
    for (pane, _) in &panes {
        user.send(UserRequest::Disturb { pane: pane.clone() }).unwrap();
    }
    for ((_, pid), _) in panes.iter().zip(&methods).filter(|(_, method)| **method == EndMethod::Signal) {
        // The agent may have ended with its pane already.
        drop(Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status());
    }
    let commands = names.iter().zip(&methods).filter_map(|(name, method)| match method {
        EndMethod::Kill => Some(env.start_teamctl(["kill", name])),
        EndMethod::Shutdown => Some(env.start_teamctl(["shutdown", name, "--grace", "1ms", "--force"])),
        EndMethod::Signal => None,
    });
    let mut ended = 0;
    for child in commands.collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        // An agent whose pane was respawned has ended, and its member may be removed already.
        assert!([0, 67].contains(&output.status.code().unwrap()), "{output:?}");
        ended += u64::from(output.status.success());
    }
    env.wait_until("all members of the batch are removed", || {
        let status = env.json(["status"]);
        (status["teams"][0]["members"].as_array()?.len() == 2).then_some(())
    });
    let panes: Vec<String> = panes.into_iter().map(|(pane, _)| pane).collect();
    // The pane of an agent that ended by itself is closed a moment after its member is removed.
    env.wait_until("the agents' panes are closed", || {
        let (answer, answers) = channel();
        user.send(UserRequest::Check { panes: panes.clone(), answer }).unwrap();
        let remaining = answers.recv().unwrap();
        remaining.unwrap_or_else(|error| panic!("{error}\n{}", env.dump_state())).is_empty().then_some(())
    });
    ended
}

/// Spawns and ends agents until teamd has ended `wanted` of them. Adds their number to `ended`.
fn run_until_ended(env: &TestEnv, seed: u64, wanted: u64, ended: &mut u64) {
    // The pane of this member keeps the team's window open, like the user's first pane its window.
    env.teamctl(["spawn", "stays", "--", "sleep", "3600"]).expect_success();
    let mut rng = fastrand::Rng::with_seed(seed);
    let (user_requests, requests) = channel();
    std::thread::scope(|scope| {
        let user = SimulatedUser::attach(env, seed);
        scope.spawn(move || user.run(&requests));
        while *ended < wanted {
            *ended += spawn_and_end_batch(env, &mut rng, &user_requests);
        }
        drop(user_requests);
    });
}

/// How often tmux itself may crash. tmux 3.3a crashes about once in ten thousand ended agents.
const MAX_CRASHES: u64 = 2;

#[test]
#[allow(clippy::print_stderr, reason = "reports a crash of tmux itself")]
fn foreign_panes_survive_ending_agents() {
    let (wanted, mut ended, mut crashes) = (number_from_env("KILLS_UNDER_CHURN", 150), 0, 0);
    while ended < wanted {
        let env = TestEnv::with_team();
        let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
        let seed = number_from_env("SEED", 1) + crashes * 1_000_000;
        let result = catch_unwind(AssertUnwindSafe(|| run_until_ended(&env, seed, wanted, &mut ended)));
        match result {
            Ok(()) => env.shut_down(),
            Err(_) if start_time(server).is_none() && crashes < MAX_CRASHES => {
                crashes += 1;
                eprintln!("tmux itself has crashed, {crashes} times, after {ended} kills");
            }
            Err(panic) => resume_unwind(panic),
        }
    }
    record_result("guarded-kills", ended);
}
