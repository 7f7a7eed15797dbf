//! How long a team is without its daemon: kill -9, then the next one, until it has everybody back.

use crate::{TestEnv, sleep};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// An environment whose daemons are started without a pane, one after the other.
pub struct RecoveryTimer<'h> {
    env: &'h TestEnv,
    daemon: Option<Child>,
}

impl<'h> RecoveryTimer<'h> {
    /// Of this environment, whichever way its daemon was started.
    pub fn new(env: &'h TestEnv) -> RecoveryTimer<'h> {
        RecoveryTimer { env, daemon: None }
    }

    /// Kills the daemon, leaves the agents alone for so long, starts the next; how long that took from its start to the
    /// moment in which `status` has `count` agents as adopted and running.
    ///
    /// # Panics
    /// Where it has not after 30 s.
    pub fn measure(&mut self, count: usize, alone: Duration) -> Duration {
        let env = self.env;
        env.kill_process(env.daemon_pid());
        if let Some(mut killed) = self.daemon.take() {
            killed.wait().expect("it is ours");
        }
        sleep(alone);
        let began = Instant::now();
        let teamd = env.daemon_command().stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemon = Some(teamd.expect("teamd starts"));
        while self.count_running() != count {
            assert!(began.elapsed() < Duration::from_secs(30), "they are not back\n{}", env.dump_state());
        }
        began.elapsed()
    }

    /// The last daemon, to be waited for when the environment has ended.
    pub fn finish(self) -> Option<Child> {
        self.daemon
    }

    /// Asked again at once: it is the time that is measured.
    fn count_running(&self) -> usize {
        let status = self.env.teamctl(["--json", "status"]);
        if status.code != 0 {
            return 0;
        }
        let members = status.json()["teams"][0]["members"].as_array().cloned().unwrap_or_default();
        members.iter().filter(|member| member["lifecycle"] == "running").count()
    }
}

/// That share of them took no longer.
///
/// # Panics
/// Where there are none.
pub fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent).div_ceil(100).max(1) - 1]
}
