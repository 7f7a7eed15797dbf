//! Injects faults into a test environment: kills, signals and stops its processes, replaces its
//! tmux server, sets the daemon's clock, and limits the daemon's descriptors and inotify watches. A
//! seed determines the random choices, and each fault is logged, so that a failed test can be
//! repeated.

use crate::processes::{TaggedProcesses, start_time};
use crate::sleep;
use crate::{TWO_WATCHES, TestEnv, can_limit_watches};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The kind of process that a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTarget {
    /// The daemon, started inside or outside tmux.
    Daemon,
    /// The shim of an agent.
    Shim,
    /// An agent.
    Agent,
    /// The tmux server. The next server has foreign panes with the ids that teamd's panes had.
    Tmux,
}

/// The result of a teamctl call that was killed at a random moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptedCall {
    /// The call was killed before it ended.
    Killed,
    /// The call had ended before with exit code 0.
    Succeeded,
    /// The call had ended before with another exit code.
    Failed,
}

/// Injects faults. All agents are scripted agents in the mode `stay`, and the team is `survey`.
pub struct FaultInjector<'h> {
    env: &'h TestEnv,
    /// The source of all random choices.
    pub rng: fastrand::Rng,
    started: Instant,
    /// The daemons that were started outside tmux.
    daemons: Vec<Child>,
    /// The pids of the foreign panes' processes.
    foreign_panes: Vec<u32>,
    /// The library libfaketime, if clock control is enabled.
    clock_library: Option<PathBuf>,
    /// Whether the next daemon is started in a pane.
    next_has_pane: bool,
    /// Whether the next daemon has the usual number of inotify watches. Otherwise it has two.
    next_has_watches: bool,
    /// Whether the current daemon is in its own user namespace. It then can't read the environment
    /// variables of processes outside.
    in_user_namespace: bool,
}

/// Signals that end the daemon. After the first three it shuts down in order; the others end it at
/// once.
const STOP_SIGNALS: [Signal; 5] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1];

/// The library that gives a process its own wall clock, relative to a subdirectory of /usr/lib.
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

impl<'h> FaultInjector<'h> {
    /// Uses this environment and this seed. The existing panes in the session `user` that are not
    /// teamd's are foreign panes.
    pub fn new(env: &'h TestEnv, seed: u64) -> FaultInjector<'h> {
        let rng = fastrand::Rng::with_seed(seed);
        let mut injector = FaultInjector {
            env,
            rng,
            started: Instant::now(),
            daemons: Vec::new(),
            foreign_panes: Vec::new(),
            clock_library: None,
            next_has_pane: false,
            next_has_watches: true,
            in_user_namespace: false,
        };
        injector.log(&format!("SEED={seed}"));
        injector.foreign_panes = injector.foreign_pane_pids("user");
        injector
    }

    /// Logs one line to standard error. The test runner shows the log if the test fails or with
    /// `--nocapture`.
    #[allow(clippy::print_stderr, reason = "a test's own output")]
    pub fn log(&self, text: &str) {
        let text: String = text.chars().take(150).collect();
        eprintln!("{:9.3} s  {text}", self.started.elapsed().as_secs_f64());
    }

    /// Kills a random process of this kind with SIGKILL. Returns its pid and command line, or
    /// `None` if no process was killed.
    pub fn kill(&mut self, target: FaultTarget) -> Option<String> {
        match target {
            FaultTarget::Tmux => return Some(self.replace_tmux_server()),
            // The daemon finds the remaining processes of a killed shim by their environment
            // variables, which it can't read from its user namespace.
            FaultTarget::Shim if self.in_user_namespace => return None,
            _ => {}
        }
        let process = self.pick_process(target)?;
        self.log(&format!("kill -9 {process}"));
        send_signal(parse_pid(&process), Signal::KILL);
        Some(process)
    }

    /// Sends the daemon a random signal of `STOP_SIGNALS` and waits until the daemon has exited.
    /// Returns its pid and command line, or `None` if no daemon runs.
    ///
    /// # Panics
    /// If the daemon still runs after 30 s.
    pub fn signal_daemon(&mut self) -> Option<String> {
        let daemon = self.pick_process(FaultTarget::Daemon)?;
        let pid = parse_pid(&daemon);
        let process = TaggedProcesses::single(pid);
        let signals: Vec<Signal> =
            STOP_SIGNALS.into_iter().filter(|signal| !ignores_signal(pid, *signal)).collect();
        let signal = signals[self.rng.usize(0..signals.len())];
        self.log(&format!("{signal:?} to {daemon}"));
        send_signal(pid, signal);
        assert!(process.exit_within(crate::TIMEOUT), "{daemon} still runs\n{}", self.env.dump_state());
        Some(daemon)
    }

    /// Stops a random process of this kind with SIGSTOP for `span` and then continues it. Returns
    /// its pid and command line, or `None` if there is no such process.
    pub fn stop(&mut self, target: FaultTarget, span: Duration) -> Option<String> {
        let process = self.pick_process(target)?;
        self.log(&format!("stop for {span:.0?} {process}"));
        send_signal(parse_pid(&process), Signal::STOP);
        sleep(span);
        send_signal(parse_pid(&process), Signal::CONT);
        Some(process)
    }

    /// Lets [`FaultInjector::set_clock`] set the wall clock of the daemons that are started outside
    /// tmux from now on. Returns false if libfaketime is not installed.
    pub fn enable_clock_control(&mut self) -> bool {
        self.clock_library = find_faketime();
        self.set_clock(0);
        self.clock_library.is_some()
    }

    /// Sets the wall clock of the daemons outside tmux to the real time plus `seconds`. The
    /// monotonic clock does not change. Returns false if no such daemon runs or clock control is
    /// not enabled.
    pub fn set_clock(&mut self, seconds: i64) -> bool {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if self.clock_library.is_some() {
            self.log(&format!("the clock jumps to {seconds:+} s"));
            self.env.write_file("out/clock", format!("{seconds:+}"));
        }
        self.clock_library.is_some() && !self.daemons.is_empty()
    }

    /// Kills the daemon. The next daemon may create only two inotify watches. Returns the pid and
    /// command line of the killed daemon, or `None` if no daemon runs or if [`can_limit_watches`]
    /// is false.
    pub fn restart_without_watches(&mut self) -> Option<String> {
        if !can_limit_watches() {
            return None;
        }
        (self.next_has_watches, self.next_has_pane) = (false, false);
        self.kill(FaultTarget::Daemon)
    }

    /// Lets the daemon open no further file descriptor for `span`. Returns false if no daemon runs
    /// or the limit can't be set.
    pub fn limit_descriptors(&mut self, span: Duration) -> bool {
        self.try_limit_descriptors(span).is_some()
    }

    fn try_limit_descriptors(&mut self, span: Duration) -> Option<()> {
        let daemon = self.pick_process(FaultTarget::Daemon)?;
        let pid = parse_pid(&daemon);
        let open = crate::ProcessStats::read(pid)?.descriptors;
        self.log(&format!("no descriptors beyond {open} for {span:.0?} {daemon}"));
        let limit = Rlimit { current: Some(open), maximum: descriptor_hard_limit(pid) };
        let set_limit = |limit| platform::system().set_limit_of(pid, Resource::Nofile, limit).ok();
        let previous = set_limit(limit)?;
        sleep(span);
        // The daemon may have ended meanwhile.
        set_limit(previous);
        Some(())
    }

    /// Runs teamctl and kills it with SIGKILL after a random delay of less than 15 ms.
    pub fn run_and_kill(&mut self, args: &[&str]) -> InterruptedCall {
        let mut command = self.env.command(crate::programs().join("teamctl"));
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        let mut call = command.spawn().expect("teamctl starts");
        let delay = Duration::from_micros(self.rng.u64(0..15_000));
        sleep(delay);
        call.kill().expect("teamctl can be killed");
        let status = call.wait().expect("teamctl has exited");
        self.log(&format!("kill -9 after {delay:.1?} teamctl {}: {status}", args.join(" ")));
        match status.code() {
            None => InterruptedCall::Killed,
            Some(0) => InterruptedCall::Succeeded,
            Some(_) => InterruptedCall::Failed,
        }
    }

    /// Starts a daemon if none runs: alternately outside tmux, and in a pane by `teamctl up`.
    pub fn ensure_daemon(&mut self) {
        self.daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
        if self.env.teamctl(["status"]).code != 69 {
            return;
        }
        let has_pane = self.next_has_pane;
        (self.next_has_pane, self.in_user_namespace) = (!has_pane, !self.next_has_watches);
        if has_pane {
            return self.env.start_daemon();
        }
        let has_watches = std::mem::replace(&mut self.next_has_watches, true);
        let mut daemon = if has_watches {
            self.env.daemon_command()
        } else {
            self.env.daemon_command_with_limit(TWO_WATCHES)
        };
        if let Some(library) = &self.clock_library {
            daemon.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.env.path("out/clock"));
            let settings = ["FAKETIME_NO_CACHE", "DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"];
            daemon.envs(settings.map(|setting| (setting, "1")));
        }
        daemon.stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(daemon.spawn().expect("teamd starts"));
        self.env.wait_for_daemon();
    }

    /// Waits until config.json, `teamctl status` and the running processes show the same members.
    /// Then checks that all foreign panes still run. Returns the names of the members.
    ///
    /// # Panics
    /// If the members do not agree after 30 s, or if a foreign pane has ended.
    pub fn wait_until_consistent(&self) -> BTreeSet<String> {
        let mut last = String::new();
        let description = "config.json, status and processes show the same members";
        let env = self.env;
        let names = env.wait_until(description, || {
            let (config, running) = (members_in_config(env)?, running_members(env)?);
            let [agents, shims] =
                [FaultTarget::Agent, FaultTarget::Shim].map(|target| process_ids(env, target));
            let state =
                format!("config.json {config:?}, running {running:?}, agents {agents:?}, shims {shims:?}");
            if state != last {
                self.log(&state);
                last = state;
            }
            // If the shim itself runs the member's turns, the pid in the status is that of the
            // shim.
            let pids: BTreeSet<u32> = running.iter().map(|(_, pid)| *pid).collect();
            let all_alive = pids.iter().all(|pid| agents.contains(pid) || shims.contains(pid));
            let one_shim_each = shims.len() == running.len();
            let names: BTreeSet<String> = running.into_iter().map(|(name, _)| name).collect();
            (config == names && all_alive && one_shim_each && agents.is_subset(&pids)).then_some(names)
        });
        self.assert_foreign_panes_alive();
        names
    }

    /// Checks that the processes of all foreign panes still run.
    ///
    /// # Panics
    /// If one of them has ended.
    pub fn assert_foreign_panes_alive(&self) {
        let ended = self.foreign_panes.iter().find(|pid| start_time(**pid).is_none());
        assert!(ended.is_none(), "a foreign pane has ended: {ended:?}\n{}", self.env.dump_state());
    }

    /// Returns the daemons outside tmux. The caller waits for them after the test environment is
    /// shut down.
    pub fn into_daemons(self) -> Vec<Child> {
        self.daemons
    }

    /// Picks a random process of this kind. Returns its pid and command line.
    fn pick_process(&mut self, target: FaultTarget) -> Option<String> {
        let processes = self.env.processes_of(target);
        (!processes.is_empty()).then(|| processes[self.rng.usize(0..processes.len())].clone())
    }

    /// The pids of the processes in a session's panes that are not teamd's.
    fn foreign_pane_pids(&self, session: &str) -> Vec<u32> {
        let target = format!("={session}");
        let panes = self.env.tmux(["list-panes", "-s", "-t", &target, "-F", "#{@teamd_name}:#{pane_pid}"]);
        panes.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect()
    }

    /// Kills the tmux server and starts another one at the same socket. The new server has so many
    /// foreign panes that their ids include those of the old server's panes, up to `%40`.
    fn replace_tmux_server(&mut self) -> String {
        let env = self.env;
        let ids = env.tmux(["list-panes", "-a", "-F", "#{pane_id}"]);
        let last = ids.lines().filter_map(|id| id[1..].parse::<u32>().ok()).max().unwrap_or(0);
        let server: u32 = env.tmux(["display-message", "-p", "#{pid}"]).parse().expect("tmux prints its pid");
        self.log(&format!("kill -9 {server} tmux, with panes up to %{last}"));
        let process = TaggedProcesses::single(server);
        process.kill();
        assert!(process.exit_within(crate::TIMEOUT), "the killed tmux server still runs");
        self.create_foreign_panes(last.min(40));
        format!("{server} tmux")
    }

    /// Starts a tmux server with the session `user`, whose panes have the ids from `%0` to `last`.
    fn create_foreign_panes(&mut self, last: u32) {
        let first = ["new-session", "-d", "-s", "user", "-x", "200", "-y", "50", "--", "cat", "-"];
        let mut args: Vec<&str> = first.into();
        (0..last).for_each(|_| args.extend([";", "new-window", "-d", "-t", "=user:", "--", "cat", "-"]));
        let env = self.env;
        env.wait_until("the next tmux server has started", || (env.run_tmux(&args).code == 0).then_some(()));
        self.foreign_panes = self.foreign_pane_pids("user");
    }
}

impl TestEnv {
    /// Lists the running processes of this kind, each as its pid and command line. Empty for
    /// [`FaultTarget::Tmux`].
    pub fn processes_of(&self, target: FaultTarget) -> Vec<String> {
        let is_target = |line: &String| {
            let (_, command) = line.split_once(' ').unwrap_or_default();
            match target {
                FaultTarget::Daemon => {
                    command.split(' ').next().is_some_and(|program| program.ends_with("/teamd"))
                }
                FaultTarget::Shim => command.contains("/teamd-shim run "),
                FaultTarget::Agent => command.ends_with("/scripted-agent stay"),
                FaultTarget::Tmux => false,
            }
        };
        TaggedProcesses::with_tag(&self.process_tag()).list().into_iter().filter(is_target).collect()
    }

    /// The daemon's pid according to /proc. The daemon need not reply.
    pub fn daemon_process(&self) -> Option<u32> {
        self.processes_of(FaultTarget::Daemon).first().map(|line| parse_pid(line))
    }
}

/// The path of the library libfaketime. `None` if it is not installed.
fn find_faketime() -> Option<PathBuf> {
    let directories = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut paths = directories.map(|directory| directory.path().join(FAKETIME));
    paths.find(|path| path.is_file())
}

/// The hard limit of a process's open file descriptors.
fn descriptor_hard_limit(pid: u32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

fn process_ids(env: &TestEnv, target: FaultTarget) -> BTreeSet<u32> {
    env.processes_of(target).iter().map(|line| parse_pid(line)).collect()
}

/// The names of all teammates in config.json. `None` if the file is half-written, which happens
/// while a foreign writer writes it in place.
fn members_in_config(env: &TestEnv) -> Option<BTreeSet<String>> {
    let config: Value = serde_json::from_str(&env.read("root/teams/survey/config.json")).ok()?;
    let names = config["members"].as_array()?.iter().filter_map(|member| member["name"].as_str());
    Some(names.filter(|name| *name != "team-lead").map(str::to_owned).collect())
}

/// The name and pid of each teammate. `None` if the daemon does not reply or a teammate does not
/// run.
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

/// Parses the pid at the beginning of a line of [`TestEnv::processes_of`].
fn parse_pid(line: &str) -> u32 {
    line.split(' ').next().and_then(|pid| pid.parse().ok()).expect("the line begins with a pid")
}

/// Whether a process ignores a signal.
///
/// A shell without job control starts background processes with some signals ignored. The processes
/// below it inherit this, if they do not handle the signal.
fn ignores_signal(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
}

/// Sends a signal to a process. Does nothing if the process has ended.
fn send_signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("the pid is valid");
    kill_process(pid, signal).ok();
}
