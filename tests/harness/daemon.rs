//! Starts and kills the daemon of a test environment.

use crate::TestEnv;
use crate::dir_watcher::TIMEOUT;
use crate::processes::TaggedProcesses;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

/// A limit for [`TestEnv::daemon_command_with_limit`]: so few inotify watches that the daemon can't
/// watch any team.
pub const TWO_WATCHES: &str = "2 > /proc/sys/user/max_inotify_watches";

/// Whether this process may create a user namespace and set its own inotify limits there.
pub fn can_limit_watches() -> bool {
    let mut unshare = Command::new("unshare");
    unshare.args(["-Ur", "sh", "-c", "test -w /proc/sys/user/max_inotify_watches"]);
    unshare.output().is_ok_and(|output| output.status.success())
}

impl TestEnv {
    /// Starts the daemon with `teamctl up`, as a user does, in its own session on the tmux server
    /// of the test environment. Waits until the daemon replies.
    pub fn start_daemon(&self) {
        let socket = self.tmux_socket();
        let mut command = self.command(crate::programs().join("teamctl"));
        command.env("TMUX", format!("{},0,0", socket.display())).arg("up");
        crate::test_env::run_command(command).expect_success();
    }

    /// The command that starts the daemon outside tmux. Such a daemon survives the end of the tmux
    /// server. It stays stopped after SIGSTOP, whereas tmux continues a stopped process of a pane.
    pub fn daemon_command(&self) -> Command {
        let mut teamd = self.command(crate::programs().join("teamd"));
        teamd.arg("-S").arg(self.tmux_socket());
        teamd
    }

    /// As [`TestEnv::daemon_command`], but in a user namespace with a lower inotify limit. `limit`
    /// is the value and the redirection of the shell command `echo` that sets the limit. Needs
    /// [`can_limit_watches`].
    pub fn daemon_command_with_limit(&self, limit: &str) -> Command {
        let mut teamd = self.command_with_limit(limit, "teamd");
        teamd.arg("-S").arg(self.tmux_socket());
        teamd
    }

    /// One of the programs in a user namespace with a lower inotify limit, as
    /// [`TestEnv::daemon_command_with_limit`].
    pub fn command_with_limit(&self, limit: &str, program: &str) -> Command {
        let mut command = self.command("unshare");
        let script = format!("echo {limit} && exec \"$0\" \"$@\"");
        command.args(["-Ur", "sh", "-c", &script]).arg(crate::programs().join(program));
        command
    }

    /// Starts the daemon outside tmux and waits until it replies.
    pub fn start_daemon_without_pane(&self) -> Child {
        let mut teamd = self.daemon_command();
        let teamd = teamd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("teamd starts");
        self.wait_for_daemon();
        teamd
    }

    /// Waits until a daemon replies.
    pub fn wait_for_daemon(&self) {
        self.wait_until("the daemon replies", || (self.teamctl(["status"]).code == 0).then_some(()));
    }

    /// The daemon's pid, according to `teamctl status`.
    pub fn daemon_pid(&self) -> u32 {
        u32::try_from(self.json(["status"])["daemon"]["pid"].as_u64().expect("status has a pid"))
            .expect("a pid fits into 32 bits")
    }

    /// Kills a process with SIGKILL, and waits for its exit. At the end, [`TestEnv::shut_down`] lets
    /// `teamctl doctor --fix` remove what the process may have left.
    pub fn kill_process(&self, pid: u32) {
        self.has_killed.store(true, Ordering::Relaxed);
        let process = TaggedProcesses::single(pid);
        assert!(process.pids().count() == 1, "the process {pid} does not exist");
        process.kill();
        assert!(process.exit_within(TIMEOUT), "the process {pid} was killed and runs");
    }

    /// Kills all processes at once, as a reboot does, and sets another boot id in the roster. Then starts
    /// a tmux server with a session, but no daemon.
    ///
    /// # Panics
    /// If a process is left.
    pub fn reboot(&self) {
        self.has_killed.store(true, Ordering::Relaxed);
        let processes = TaggedProcesses::with_tag(&self.process_tag());
        processes.kill();
        assert!(processes.exit_within(TIMEOUT), "processes are left: {:?}", processes.list());
        let directory = std::fs::read_dir(self.path("state/teamd")).expect("the daemon has run").next();
        let directory = directory.expect("there is a state directory").expect("it is readable").file_name();
        let roster = format!("state/teamd/{}/roster.json", directory.display());
        let mut content: Value = serde_json::from_str(&self.read(&roster)).expect("the roster is JSON");
        content["boot_id"] = "yesterday".into();
        self.write_file(&roster, content.to_string());
        self.start_tmux_server("today");
    }
}
