//! Whoever means ill: kills and stops the processes of an environment, ends its tmux server and puts strangers in its place. What
//! it does is chosen by a seed and told as it is done, so that a trial that failed can be had again.

use crate::processes::{TaggedProcesses, start_time};
use crate::sleep;
use crate::{TWO_WATCHES, TestEnv, can_limit_watches};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Whose process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTarget {
    /// teamd, whichever way it was started.
    Daemon,
    /// The first process of some agent.
    Shim,
    /// Some agent itself.
    Agent,
    /// The tmux server; the next one has strangers' panes under the numbers that ours had.
    Tmux,
}

/// What became of a call that was to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptedCall {
    Killed,
    /// It had ended before, with 0 or another code.
    Succeeded,
    Failed,
}

/// See the head of this file. Agents are scripted ones that `stay`, and their team is `survey`.
pub struct FaultInjector<'h> {
    env: &'h TestEnv,
    /// Everything by chance is asked of this.
    pub rng: fastrand::Rng,
    started: Instant,
    /// Daemons that were started without a pane.
    daemons: Vec<Child>,
    /// The first processes of panes that are none of ours.
    foreign_panes: Vec<u32>,
    clock: Option<PathBuf>,
    /// Of the next one.
    has_pane: bool,
    /// The next one can watch next to nothing.
    has_watches: bool,
    /// This one is in a user namespace of its own, and sees nothing of the processes outside but that they are there.
    is_inside: bool,
}

/// To the first three it ends in order, of the others at once.
const STOP_SIGNALS: [Signal; 5] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1];

/// The library that gives a process a clock of its own.
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

impl<'h> FaultInjector<'h> {
    /// Counts the panes that are there as strangers' unless they are teamd's.
    pub fn new(env: &'h TestEnv, seed: u64) -> FaultInjector<'h> {
        let rng = fastrand::Rng::with_seed(seed);
        let mut nemesis = FaultInjector {
            env,
            rng,
            started: Instant::now(),
            daemons: Vec::new(),
            foreign_panes: Vec::new(),
            clock: None,
            has_pane: false,
            has_watches: true,
            is_inside: false,
        };
        nemesis.log(&format!("SEED={seed}"));
        nemesis.foreign_panes = nemesis.panes("user");
        nemesis
    }

    /// The schedule, line by line: shown where a test fails, or with `--nocapture`.
    #[allow(clippy::print_stderr, reason = "a test's own output")]
    pub fn log(&self, what: &str) {
        let what: String = what.chars().take(150).collect();
        eprintln!("{:9.3} s  {what}", self.started.elapsed().as_secs_f64());
    }

    /// kill -9 to one of them, by chance; what it was, none where there is none.
    pub fn kill(&mut self, whom: FaultTarget) -> Option<String> {
        match whom {
            FaultTarget::Tmux => return Some(self.replace_tmux_server()),
            // What it leaves is known by its environment.
            FaultTarget::Shim if self.is_inside => return None,
            _ => {}
        }
        let victim = self.find(whom)?;
        self.log(&format!("kill -9 {victim}"));
        signal(pid_of(&victim), Signal::KILL);
        Some(victim)
    }

    /// The daemon has one of the signals that end it, by chance, and does so; what it was.
    ///
    /// # Panics
    /// Where it has not after 30 s.
    pub fn signal_daemon(&mut self) -> Option<String> {
        let victim = self.find(FaultTarget::Daemon)?;
        let process = TaggedProcesses::single(pid_of(&victim));
        let is_heard = |telling: &Signal| !ignores(pid_of(&victim), *telling);
        let telling: Vec<Signal> = STOP_SIGNALS.into_iter().filter(is_heard).collect();
        let telling = telling[self.rng.usize(0..telling.len())];
        self.log(&format!("{telling:?} to {victim}"));
        signal(pid_of(&victim), telling);
        assert!(process.exit_within(Duration::from_secs(30)), "{victim} goes on\n{}", self.env.dump_state());
        Some(victim)
    }

    /// Stopped for so long, then it goes on; what it was.
    pub fn stop(&mut self, whom: FaultTarget, span: Duration) -> Option<String> {
        let victim = self.find(whom)?;
        self.log(&format!("stop for {span:.0?} {victim}"));
        signal(pid_of(&victim), Signal::STOP);
        sleep(span);
        signal(pid_of(&victim), Signal::CONT);
        Some(victim)
    }

    /// From now on the wall clock of daemons without a pane is ours to set. False where libfaketime is not installed.
    pub fn enable_clock_control(&mut self) -> bool {
        self.clock = faketime();
        self.set_clock(0);
        self.clock.is_some()
    }

    /// Their wall clock jumps to so many seconds from the true time; the one for deadlines goes on. False where no such
    /// daemon lives.
    pub fn set_clock(&mut self, seconds: i64) -> bool {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if self.clock.is_some() {
            self.log(&format!("the clock jumps to {seconds:+} s"));
            self.env.write_file("out/clock", format!("{seconds:+}"));
        }
        self.clock.is_some() && !self.daemons.is_empty()
    }

    /// The daemon is killed, and the one after it can watch next to nothing; what it was. None where there is no user
    /// namespace for us.
    pub fn restart_without_watches(&mut self) -> Option<String> {
        if !can_limit_watches() {
            return None;
        }
        (self.has_watches, self.has_pane) = (false, false);
        self.kill(FaultTarget::Daemon)
    }

    /// For so long the daemon gets no further descriptor. False where there is none.
    pub fn limit_descriptors(&mut self, span: Duration) -> bool {
        self.try_limit_descriptors(span).is_some()
    }

    fn try_limit_descriptors(&mut self, span: Duration) -> Option<()> {
        let victim = self.find(FaultTarget::Daemon)?;
        let pid = Pid::from_raw(i32::try_from(pid_of(&victim)).expect("a pid"));
        let vitals = crate::ProcessStats::read(pid_of(&victim))?;
        self.log(&format!("no descriptors beyond {} for {span:.0?} {victim}", vitals.descriptors));
        let few = Rlimit { current: Some(vitals.descriptors), maximum: hard_limit(pid) };
        let before = prlimit(pid, Resource::Nofile, few).ok()?;
        sleep(span);
        // It may be dead by now.
        prlimit(pid, Resource::Nofile, before).ok();
        Some(())
    }

    /// A call is begun, and killed somewhere in it, if it has not come to its end before.
    pub fn run_and_kill(&mut self, words: &[&str]) -> InterruptedCall {
        let mut call = self.env.command(crate::programs().join("teamctl"));
        let mut call =
            call.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let span = Duration::from_micros(self.rng.u64(0..15_000));
        sleep(span);
        call.kill().expect("it is ours");
        let status = call.wait().expect("it is ours");
        self.log(&format!("kill -9 after {span:.1?} teamctl {}: {status}", words.join(" ")));
        match status.code() {
            None => InterruptedCall::Killed,
            Some(0) => InterruptedCall::Succeeded,
            Some(_) => InterruptedCall::Failed,
        }
    }

    /// A daemon, where there is none: every other one without a pane, the rest by `up` in one.
    pub fn ensure_daemon(&mut self) {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if self.env.teamctl(["status"]).code != 69 {
            return;
        }
        let has_pane = self.has_pane;
        (self.has_pane, self.is_inside) = (!has_pane, !self.has_watches);
        if has_pane {
            return self.env.start_daemon();
        }
        let has_watches = std::mem::replace(&mut self.has_watches, true);
        let mut daemon = if has_watches {
            self.env.daemon_command()
        } else {
            self.env.daemon_command_with_limit(TWO_WATCHES)
        };
        if let Some(library) = &self.clock {
            daemon.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.env.path("out/clock"));
            let settings = ["FAKETIME_NO_CACHE", "DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"];
            daemon.envs(settings.map(|setting| (setting, "1")));
        }
        daemon.stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(daemon.spawn().expect("teamd starts"));
        self.env.wait_for_daemon();
    }

    /// Waits until the team is whole: who is on it by its file is who runs by `status` is who lives, and nobody else
    /// does; the same again for the panes. Their names.
    ///
    /// # Panics
    /// Where that does not come to be, and where a stranger's pane is gone.
    pub fn wait_until_consistent(&self) -> BTreeSet<String> {
        let mut last = String::new();
        let what = "the team is whole: config.json, status, processes";
        let env = self.env;
        let names = env.wait_until(what, || {
            let (config, running) = (members_in_config(env)?, running_members(env)?);
            let [agents, shims] = [FaultTarget::Agent, FaultTarget::Shim].map(|whom| process_ids(env, whom));
            let now =
                format!("config.json {config:?}, running {running:?}, agents {agents:?}, shims {shims:?}");
            if now != last {
                self.log(&now);
                last = now;
            }
            // The pid of a member that is run by its first process is that one's.
            let known: BTreeSet<u32> = running.iter().map(|(_, pid)| *pid).collect();
            let alive = known.iter().all(|pid| agents.contains(pid) || shims.contains(pid));
            let connected = shims.len() == running.len();
            let names: BTreeSet<String> = running.into_iter().map(|(name, _)| name).collect();
            (config == names && alive && connected && agents.is_subset(&known)).then_some(names)
        });
        self.assert_foreign_panes_alive();
        names
    }

    /// # Panics
    /// Where one of them is gone.
    pub fn assert_foreign_panes_alive(&self) {
        let gone = self.foreign_panes.iter().find(|pid| start_time(**pid).is_none());
        assert!(gone.is_none(), "a stranger was touched: {gone:?}\n{}", self.env.dump_state());
    }

    /// The daemons that have no pane: to be waited for when the environment has ended.
    pub fn into_daemons(self) -> Vec<Child> {
        self.daemons
    }

    fn find(&mut self, whom: FaultTarget) -> Option<String> {
        let all = self.env.processes_of(whom);
        (!all.is_empty()).then(|| all[self.rng.usize(0..all.len())].clone())
    }

    /// The first processes of a session's panes.
    fn panes(&self, session: &str) -> Vec<u32> {
        let target = format!("={session}");
        let told = self.env.tmux(["list-panes", "-s", "-t", &target, "-F", "#{@teamd_name}:#{pane_pid}"]);
        told.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect()
    }

    fn replace_tmux_server(&mut self) -> String {
        let env = self.env;
        let ids = env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
        let last = ids.lines().filter_map(|id| id[1..].parse::<u32>().ok()).max().unwrap_or(0);
        let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().expect("a pid");
        self.log(&format!("kill -9 {server} tmux, with panes up to %{last}"));
        let was = TaggedProcesses::single(server);
        was.kill();
        assert!(was.exit_within(Duration::from_secs(10)), "a killed server ends");
        self.create_foreign_panes(last.min(40));
        format!("{server} tmux")
    }

    /// A server at the same address, whose panes up to this number are others'.
    fn create_foreign_panes(&mut self, last: u32) {
        let first = ["new-session", "-d", "-s", "user", "-x", "200", "-y", "50", "--", "cat", "-"];
        let mut words: Vec<&str> = first.into();
        (0..last).for_each(|_| words.extend([";", "new-window", "-d", "-t", "=user:", "--", "cat", "-"]));
        let env = self.env;
        env.wait_until("the next server is there", || (env.run_tmux(&words).code == 0).then_some(()));
        self.foreign_panes = self.panes("user");
    }
}

impl TestEnv {
    /// Pid and command line of each that lives.
    pub fn processes_of(&self, whom: FaultTarget) -> Vec<String> {
        let is_one = |line: &String| {
            let (_, command) = line.split_once(' ').unwrap_or_default();
            match whom {
                FaultTarget::Daemon => {
                    command.split(' ').next().is_some_and(|program| program.ends_with("/teamd"))
                }
                FaultTarget::Shim => command.contains("/teamd-shim run "),
                FaultTarget::Agent => command.ends_with("/scripted-agent stay"),
                FaultTarget::Tmux => false,
            }
        };
        TaggedProcesses::with_tag(&self.process_tag()).list().into_iter().filter(is_one).collect()
    }

    /// teamd's pid as the process table has it: it need not answer.
    pub fn daemon_process(&self) -> Option<u32> {
        self.processes_of(FaultTarget::Daemon).first().map(|line| pid_of(line))
    }
}

/// Where it is installed.
fn faketime() -> Option<PathBuf> {
    let directories = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut paths = directories.map(|directory| directory.path().join(FAKETIME));
    paths.find(|path| path.is_file())
}

/// The limit that a process can't raise.
fn hard_limit(pid: Option<Pid>) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", Pid::as_raw(pid))).ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

fn process_ids(env: &TestEnv, whom: FaultTarget) -> BTreeSet<u32> {
    env.processes_of(whom).iter().map(|line| pid_of(line)).collect()
}

/// Everybody but the lead; none while the file is being written by someone who does not do it whole.
fn members_in_config(env: &TestEnv) -> Option<BTreeSet<String>> {
    let config: Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).ok()?;
    let names = config["members"].as_array()?.iter().filter_map(|member| member["name"].as_str());
    Some(names.filter(|name| *name != "team-lead").map(str::to_owned).collect())
}

/// Name and pid of all members, where all of them run and their daemon answers.
fn running_members(env: &TestEnv) -> Option<Vec<(String, u32)>> {
    let status = env.teamctl(["--json", "status"]);
    let status = (status.code == 0).then(|| status.json())?;
    let members = status["teams"][0]["members"].as_array()?.iter();
    let members = members.filter(|member| member["lifecycle"] != "lead").map(|member| {
        let pid = (member["lifecycle"] == "running").then(|| member["pid"].as_u64()).flatten()?;
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
