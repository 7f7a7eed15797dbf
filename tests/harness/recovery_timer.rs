//! Measures how long a new daemon takes to adopt all agents after the previous daemon was killed.

use crate::{TestEnv, sleep};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Kills the daemon of a test environment and starts the next one outside tmux, repeatedly.
pub struct RecoveryTimer<'h> {
    env: &'h TestEnv,
    daemon: Option<Child>,
}

impl<'h> RecoveryTimer<'h> {
    /// Uses this environment, whose first daemon runs already, inside or outside tmux.
    pub fn new(env: &'h TestEnv) -> RecoveryTimer<'h> {
        RecoveryTimer { env, daemon: None }
    }

    /// Kills the daemon, waits for `downtime` and starts the next daemon. Returns the time from
    /// that start until `teamctl status` shows `count` running agents.
    ///
    /// # Panics
    /// If fewer agents run after 30 s.
    pub fn measure(&mut self, count: usize, downtime: Duration) -> Duration {
        let env = self.env;
        env.kill_process(env.daemon_pid());
        if let Some(mut killed) = self.daemon.take() {
            killed.wait().expect("the killed daemon has exited");
        }
        sleep(downtime);
        let start = Instant::now();
        let teamd = env.daemon_command().stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemon = Some(teamd.expect("teamd starts"));
        while self.count_running() != count {
            assert!(start.elapsed() < crate::TIMEOUT, "not all agents run\n{}", env.dump_state());
        }
        start.elapsed()
    }

    /// Returns the last daemon. The caller waits for it after the test environment is shut down.
    pub fn into_daemon(self) -> Option<Child> {
        self.daemon
    }

    /// Counts the members that `teamctl status` shows as running. `measure` calls it without a
    /// pause between two calls, because a pause would add to the measured time.
    fn count_running(&self) -> usize {
        let status = self.env.teamctl(["--json", "status"]);
        if status.code != 0 {
            return 0;
        }
        let members = status.json()["teams"][0]["members"].as_array().cloned().unwrap_or_default();
        members.iter().filter(|member| member["lifecycle"] == "running").count()
    }
}

/// Returns the quantile `percent` of the times, in percent. Sorts the times.
///
/// # Panics
/// If there are no times.
pub fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent).div_ceil(100).max(1) - 1]
}
