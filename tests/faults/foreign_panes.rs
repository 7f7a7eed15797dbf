//! Agents are ended by the hundred beside a person's own panes, which come, go, move and are started anew all the time,
//! bear forged marks and take agents' panes in: every agent's pane goes, and every other one stays with its process.
//!
//! `KILLS_UNDER_CHURN=n` says how many are ended by us (500 unless said); `SEED=n` chooses what is done when.

use harness::{TestEnv, iterations, record_result, start_time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// As many of their own does a person have at most.
const PANES: usize = 12;
const AT_ONCE: usize = 6;
/// Between two things that the person does.
const ACTION_INTERVAL: Duration = Duration::from_millis(3);

/// A person at a tmux client of theirs.
struct SimulatedUser<'a> {
    client: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    env: &'a TestEnv,
    rng: fastrand::Rng,
    /// Their panes, each with the process in it.
    own: BTreeMap<String, UserProcess>,
    /// The first of them, which stays where it is, and its window with it. An agent's pane is moved nowhere else: up to
    /// tmux 3.6, a server with a control client crashes where two clients take the last two panes of a window out of it
    /// in one moment.
    first: String,
    asked: u64,
}

/// A process and when it started.
type UserProcess = (u32, Option<u64>);

fn user_process(pid: &str) -> UserProcess {
    let pid = pid.parse().unwrap();
    (pid, start_time(pid))
}

/// What the tests ask of them.
enum UserRequest {
    /// Do something to an agent's pane that makes it hard to tell.
    Disturb { pane: String },
    /// The agents have ended: which of their panes are still there, and are all others what they were?
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
        let mut person =
            SimulatedUser { client, stdin, stdout, env, rng, own: BTreeMap::new(), first, asked: 0 };
        person.respawn_pane(&person.first.clone()).unwrap();
        while person.own.len() < PANES / 2 {
            person.open_pane("new-window -t =user:");
        }
        person
    }

    /// What it printed; what tmux refused is an error.
    fn run_tmux(&mut self, command: &str) -> Result<Vec<String>, String> {
        self.asked += 1;
        let word = format!("said-{}", self.asked);
        writeln!(self.stdin, "{command}\ndisplay-message -p {word}").unwrap();
        let (mut said, mut failed) = (Vec::new(), false);
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server is gone: {command}");
            let line = line.trim_end();
            if line == word {
                break;
            }
            failed |= line.starts_with("%error");
            if !line.starts_with('%') || line[1..].starts_with(|c: char| c.is_ascii_digit()) {
                said.push(line.to_owned());
            }
        }
        if failed { Err(said.concat()) } else { Ok(said) }
    }

    /// Any but the first.
    fn random_own_pane(&mut self) -> String {
        let others: Vec<&String> = self.own.keys().filter(|pane| **pane != self.first).collect();
        self.rng.choice(others).unwrap().clone()
    }

    fn open_pane(&mut self, how: &str) {
        // Where there is no space there is no pane.
        let Ok(said) = self.run_tmux(&format!("{how} -d -P -F '#{{pane_id}} #{{pane_pid}}' -- cat -")) else {
            return;
        };
        let (pane, pid) = said[0].split_once(' ').unwrap();
        self.own.insert(pane.to_owned(), user_process(pid));
    }

    /// Whatever one does to panes of one's own.
    fn act(&mut self) {
        let (one, other) = (self.random_own_pane(), self.random_own_pane());
        match self.rng.u32(0..8) {
            0 if self.own.len() < PANES => self.open_pane(&format!("split-window -t {one}")),
            1 if self.own.len() < PANES => self.open_pane("new-window -t =user:"),
            2 if self.own.len() > PANES / 2 => {
                self.own.remove(&one);
                self.run_tmux(&format!("kill-pane -t {one}")).unwrap();
            }
            3 => self.respawn_pane(&one).unwrap(),
            4 => drop(self.run_tmux(&format!("swap-pane -d -s {one} -t {other}"))),
            5 => drop(self.run_tmux(&format!("join-pane -d -s {one} -t {other}"))),
            6 => drop(self.run_tmux(&format!("break-pane -d -s {one}"))),
            _ => drop(self.run_tmux(&format!("resize-pane -Z -t {one}"))),
        }
    }

    fn respawn_pane(&mut self, pane: &str) -> Result<(), String> {
        let pid = format!("display-message -p -t {pane} '#{{pane_pid}}'");
        let said = self.run_tmux(&format!("respawn-pane -k -t {pane} -- cat - ; {pid}"))?;
        self.own.insert(pane.to_owned(), user_process(&said[0]));
        Ok(())
    }

    /// An agent's pane among theirs, theirs with the agent's mark, or the agent's pane started anew: then it is theirs.
    /// Where it is gone already nothing comes of it.
    fn disturb_agent_pane(&mut self, pane: &str) {
        let (one, first) = (self.random_own_pane(), self.first.clone());
        match self.rng.u32(0..6) {
            0 => drop(self.run_tmux(&format!("join-pane -d -s {pane} -t {first}"))),
            1 => {
                drop(self.run_tmux(&format!(
                    "swap-pane -d -s {pane} -t {first} ; swap-pane -d -s {pane} -t {first}"
                )));
            }
            2 => drop(self.run_tmux(&format!("break-pane -d -s {pane}"))),
            3 => self.forge_tag(pane, &one),
            4 => drop(self.respawn_pane(pane)),
            _ => {}
        }
    }

    fn forge_tag(&mut self, pane: &str, one: &str) {
        let marks = format!("display-message -p -t {pane} '#{{@teamd_spawn}} #{{@teamd_pane_pid}}'");
        let marks = self.run_tmux(&marks).unwrap_or_default().concat();
        let (mark, pid) = marks.split_once(' ').unwrap_or_default();
        let set = format!("set-option -p -t {one}");
        self.run_tmux(&format!("{set} @teamd_spawn '{mark}' ; {set} @teamd_pane_pid '{pid}'")).unwrap();
    }

    fn check_panes(&mut self, agents: &[String]) -> Result<Vec<String>, String> {
        let rows = self.run_tmux("list-panes -a -F '#{pane_id} #{pane_pid} #{pane_dead}'").unwrap();
        for (pane, (pid, started)) in &self.own {
            if !rows.contains(&format!("{pane} {pid} 0")) || start_time(*pid) != *started {
                return Err(format!("{pane} with {pid} is not what it was: {rows:?}"));
            }
        }
        let is_there = |pane: &&String| rows.iter().any(|row| row.starts_with(&format!("{pane} ")));
        let theirs = agents.iter().filter(|pane| !self.own.contains_key(*pane));
        Ok(theirs.filter(is_there).cloned().collect())
    }

    /// Until nobody asks any more.
    fn run(mut self, asks: &Receiver<UserRequest>) {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        loop {
            match asks.recv_timeout(ACTION_INTERVAL) {
                Ok(UserRequest::Disturb { pane }) => self.disturb_agent_pane(&pane),
                Ok(UserRequest::Check { panes, answer }) => answer.send(self.check_panes(&panes)).unwrap(),
                Err(Timeout) => self.act(),
                Err(Disconnected) => break,
            }
        }
        let others: Vec<String> = self.own.keys().filter(|pane| **pane != self.first).cloned().collect();
        others.iter().for_each(|pane| drop(self.run_tmux(&format!("kill-pane -t {pane}")).unwrap()));
        drop(self.stdin);
        self.client.wait().unwrap();
        self.env.tmux(["has-session", "-t", "=user"]);
    }
}

/// How one agent is brought to its end.
#[derive(Clone, Copy, PartialEq)]
enum EndMethod {
    Kill,
    Shutdown,
    /// A signal to the agent.
    Signal,
}

/// Spawns some at once, has their panes disturbed, ends them in three ways at once, and has all panes looked at. How many
/// were asked to end, so that their panes were ours to close.
fn spawn_and_end_batch(env: &TestEnv, rng: &mut fastrand::Rng, person: &Sender<UserRequest>) -> u64 {
    let names: Vec<String> = (0..AT_ONCE).map(|n| format!("a{n}")).collect();
    let spawning =
        names.iter().map(|name| env.start_teamctl(["--json", "spawn", name, "--", "sleep", "3600"]));
    let panes: Vec<(String, Value)> = spawning
        .collect::<Vec<_>>()
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            let spawned: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
            (spawned["pane"].as_str().unwrap().to_owned(), spawned["pid"].clone())
        })
        .collect();
    let ways: Vec<EndMethod> = panes
        .iter()
        .map(|_| {
            *rng.choice(&[EndMethod::Kill, EndMethod::Kill, EndMethod::Shutdown, EndMethod::Signal]).unwrap()
        })
        .collect();
    for (pane, _) in &panes {
        person.send(UserRequest::Disturb { pane: pane.clone() }).unwrap();
    }
    for ((_, pid), _) in panes.iter().zip(&ways).filter(|(_, way)| **way == EndMethod::Signal) {
        // It may have gone with its pane meanwhile.
        drop(Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status());
    }
    let ending = names.iter().zip(&ways).filter_map(|(name, way)| match way {
        EndMethod::Kill => Some(env.start_teamctl(["kill", name])),
        EndMethod::Shutdown => Some(env.start_teamctl(["shutdown", name, "--grace", "1ms", "--force"])),
        EndMethod::Signal => None,
    });
    let mut closed = 0;
    for child in ending.collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        // Whose pane was started anew has ended by itself, and there may be nobody of that name any more.
        assert!([0, 67].contains(&output.status.code().unwrap()), "{output:?}");
        closed += u64::from(output.status.success());
    }
    env.wait_until("all have ended", || {
        let status = env.json(["status"]);
        (status["teams"][0]["members"].as_array()?.len() == 2).then_some(())
    });
    let panes: Vec<String> = panes.into_iter().map(|(pane, _)| pane).collect();
    // Whoever has ended by itself is off the team by then, and its pane about to go.
    env.wait_until("the agents' panes are gone", || {
        let (answer, answered) = channel();
        person.send(UserRequest::Check { panes: panes.clone(), answer }).unwrap();
        let there = answered.recv().unwrap();
        there.unwrap_or_else(|error| panic!("{error}\n{}", env.dump_state())).is_empty().then_some(())
    });
    closed
}

/// Agents come and go in this environment until so many have been ended.
fn run_until_ended(env: &TestEnv, seed: u64, wanted: u64, closed: &mut u64) {
    // Its pane holds the team's window, as the person's first one holds theirs.
    env.teamctl(["spawn", "stays", "--", "sleep", "3600"]).expect_success();
    let mut rng = fastrand::Rng::with_seed(seed);
    let (person, asks) = channel();
    std::thread::scope(|scope| {
        let sitting = SimulatedUser::attach(env, seed);
        scope.spawn(move || sitting.run(&asks));
        while *closed < wanted {
            *closed += spawn_and_end_batch(env, &mut rng, &person);
        }
        drop(person);
    });
}

/// How often tmux itself may crash: 3.3a does by itself, about once in ten thousand of these.
const CRASHES: u64 = 2;

#[test]
#[allow(clippy::print_stderr, reason = "a crash of tmux itself is told")]
fn foreign_panes_survive_ending_agents() {
    let (wanted, mut closed, mut crashed) = (iterations("KILLS_UNDER_CHURN", 500), 0, 0);
    while closed < wanted {
        let env = TestEnv::with_team();
        let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
        let seed = iterations("SEED", 1) + crashed * 1_000_000;
        let lived = catch_unwind(AssertUnwindSafe(|| run_until_ended(&env, seed, wanted, &mut closed)));
        match lived {
            Ok(()) => env.shut_down(),
            Err(_) if start_time(server).is_none() && crashed < CRASHES => {
                crashed += 1;
                eprintln!("tmux itself has crashed, {crashed} times, after {closed} kills");
            }
            Err(failure) => resume_unwind(failure),
        }
    }
    record_result("guarded-kills", closed);
}
