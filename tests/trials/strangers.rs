//! Agents are ended by the hundred beside a person's own panes, which come, go, move and are started anew all the time,
//! bear forged marks and take agents' panes in: every agent's pane goes, and every other one stays with its process.
//!
//! `KILLS_UNDER_CHURN=n` says how many are ended by us (500 unless said); `SEED=n` chooses what is done when.

use harness::{House, figure, rounds, start_time};
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
const BETWEEN: Duration = Duration::from_millis(3);

/// A person at a tmux client of theirs.
struct Person<'a> {
    client: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    house: &'a House,
    rng: fastrand::Rng,
    /// Their panes, each with the process in it.
    own: BTreeMap<String, Process>,
    /// The first of them, which stays where it is, and its window with it. An agent's pane is moved nowhere else: up to
    /// tmux 3.6, a server with a control client crashes where two clients take the last two panes of a window out of it
    /// in one moment.
    first: String,
    asked: u64,
}

/// A process and when it started.
type Process = (u32, Option<u64>);

fn process(pid: &str) -> Process {
    let pid = pid.parse().unwrap();
    (pid, start_time(pid))
}

/// What the tests ask of them.
enum Ask {
    /// Do something to an agent's pane that makes it hard to tell.
    Disturb { pane: String },
    /// The agents have ended: which of their panes are still there, and are all others what they were?
    Check { panes: Vec<String>, answer: Sender<Result<Vec<String>, String>> },
}

impl<'a> Person<'a> {
    fn sits_down(house: &'a House, seed: u64) -> Person<'a> {
        let mut command = house.command("tmux");
        command.arg("-u").arg("-S").arg(house.tmux_socket()).args(["-C", "attach", "-t", "=user"]);
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (client.stdin.take().unwrap(), BufReader::new(client.stdout.take().unwrap()));
        let rng = fastrand::Rng::with_seed(seed);
        let first = house.tmux(["list-panes", "-t", "=user:", "-F", "#{pane_id}"]);
        let mut person = Person { client, stdin, stdout, house, rng, own: BTreeMap::new(), first, asked: 0 };
        person.starts_anew(&person.first.clone()).unwrap();
        while person.own.len() < PANES / 2 {
            person.opens("new-window -t =user:");
        }
        person
    }

    /// What it printed; what tmux refused is an error.
    fn ask(&mut self, command: &str) -> Result<Vec<String>, String> {
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
    fn any_of_theirs(&mut self) -> String {
        let others: Vec<&String> = self.own.keys().filter(|pane| **pane != self.first).collect();
        self.rng.choice(others).unwrap().clone()
    }

    fn opens(&mut self, how: &str) {
        // Where there is no space there is no pane.
        let Ok(said) = self.ask(&format!("{how} -d -P -F '#{{pane_id}} #{{pane_pid}}' -- cat -")) else {
            return;
        };
        let (pane, pid) = said[0].split_once(' ').unwrap();
        self.own.insert(pane.to_owned(), process(pid));
    }

    /// Whatever one does to panes of one's own.
    fn does_something(&mut self) {
        let (one, other) = (self.any_of_theirs(), self.any_of_theirs());
        match self.rng.u32(0..8) {
            0 if self.own.len() < PANES => self.opens(&format!("split-window -t {one}")),
            1 if self.own.len() < PANES => self.opens("new-window -t =user:"),
            2 if self.own.len() > PANES / 2 => {
                self.own.remove(&one);
                self.ask(&format!("kill-pane -t {one}")).unwrap();
            }
            3 => self.starts_anew(&one).unwrap(),
            4 => drop(self.ask(&format!("swap-pane -d -s {one} -t {other}"))),
            5 => drop(self.ask(&format!("join-pane -d -s {one} -t {other}"))),
            6 => drop(self.ask(&format!("break-pane -d -s {one}"))),
            _ => drop(self.ask(&format!("resize-pane -Z -t {one}"))),
        }
    }

    fn starts_anew(&mut self, pane: &str) -> Result<(), String> {
        let pid = format!("display-message -p -t {pane} '#{{pane_pid}}'");
        let said = self.ask(&format!("respawn-pane -k -t {pane} -- cat - ; {pid}"))?;
        self.own.insert(pane.to_owned(), process(&said[0]));
        Ok(())
    }

    /// An agent's pane among theirs, theirs with the agent's mark, or the agent's pane started anew: then it is theirs.
    /// Where it is gone already nothing comes of it.
    fn disturbs(&mut self, pane: &str) {
        let (one, first) = (self.any_of_theirs(), self.first.clone());
        match self.rng.u32(0..6) {
            0 => drop(self.ask(&format!("join-pane -d -s {pane} -t {first}"))),
            1 => drop(
                self.ask(&format!("swap-pane -d -s {pane} -t {first} ; swap-pane -d -s {pane} -t {first}")),
            ),
            2 => drop(self.ask(&format!("break-pane -d -s {pane}"))),
            3 => self.forges(pane, &one),
            4 => drop(self.starts_anew(pane)),
            _ => {}
        }
    }

    fn forges(&mut self, pane: &str, one: &str) {
        let marks = format!("display-message -p -t {pane} '#{{@teamd}} #{{@teamd_pid}}'");
        let marks = self.ask(&marks).unwrap_or_default().concat();
        let (mark, pid) = marks.split_once(' ').unwrap_or_default();
        let set = format!("set-option -p -t {one}");
        self.ask(&format!("{set} @teamd '{mark}' ; {set} @teamd_pid '{pid}'")).unwrap();
    }

    fn checks(&mut self, agents: &[String]) -> Result<Vec<String>, String> {
        let rows = self.ask("list-panes -a -F '#{pane_id} #{pane_pid} #{pane_dead}'").unwrap();
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
    fn sits(mut self, asks: &Receiver<Ask>) {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        loop {
            match asks.recv_timeout(BETWEEN) {
                Ok(Ask::Disturb { pane }) => self.disturbs(&pane),
                Ok(Ask::Check { panes, answer }) => answer.send(self.checks(&panes)).unwrap(),
                Err(Timeout) => self.does_something(),
                Err(Disconnected) => break,
            }
        }
        let others: Vec<String> = self.own.keys().filter(|pane| **pane != self.first).cloned().collect();
        others.iter().for_each(|pane| drop(self.ask(&format!("kill-pane -t {pane}")).unwrap()));
        drop(self.stdin);
        self.client.wait().unwrap();
        self.house.tmux(["has-session", "-t", "=user"]);
    }
}

/// How one agent is brought to its end.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Kill,
    Shutdown,
    /// A signal to the agent.
    Signal,
}

/// Spawns some at once, has their panes disturbed, ends them in three ways at once, and has all panes looked at. How many
/// were asked to end, so that their panes were ours to close.
fn some_come_and_go(house: &House, rng: &mut fastrand::Rng, person: &Sender<Ask>) -> u64 {
    let names: Vec<String> = (0..AT_ONCE).map(|n| format!("a{n}")).collect();
    let spawning =
        names.iter().map(|name| house.teamctl_running(["--json", "spawn", name, "--", "sleep", "3600"]));
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
    let ways: Vec<Way> = panes
        .iter()
        .map(|_| *rng.choice(&[Way::Kill, Way::Kill, Way::Shutdown, Way::Signal]).unwrap())
        .collect();
    for (pane, _) in &panes {
        person.send(Ask::Disturb { pane: pane.clone() }).unwrap();
    }
    for ((_, pid), _) in panes.iter().zip(&ways).filter(|(_, way)| **way == Way::Signal) {
        // It may have gone with its pane meanwhile.
        drop(Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status());
    }
    let ending = names.iter().zip(&ways).filter_map(|(name, way)| match way {
        Way::Kill => Some(house.teamctl_running(["kill", name])),
        Way::Shutdown => Some(house.teamctl_running(["shutdown", name, "--grace", "1ms", "--force"])),
        Way::Signal => None,
    });
    let mut closed = 0;
    for child in ending.collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        // Whose pane was started anew has ended by itself, and there may be nobody of that name any more.
        assert!([0, 67].contains(&output.status.code().unwrap()), "{output:?}");
        closed += u64::from(output.status.success());
    }
    house.until("all have ended", || {
        let status = house.json(["status"]);
        (status["teams"][0]["members"].as_array()?.len() == 2).then_some(())
    });
    let panes: Vec<String> = panes.into_iter().map(|(pane, _)| pane).collect();
    // Whoever has ended by itself is off the team by then, and its pane about to go.
    house.until("the agents' panes are gone", || {
        let (answer, answered) = channel();
        person.send(Ask::Check { panes: panes.clone(), answer }).unwrap();
        let there = answered.recv().unwrap();
        there.unwrap_or_else(|error| panic!("{error}\n{}", house.portrait())).is_empty().then_some(())
    });
    closed
}

/// Agents come and go in this house until so many have been ended.
fn until_ended(house: &House, seed: u64, wanted: u64, closed: &mut u64) {
    // Its pane holds the team's window, as the person's first one holds theirs.
    house.teamctl(["spawn", "stays", "--", "sleep", "3600"]).ok();
    let mut rng = fastrand::Rng::with_seed(seed);
    let (person, asks) = channel();
    std::thread::scope(|scope| {
        let sitting = Person::sits_down(house, seed);
        scope.spawn(move || sitting.sits(&asks));
        while *closed < wanted {
            *closed += some_come_and_go(house, &mut rng, &person);
        }
        drop(person);
    });
}

/// How often tmux itself may crash: 3.3a does by itself, about once in ten thousand of these.
const CRASHES: u64 = 2;

#[test]
#[allow(clippy::print_stderr, reason = "a crash of tmux itself is told")]
fn no_other_pane_is_harmed_however_many_agents_end_beside_it() {
    let (wanted, mut closed, mut crashed) = (rounds("KILLS_UNDER_CHURN", 500), 0, 0);
    while closed < wanted {
        let house = House::with_team();
        let server: u32 = house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
        let seed = rounds("SEED", 1) + crashed * 1_000_000;
        let lived = catch_unwind(AssertUnwindSafe(|| until_ended(&house, seed, wanted, &mut closed)));
        match lived {
            Ok(()) => house.end(),
            Err(_) if start_time(server).is_none() && crashed < CRASHES => {
                crashed += 1;
                eprintln!("tmux itself has crashed, {crashed} times, after {closed} kills");
            }
            Err(failure) => resume_unwind(failure),
        }
    }
    figure("guarded-kills", closed);
}
