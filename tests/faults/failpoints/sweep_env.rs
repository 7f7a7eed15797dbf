//! The environment of the failpoint sweep: a running team, a snapshot of its idle state, and the
//! code that runs one case.

use super::case_counter::TmuxCrashed;
use super::env_snapshot::{EnvSnapshot, StoredItem, describe_wrong_items, take_snapshot};
use super::failpoint_directory::{self, Failpoint, FailpointAction};
use super::operations::{
    self, OPERATIONS, RESIDENTS, SweepOperation, as_strs, expect_no_partial_team, message_text,
};
use super::{FailpointCase, worktrees};
use harness::TestEnv;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::Duration;

/// How long a retry of the daemon may take. The daemon repeats a failed write at its next rescan,
/// up to 30 s later.
const RESCAN_TIMEOUT: Duration = Duration::from_secs(150);

/// A test environment with a team, and a snapshot of its idle state.
pub(super) struct SweepEnv {
    pub(super) env: TestEnv,
    daemon: Option<Child>,
    pub(super) case_number: u64,
    baseline: Option<EnvSnapshot>,
    /// The messages and tasks that must exist exactly once.
    expected_items: BTreeSet<(StoredItem, String)>,
    /// The process id of the tmux server on which the sweep began.
    server: String,
}

impl SweepEnv {
    /// Creates the environment. `with_failpoints` activates the failpoints in its programs.
    pub(super) fn new(with_failpoints: bool) -> SweepEnv {
        let mut env = TestEnv::new();
        env.write_file("crash/code", "");
        // `run` starts a daemon if it finds none. With this variable it uses this tmux server.
        let tmux = format!("{},0,0", env.tmux_socket().display());
        env.variables.push(("TMUX".to_owned(), tmux));
        if with_failpoints {
            failpoint_directory::enable(&mut env);
        }
        worktrees::create_repository(&env);
        let server = env.tmux(["display-message", "-p", "#{pid}"]);
        let mut sweep = SweepEnv {
            env,
            daemon: None,
            case_number: 0,
            baseline: None,
            expected_items: BTreeSet::new(),
            server,
        };
        sweep.ensure_daemon();
        sweep.env.teamctl(["create", "survey"]).expect_success();
        for (name, backend) in RESIDENTS.iter().zip(["in-process", "tmux"]) {
            let args = ["spawn", "-t", "survey", name, "--backend", backend, "--", "sleep", "3600"];
            sweep.env.teamctl(args).expect_success();
        }
        // The inbox is long, so that a later message is appended without rewriting the file.
        sweep.env.teamctl(["-t", "survey", "send", "ann", &"long ".repeat(4_000)]).expect_success();
        sweep.env.wait_until_quiet(Duration::from_millis(200));
        sweep.baseline = Some(take_snapshot(&sweep.env));
        sweep
    }

    /// Waits for a condition. Panics with `TmuxCrashed` if the tmux server has ended.
    pub(super) fn wait_until<T>(&self, description: &str, condition: impl FnMut() -> Option<T>) -> T {
        self.wait_until_within(harness::TIMEOUT, description, condition)
    }

    fn wait_until_within<T>(
        &self,
        timeout: Duration,
        description: &str,
        mut condition: impl FnMut() -> Option<T>,
    ) -> T {
        self.env.wait_until_within(timeout, description, || {
            self.assert_tmux_runs();
            condition()
        })
    }

    pub(super) fn assert_tmux_runs(&self) {
        if harness::start_time(self.server.parse().unwrap()).is_none() {
            std::panic::panic_any(TmuxCrashed);
        }
    }

    /// Starts a daemon, and does not wait until it answers.
    fn start(&mut self) {
        self.reap_daemon();
        let teamd = self.env.daemon_command().stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemon = Some(teamd.unwrap());
    }

    /// Kills the daemon and starts one under `program`. Waits until the new one answers or has
    /// ended.
    pub(super) fn restart_daemon_under(&mut self, program: &str, args: &[String]) {
        self.kill_daemon();
        let (mut command, teamd) = (self.env.command(program), self.env.daemon_command());
        command.current_dir(self.env.path("")).args(args).arg(teamd.get_program()).args(teamd.get_args());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.wait_until("the daemon answers or has ended", || {
            let ended = child.try_wait().unwrap().is_some();
            (ended || self.daemon_answers().is_some()).then_some(())
        });
        self.daemon = Some(child);
        self.env.wait_until_quiet(failpoint_directory::SETTLE_TIME);
    }

    /// Starts a daemon if none runs, and waits until it answers.
    pub(super) fn ensure_daemon(&mut self) {
        if self.env.teamctl(["status"]).code == 69 {
            self.start();
            self.wait_until("the daemon answers", || (self.env.teamctl(["status"]).code == 0).then_some(()));
        }
    }

    pub(super) fn reap_daemon(&mut self) {
        self.daemon.iter_mut().for_each(|daemon| drop(daemon.try_wait()));
    }

    pub(super) fn kill_daemon(&mut self) {
        self.env.kill_process(self.env.daemon_pid());
        // If `teamctl run` has started its own daemon first, our child still waits for its lock.
        self.daemon.take().iter_mut().for_each(|daemon| drop(daemon.kill().and_then(|()| daemon.wait())));
    }

    /// Starts teamctl with these arguments and returns at once. Its exit code is written to
    /// crash/code.
    pub(super) fn start_teamctl(&self, args: &[String]) {
        self.env.write_file("crash/code", "");
        let mut command = self.env.command("sh");
        command.args(["-c", r#""$@" >crash/out 2>crash/err; echo $? >crash/code"#, "sh"]);
        command.arg(harness::programs().join("teamctl")).args(args);
        if args.iter().any(|arg| arg == "inbox" || arg == "claim") {
            command.envs([("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", "ann")]);
        }
        let mut child = command.spawn().unwrap();
        std::thread::spawn(move || child.wait());
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        self.env.read("crash/code").trim().parse().ok()
    }

    /// Returns the failpoints that one run of the operation passes. With `None`, returns those that
    /// a daemon passes when it starts after a kill.
    pub(super) fn record_points(&mut self, operation: Option<usize>) -> Vec<Failpoint> {
        self.case_number += 1;
        let args = operation.map(|index| (OPERATIONS[index].prepare)(&self.env, self.case_number));
        self.env.wait_until_quiet(Duration::from_millis(100));
        if args.is_none() {
            self.kill_daemon();
        }
        failpoint_directory::arm(&self.env, None);
        match &args {
            None => {
                self.start();
                self.wait_until("the daemon answers", || self.daemon_answers());
            }
            Some(args) => {
                self.start_teamctl(args);
                let code = self.wait_until("teamctl has ended", || self.exit_code());
                assert_eq!(code, 0, "{args:?}: {}", self.env.read("crash/err"));
            }
        }
        let points = failpoint_directory::recorded_points(&self.env);
        failpoint_directory::disarm(&self.env);
        self.ensure_daemon();
        if let Some(index) = operation {
            self.retry_until_complete(&OPERATIONS[index], "run without a fault");
        }
        points
    }

    /// Runs one case. Returns how many of its failpoints were hit.
    pub(super) fn run_case(&mut self, case: &FailpointCase) -> u64 {
        self.assert_tmux_runs();
        self.case_number += 1;
        let n = self.case_number;
        let operation = case.operation.map(|index| &OPERATIONS[index]);
        let args = operation.map(|operation| (operation.prepare)(&self.env, n));
        if operation.is_none() {
            self.kill_daemon();
        }
        failpoint_directory::arm(&self.env, Some((&case.failpoint, case.action)));
        let mut hits = match args {
            None => self.break_start(),
            Some(args) => self.break_operation(&args, case.action),
        };
        for point in case.recovery_kills.iter().filter(|_| case.action == FailpointAction::Kill) {
            failpoint_directory::arm(&self.env, Some((point, FailpointAction::Kill)));
            if self.env.teamctl_with(&["status"], &[("TEAMD_FAILPOINTS", "")]).code == 69 {
                hits += self.break_start();
            }
        }
        failpoint_directory::disarm(&self.env);
        self.env.age_locks_and_temp_files();
        self.ensure_daemon();
        match operation {
            None => self.assert_baseline(&format!("{case:?}")),
            Some(operation) => {
                let may_be_killed =
                    case.action == FailpointAction::Kill && case.failpoint.program == "teamd-shim";
                self.check_partial(operation, &format!("{case:?}"), may_be_killed);
                self.retry_until_complete(operation, &format!("{case:?}"));
            }
        }
        hits
    }

    /// Checks the state before a retry: the operation is done at most once, leaves no partial team,
    /// and is done if teamctl exited with 0.
    pub(super) fn check_partial(&self, operation: &SweepOperation, case: &str, may_be_killed: bool) {
        let done = (operation.count_done)(&self.env, self.case_number);
        assert!(done <= 1, "{case}: done {done} times\n{}", self.env.dump_state());
        if done == 0 && self.exit_code() == Some(0) {
            self.check_late_or_lost(operation, case, may_be_killed);
        }
        expect_no_partial_team(&self.env, self.case_number).unwrap_or_else(|error| panic!("{case}: {error}"));
    }

    /// Checks an operation that is not done although teamctl exited with 0. This is allowed in two
    /// cases: a shutdown, whose shim reports the answer before it exits, and a spawn whose shim was
    /// killed right after the start. In the second case the lead is notified of the exit.
    fn check_late_or_lost(&self, operation: &SweepOperation, case: &str, may_be_killed: bool) {
        if operation.is_shutdown() {
            let is_done = || ((operation.count_done)(&self.env, self.case_number) == 1).then_some(());
            return self.wait_until(&format!("{case}: the shim has exited"), is_done);
        }
        let is_killed = operation.is_spawn() && may_be_killed;
        assert!(is_killed, "{case}: exit code 0, but not done\n{}", self.env.dump_state());
        let is_reported = || operations::expect_single_exit(&self.env, self.case_number).ok();
        self.wait_until(&format!("{case}: the exit is reported"), is_reported);
    }

    /// Starts a daemon whose start hits the armed failpoint. Returns the number of hits, 0 or 1.
    fn break_start(&mut self) -> u64 {
        self.start();
        self.wait_until("the daemon answers or has hit the failpoint", || {
            self.daemon_answers().or_else(|| failpoint_directory::triggered_pid(&self.env).map(drop))
        });
        let Some(pid) = failpoint_directory::wait_for_trigger(&self.env) else { return 0 };
        failpoint_directory::wait_for_exit(pid);
        1
    }

    /// `Some` if a daemon answers. The teamctl that asks runs without failpoints.
    fn daemon_answers(&self) -> Option<()> {
        (self.env.teamctl_with(&["status"], &[("TEAMD_FAILPOINTS", "")]).code == 0).then_some(())
    }

    /// Runs teamctl, whose operation hits the armed failpoint. Returns the number of hits, 0 or 1.
    fn break_operation(&mut self, args: &[String], action: FailpointAction) -> u64 {
        self.start_teamctl(args);
        let is_over = || {
            // A failpoint with a panic is always reached, but perhaps only after teamctl has ended.
            // So the exit code does not end this wait.
            let ended = self.exit_code().filter(|_| action != FailpointAction::Panic);
            ended.map(drop).or_else(|| failpoint_directory::triggered_pid(&self.env).map(drop))
        };
        self.wait_until("teamctl has ended or the failpoint is hit", is_over);
        let hit = failpoint_directory::wait_for_trigger(&self.env);
        let is_hit = match (hit, action) {
            (Some(pid), FailpointAction::Kill | FailpointAction::Panic) => {
                failpoint_directory::wait_for_exit(pid);
                true
            }
            (Some(pid), FailpointAction::Pause) => {
                let is_stopped = self.wait_until_stopped(pid);
                self.run_other_clients();
                continue_process(&self.env, pid);
                is_stopped
            }
            _ => hit.is_some(),
        };
        self.reap_daemon();
        self.wait_until(&format!("{args:?} has ended"), || self.exit_code());
        u64::from(is_hit)
    }

    /// Waits until the process is stopped. Returns false if it does not stay stopped: it has ended,
    /// or its parent is tmux, which continues a stopped process of a pane at once.
    fn wait_until_stopped(&self, pid: u32) -> bool {
        self.wait_until(&format!("{pid} has stopped"), || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split(' ').skip(1);
            match (fields.next(), fields.next()) {
                (None | Some("Z"), _) => Some(false),
                (_, Some(parent)) if parent == self.server => Some(false),
                (state, _) => (state == Some("T")).then_some(true),
            }
        })
    }

    /// Runs other clients while one process is stopped. Locks look old to them, so they take over
    /// the lock of the stopped process, if it holds one.
    fn run_other_clients(&mut self) {
        self.env.age_locks_and_temp_files();
        let text = format!("the message sent meanwhile in the {}th", self.case_number);
        for to in ["bob", "ann"] {
            let output =
                self.env.teamctl_with(&["-t", "survey", "send", to, &text], &[("TEAMD_FAILPOINTS", "")]);
            assert_eq!(output.code, 0, "{output:#?}");
        }
        self.expected_items.insert((StoredItem::Message, text));
    }

    /// Repeats the operation until it is done, checks that it is done once and completely, and
    /// cleans up.
    pub(super) fn retry_until_complete(&mut self, operation: &SweepOperation, case: &str) {
        let n = self.case_number;
        let mut retries = 0;
        let problem = std::cell::RefCell::new(String::new());
        let is_complete = || {
            if (operation.count_done)(&self.env, n) == 0 {
                retries += 1;
                let Some(args) = (operation.retry)(&self.env, n) else {
                    let args = (operation.prepare)(&self.env, n);
                    self.env.teamctl_with(&as_strs(&args), &[]).expect_success();
                    return None;
                };
                let ann = [("TEAMD_TEAM", "survey"), ("TEAMD_MEMBER", "ann")];
                let runs_as_ann = args.iter().any(|arg| arg == "inbox" || arg == "claim");
                let output = self.env.teamctl_with(&as_strs(&args), if runs_as_ann { &ann } else { &[] });
                *problem.borrow_mut() = format!("{output:?}");
            }
            (operation.check_complete)(&self.env, n).map_err(|error| *problem.borrow_mut() += &error).ok()
        };
        self.wait_until_within(RESCAN_TIMEOUT, &format!("{case}: the operation is done"), is_complete);
        assert!(retries < 20, "{case}: {retries} retries: {}", problem.borrow());
        self.clean_up(operation, case);
    }

    /// Undoes the operation and checks that the state equals the baseline.
    pub(super) fn clean_up(&mut self, operation: &SweepOperation, case: &str) {
        let n = self.case_number;
        (operation.clean_up)(&self.env, n);
        self.expected_items.extend(operation.stored_item.map(|kind| (kind, message_text(n))));
        self.assert_baseline(case);
    }

    /// Lists the residents whose shim has not connected to this daemon. The failpoints that such a
    /// shim passes later would count in the next case.
    fn unconnected_shims(&self) -> String {
        let status = self.env.teamctl_with(&["status", "--json"], &[("TEAMD_FAILPOINTS", "")]);
        let is_running = |name: &&str| {
            let status = serde_json::from_str::<Value>(&status.stdout).unwrap_or_default();
            let teams = status["teams"].as_array().cloned().unwrap_or_default();
            let mut members = teams.iter().flat_map(|team| team["members"].as_array().into_iter().flatten());
            members.any(|member| member["name"] == **name && member["lifecycle"] == "running")
        };
        RESIDENTS
            .iter()
            .filter(|name| !is_running(name))
            .map(|name| format!("{name} is not connected\n"))
            .collect()
    }

    /// Waits until the state equals the baseline.
    pub(super) fn assert_baseline(&mut self, case: &str) {
        let baseline = self.baseline.as_ref().expect("the baseline was taken");
        let mut last = String::new();
        let is_same = || {
            let difference = take_snapshot(&self.env).difference(baseline)
                + &describe_wrong_items(&self.env, &self.expected_items)
                + &self.unconnected_shims();
            if difference != last {
                // The report of a failed test includes all files of the output directory.
                self.env.write_file("out/unlike", &difference);
            }
            last = difference;
            last.is_empty().then_some(())
        };
        self.wait_until_within(RESCAN_TIMEOUT, &format!("{case}: the state equals the baseline"), is_same);
    }
}

/// Continues a stopped process. The process may have ended.
fn continue_process(env: &TestEnv, pid: u32) {
    drop(env.command("kill").args(["-CONT", &pid.to_string()]).stderr(Stdio::null()).status());
}
