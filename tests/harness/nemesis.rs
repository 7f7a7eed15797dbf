//! Whoever means ill: kills and stops the processes of a house, ends its tmux server and puts strangers in its place. What
//! it does is chosen by a seed and told as it is done, so that a trial that failed can be had again.

use crate::audit::{Processes, start_time};
use crate::pause;
use crate::{FEW_WATCHES, House, can_limit_watches};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Whose process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// teamd, whichever way it was started.
    Daemon,
    /// The first process of some agent.
    Join,
    /// Some agent itself.
    Agent,
    /// The tmux server; the next one has strangers' panes under the numbers that ours had.
    Tmux,
}

/// What became of a call that was to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Killed,
    /// It had ended before, with 0 or another code.
    Done,
    Refused,
}

/// See the head of this file. Agents are scripted ones that `stay`, and their team is `survey`.
pub struct Nemesis<'h> {
    house: &'h House,
    /// Everything by chance is asked of this.
    pub rng: fastrand::Rng,
    began: Instant,
    /// Daemons that were started without a pane.
    daemons: Vec<Child>,
    /// The first processes of panes that are none of ours.
    strangers: Vec<u32>,
    clock: Option<PathBuf>,
    /// Of the next one.
    has_pane: bool,
    /// The next one can watch next to nothing.
    has_watches: bool,
    /// This one is in a user namespace of its own, and sees nothing of the processes outside but that they are there.
    is_inside: bool,
}

/// To the first three it ends in order, of the others at once.
const TELLING: [Signal; 5] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1];

/// The library that gives a process a clock of its own.
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

impl<'h> Nemesis<'h> {
    /// Counts the panes that are there as strangers' unless they are teamd's.
    pub fn of(house: &'h House, seed: u64) -> Nemesis<'h> {
        let rng = fastrand::Rng::with_seed(seed);
        let mut nemesis = Nemesis {
            house,
            rng,
            began: Instant::now(),
            daemons: Vec::new(),
            strangers: Vec::new(),
            clock: None,
            has_pane: false,
            has_watches: true,
            is_inside: false,
        };
        nemesis.tell(&format!("SEED={seed}"));
        nemesis.strangers = nemesis.panes("user");
        nemesis
    }

    /// The schedule, line by line: shown where a test fails, or with `--nocapture`.
    #[allow(clippy::print_stderr, reason = "a test's own output")]
    pub fn tell(&self, what: &str) {
        let what: String = what.chars().take(150).collect();
        eprintln!("{:9.3} s  {what}", self.began.elapsed().as_secs_f64());
    }

    /// kill -9 to one of them, by chance; what it was, none where there is none.
    pub fn kill(&mut self, whom: Whom) -> Option<String> {
        match whom {
            Whom::Tmux => return Some(self.tmux_anew()),
            // What it leaves is known by its environment.
            Whom::Join if self.is_inside => return None,
            _ => {}
        }
        let victim = self.find(whom)?;
        self.tell(&format!("kill -9 {victim}"));
        signal(pid_of(&victim), Signal::KILL);
        Some(victim)
    }

    /// The daemon has one of the signals that end it, by chance, and does so; what it was.
    ///
    /// # Panics
    /// Where it has not after 30 s.
    pub fn tell_to_end(&mut self) -> Option<String> {
        let victim = self.find(Whom::Daemon)?;
        let process = Processes::one(pid_of(&victim));
        let is_heard = |telling: &Signal| !ignores(pid_of(&victim), *telling);
        let telling: Vec<Signal> = TELLING.into_iter().filter(is_heard).collect();
        let telling = telling[self.rng.usize(0..telling.len())];
        self.tell(&format!("{telling:?} to {victim}"));
        signal(pid_of(&victim), telling);
        assert!(process.ended_within(Duration::from_secs(30)), "{victim} goes on\n{}", self.house.portrait());
        Some(victim)
    }

    /// Stopped for so long, then it goes on; what it was.
    pub fn stop(&mut self, whom: Whom, span: Duration) -> Option<String> {
        let victim = self.find(whom)?;
        self.tell(&format!("stop for {span:.0?} {victim}"));
        signal(pid_of(&victim), Signal::STOP);
        pause(span);
        signal(pid_of(&victim), Signal::CONT);
        Some(victim)
    }

    /// From now on the wall clock of daemons without a pane is ours to set. False where libfaketime is not installed.
    pub fn take_clock(&mut self) -> bool {
        self.clock = faketime();
        self.set_clock(0);
        self.clock.is_some()
    }

    /// Their wall clock jumps to so many seconds from the true time; the one for deadlines goes on. False where no such
    /// daemon lives.
    pub fn set_clock(&mut self, seconds: i64) -> bool {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if self.clock.is_some() {
            self.tell(&format!("the clock jumps to {seconds:+} s"));
            self.house.put("out/clock", format!("{seconds:+}"));
        }
        self.clock.is_some() && !self.daemons.is_empty()
    }

    /// The daemon is killed, and the one after it can watch next to nothing; what it was. None where there is no user
    /// namespace for us.
    pub fn blind(&mut self) -> Option<String> {
        if !can_limit_watches() {
            return None;
        }
        (self.has_watches, self.has_pane) = (false, false);
        self.kill(Whom::Daemon)
    }

    /// For so long the daemon gets no further descriptor. False where there is none.
    pub fn starve(&mut self, span: Duration) -> bool {
        self.starved(span).is_some()
    }

    fn starved(&mut self, span: Duration) -> Option<()> {
        let victim = self.find(Whom::Daemon)?;
        let pid = Pid::from_raw(i32::try_from(pid_of(&victim)).expect("a pid"));
        let vitals = crate::Vitals::of(pid_of(&victim))?;
        self.tell(&format!("no descriptors beyond {} for {span:.0?} {victim}", vitals.descriptors));
        let few = Rlimit { current: Some(vitals.descriptors), maximum: hard(pid) };
        let before = prlimit(pid, Resource::Nofile, few).ok()?;
        pause(span);
        // It may be dead by now.
        prlimit(pid, Resource::Nofile, before).ok();
        Some(())
    }

    /// A call is begun, and killed somewhere in it, if it has not come to its end before.
    pub fn call_killed(&mut self, words: &[&str]) -> Call {
        let mut call = self.house.command(crate::programs().join("teamctl"));
        let mut call =
            call.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let span = Duration::from_micros(self.rng.u64(0..15_000));
        pause(span);
        call.kill().expect("it is ours");
        let status = call.wait().expect("it is ours");
        self.tell(&format!("kill -9 after {span:.1?} teamctl {}: {status}", words.join(" ")));
        match status.code() {
            None => Call::Killed,
            Some(0) => Call::Done,
            Some(_) => Call::Refused,
        }
    }

    /// A daemon, where there is none: every other one without a pane, the rest by `up` in one.
    pub fn revive(&mut self) {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if self.house.teamctl(["status"]).code != 69 {
            return;
        }
        let has_pane = self.has_pane;
        (self.has_pane, self.is_inside) = (!has_pane, !self.has_watches);
        if has_pane {
            return self.house.start_daemon();
        }
        let has_watches = std::mem::replace(&mut self.has_watches, true);
        let mut daemon = if has_watches { self.house.teamd() } else { self.house.teamd_limited(FEW_WATCHES) };
        if let Some(library) = &self.clock {
            daemon.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.house.path("out/clock"));
            let settings = ["FAKETIME_NO_CACHE", "DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"];
            daemon.envs(settings.map(|setting| (setting, "1")));
        }
        daemon.stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(daemon.spawn().expect("teamd starts"));
        self.house.until_answered();
    }

    /// Waits until the team is whole: who is on it by its file is who runs by `status` is who lives, and nobody else
    /// does; the same again for the panes. Their names.
    ///
    /// # Panics
    /// Where that does not come to be, and where a stranger's pane is gone.
    pub fn whole(&self) -> BTreeSet<String> {
        let mut last = String::new();
        let what = "the team is whole: config.json, status, processes";
        let house = self.house;
        let names = house.until(what, || {
            let (config, running) = (on_file(house)?, running(house)?);
            let [agents, joins] = [Whom::Agent, Whom::Join].map(|whom| pids(house, whom));
            let now =
                format!("config.json {config:?}, running {running:?}, agents {agents:?}, joins {joins:?}");
            if now != last {
                self.tell(&now);
                last = now;
            }
            // The pid of a member that is run by its first process is that one's.
            let known: BTreeSet<u32> = running.iter().map(|(_, pid)| *pid).collect();
            let alive = known.iter().all(|pid| agents.contains(pid) || joins.contains(pid));
            let joined = joins.len() == running.len();
            let names: BTreeSet<String> = running.into_iter().map(|(name, _)| name).collect();
            (config == names && alive && joined && agents.is_subset(&known)).then_some(names)
        });
        self.strangers_live();
        names
    }

    /// # Panics
    /// Where one of them is gone.
    pub fn strangers_live(&self) {
        let gone = self.strangers.iter().find(|pid| start_time(**pid).is_none());
        assert!(gone.is_none(), "a stranger was touched: {gone:?}\n{}", self.house.portrait());
    }

    /// The daemons that have no pane: to be waited for when the house has ended.
    pub fn end(self) -> Vec<Child> {
        self.daemons
    }

    fn find(&mut self, whom: Whom) -> Option<String> {
        let all = self.house.those(whom);
        (!all.is_empty()).then(|| all[self.rng.usize(0..all.len())].clone())
    }

    /// The first processes of a session's panes.
    fn panes(&self, session: &str) -> Vec<u32> {
        let target = format!("={session}");
        let told = self.house.tmux(["list-panes", "-s", "-t", &target, "-F", "#{@teamd_name}:#{pane_pid}"]);
        told.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect()
    }

    fn tmux_anew(&mut self) -> String {
        let house = self.house;
        let ids = house.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
        let last = ids.lines().filter_map(|id| id[1..].parse::<u32>().ok()).max().unwrap_or(0);
        let server: u32 = house.tmux(["display-message", "-p", "#{pid}"]).parse().expect("a pid");
        self.tell(&format!("kill -9 {server} tmux, with panes up to %{last}"));
        let was = Processes::one(server);
        was.kill();
        assert!(was.ended_within(Duration::from_secs(10)), "a killed server ends");
        self.strangers_come(last.min(40));
        format!("{server} tmux")
    }

    /// A server at the same address, whose panes up to this number are others'.
    fn strangers_come(&mut self, last: u32) {
        let first = ["new-session", "-d", "-s", "user", "-x", "200", "-y", "50", "--", "cat", "-"];
        let mut words: Vec<&str> = first.into();
        (0..last).for_each(|_| words.extend([";", "new-window", "-d", "-t", "=user:", "--", "cat", "-"]));
        let house = self.house;
        house.until("the next server is there", || (house.tmux_ran(&words).code == 0).then_some(()));
        self.strangers = self.panes("user");
    }
}

impl House {
    /// Pid and command line of each that lives.
    pub fn those(&self, whom: Whom) -> Vec<String> {
        let is_one = |line: &String| {
            let (_, command) = line.split_once(' ').unwrap_or_default();
            match whom {
                Whom::Daemon => command.split(' ').next().is_some_and(|program| program.ends_with("/teamd")),
                Whom::Join => command.contains("/teamd-pane join "),
                Whom::Agent => command.ends_with("/agent stay"),
                Whom::Tmux => false,
            }
        };
        Processes::marked(&self.mark()).list().into_iter().filter(is_one).collect()
    }

    /// teamd's pid as the process table has it: it need not answer.
    pub fn daemon_process(&self) -> Option<u32> {
        self.those(Whom::Daemon).first().map(|line| pid_of(line))
    }
}

/// Where it is installed.
fn faketime() -> Option<PathBuf> {
    let directories = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut paths = directories.map(|directory| directory.path().join(FAKETIME));
    paths.find(|path| path.is_file())
}

/// The limit that a process can't raise.
fn hard(pid: Option<Pid>) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", Pid::as_raw(pid))).ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

fn pids(house: &House, whom: Whom) -> BTreeSet<u32> {
    house.those(whom).iter().map(|line| pid_of(line)).collect()
}

/// Everybody but the lead; none while the file is being written by someone who does not do it whole.
fn on_file(house: &House) -> Option<BTreeSet<String>> {
    let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).ok()?;
    let names = config["members"].as_array()?.iter().filter_map(|member| member["name"].as_str());
    Some(names.filter(|name| *name != "team-lead").map(str::to_owned).collect())
}

/// Name and pid of all members, where all of them run and their daemon answers.
fn running(house: &House) -> Option<Vec<(String, u32)>> {
    let status = house.teamctl(["--json", "status"]);
    let status = (status.code == 0).then(|| status.json())?;
    let members = status["teams"][0]["members"].as_array()?.iter();
    let members = members.filter(|member| member["phase"] != "lead").map(|member| {
        let pid = (member["phase"] == "running").then(|| member["pid"].as_u64()).flatten()?;
        Some((member["name"].as_str()?.to_owned(), u32::try_from(pid).ok()?))
    });
    members.collect()
}

fn pid_of(line: &str) -> u32 {
    line.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a line begins with its pid")
}

/// A shell without job control starts what it puts into the background with some signals ignored, and all below it inherit
/// that: those for which it has no handler of its own do nothing then.
fn ignores(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
}

/// One that has ended by itself meanwhile needs none.
fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).ok();
}
