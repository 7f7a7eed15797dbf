//! The environment's daemon: started, asked for, killed.

use crate::TestEnv;
use std::process::{Child, Command, Stdio};

/// So few that no team can be watched.
pub const TWO_WATCHES: &str = "2 > /proc/sys/user/max_inotify_watches";

/// Whether the kernel has user namespaces for us, with limits of their own.
pub fn can_limit_watches() -> bool {
    let mut can = Command::new("unshare");
    can.args(["-Ur", "sh", "-c", "test -w /proc/sys/user/max_inotify_watches"]);
    can.output().is_ok_and(|ran| ran.status.success())
}

impl TestEnv {
    /// Starts teamd in a session of its own on the environment's server, as a user would, and waits until it answers.
    pub fn start_daemon(&self) {
        let socket = self.tmux_socket();
        let mut command = self.command(crate::programs().join("teamctl"));
        command.env("TMUX", format!("{},0,0", socket.display())).arg("up");
        crate::test_env::run_command(command).expect_success();
    }

    /// teamd as it is started outside of tmux: it outlives the environment's server, and nothing lets it go on that has been
    /// stopped.
    pub fn daemon_command(&self) -> Command {
        let mut teamd = self.command(crate::programs().join("teamd"));
        teamd.arg("-S").arg(self.tmux_socket());
        teamd
    }

    /// The same in a user namespace where a limit of inotify is so low: see [`can_limit_watches`].
    pub fn daemon_command_with_limit(&self, limit: &str) -> Command {
        let mut teamd = self.command("unshare");
        let script = format!("echo {limit} && exec \"$0\" -S \"$1\"");
        teamd.args(["-Ur", "sh", "-c", &script]).arg(crate::programs().join("teamd")).arg(self.tmux_socket());
        teamd
    }

    /// Starts one so, and waits until it answers.
    pub fn start_daemon_without_pane(&self) -> Child {
        let mut teamd = self.daemon_command();
        let teamd = teamd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("teamd starts");
        self.wait_for_daemon();
        teamd
    }

    /// Waits for the answer of a daemon.
    pub fn wait_for_daemon(&self) {
        self.wait_until("the daemon answers", || (self.teamctl(["status"]).code == 0).then_some(()));
    }

    /// The daemon's pid.
    pub fn daemon_pid(&self) -> u32 {
        u32::try_from(self.json(["status"])["daemon"]["pid"].as_u64().expect("a pid")).expect("a pid")
    }

    /// SIGKILL to one process of ours.
    pub fn kill_process(&self, pid: u32) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
    }
}
