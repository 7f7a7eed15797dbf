//! The test environment: directories, a tmux server, and functions that run programs in it, read
//! its files and wait for conditions. [`crate::leak_check`] shuts it down.

use crate::command_output::CommandOutput;
use crate::dir_watcher::{TIMEOUT, TreeWatcher};
use crate::ignored_signals::accept_signals_in_children;
use crate::processes::TaggedProcesses;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The environment of one test. Dropping it kills its processes and deletes its directory.
pub struct TestEnv {
    directory: TempDir,
    watcher: TreeWatcher,
    /// Additional environment variables for all programs of the test environment.
    pub variables: Vec<(String, String)>,
    /// Whether the test has killed a process, which may have left its locks and temporary files.
    pub(crate) has_killed: AtomicBool,
}

impl Default for TestEnv {
    fn default() -> TestEnv {
        TestEnv::new()
    }
}

impl TestEnv {
    /// Creates the directories and a tmux server with a session of 200×50. Starts no daemon.
    pub fn new() -> TestEnv {
        TestEnv::with_tmux_conf("")
    }

    /// As [`TestEnv::new`], with a daemon started by `teamctl up`.
    pub fn with_daemon() -> TestEnv {
        let env = TestEnv::new();
        env.start_daemon();
        env
    }

    /// As [`TestEnv::with_daemon`], with a team `survey` that has only its lead.
    pub fn with_team() -> TestEnv {
        let env = TestEnv::with_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        env
    }

    /// As [`TestEnv::new`], with this configuration of the tmux server.
    pub fn with_tmux_conf(conf: &str) -> TestEnv {
        TestEnv::from_temp_dir(tempfile::Builder::new().prefix("teamd-").tempdir(), conf)
    }

    /// As [`TestEnv::new`], but below `parent`, for example on another file system.
    pub fn in_directory(parent: &Path) -> TestEnv {
        TestEnv::from_temp_dir(tempfile::Builder::new().prefix("teamd-").tempdir_in(parent), "")
    }

    fn from_temp_dir(directory: std::io::Result<TempDir>, conf: &str) -> TestEnv {
        accept_signals_in_children();
        let directory = directory.expect("the directory can be created");
        for name in ["home", "root", "state", "run", "out"] {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).expect("the directory can be created");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))
                .expect("the permissions can be set");
        }
        let watcher = TreeWatcher::new(directory.path());
        let env = TestEnv { directory, watcher, variables: Vec::new(), has_killed: AtomicBool::new(false) };
        write_harness_file(&env.path("tmux.conf"), conf);
        env.start_tmux_server("user");
        env
    }

    /// The path of `name` in the test environment's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The root, which replaces `~/.claude`.
    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// The socket of the tmux server.
    pub fn tmux_socket(&self) -> PathBuf {
        self.path("tmux")
    }

    /// The environment entry that all processes of the test environment have.
    pub fn process_tag(&self) -> String {
        format!("TEST_DIR={}", self.directory.path().display())
    }

    /// Creates a command with only the environment variables of the test environment. Of this
    /// process's variables it has only `PATH`.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let programs = crate::programs();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().stdin(Stdio::null()).current_dir(self.directory.path());
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.env("HOME", self.path("home"));
        command.env("TEAMD_ROOT", self.root());
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("TMUX_TMPDIR", self.path("run"));
        command.env("TERM", "xterm-256color").env("LANG", "C").env("SHELL", "/bin/sh");
        command.env("TEST_DIR", self.directory.path());
        // `posix` runs the programs with the portable implementation of the crate `platform`.
        command.envs(
            crate::platform_facility::platform_of_tested_programs().map(|name| ("TEST_PLATFORM", name)),
        );
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the tmux server with a session. If a server was just killed, a program that it was
    /// starting may still have its socket open, and then no new server starts for a moment.
    pub fn start_tmux_server(&self, session: &str) {
        let arguments = ["new-session", "-d", "-s", session, "-x", "200", "-y", "50", "--", "cat", "-"];
        self.wait_until("a tmux server starts", || (self.run_tmux(&arguments).code == 0).then_some(()));
    }

    /// Runs a tmux command, which must succeed, on the test environment's server. Returns its
    /// output without the newlines at the end.
    pub fn tmux<const N: usize>(&self, args: [&str; N]) -> String {
        let output = self.run_tmux(&args);
        assert_eq!(output.code, 0, "{output:#?}");
        output.stdout.trim_end().to_owned()
    }

    /// Runs a tmux command, which may fail, on the test environment's server.
    pub fn run_tmux(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.command("tmux");
        command.arg("-u").arg("-S").arg(self.tmux_socket()).arg("-f").arg(self.path("tmux.conf")).args(args);
        run_command(command)
    }

    /// Runs teamctl as the lead.
    pub fn teamctl<const N: usize>(&self, args: [&str; N]) -> CommandOutput {
        self.teamctl_with(&args, &[])
    }

    /// Runs teamctl with additional environment variables.
    pub fn teamctl_with(&self, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = self.command(crate::programs().join("teamctl"));
        command.args(args).envs(variables.iter().copied());
        run_command(command)
    }

    /// Runs `teamd-shim hook EVENT` with additional environment variables.
    pub fn hook(&self, event: &str, variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = self.command(crate::programs().join("teamd-shim"));
        command.args(["hook", event]).envs(variables.iter().copied());
        run_command(command)
    }

    /// Starts teamctl without waiting for its end. Its output is piped.
    pub fn start_teamctl<const N: usize>(&self, args: [&str; N]) -> std::process::Child {
        let mut command = self.command(crate::programs().join("teamctl"));
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("teamctl starts")
    }

    /// Runs `teamctl --json`, which must succeed, and returns its JSON output.
    pub fn json<const N: usize>(&self, args: [&str; N]) -> Value {
        let mut all_args = vec!["--json"];
        all_args.extend(args);
        let output = self.teamctl_with(&all_args, &[]);
        assert_eq!(output.code, 0, "{output:#?}");
        output.json()
    }

    /// The entry of a member in `teamctl --json status`. `None` if no team has such a member.
    pub fn member(&self, name: &str) -> Option<Value> {
        let status = self.json(["status"]);
        let teams = status["teams"].as_array()?.iter();
        teams
            .flat_map(|team| team["members"].as_array().cloned().unwrap_or_default())
            .find(|member| member["name"] == name)
    }

    /// Waits until `condition` returns `Some`, and returns its value. Checks the condition again
    /// after each write in the test environment, and at least every second. `description` says what
    /// is expected.
    ///
    /// # Panics
    /// After [`TIMEOUT`], with `description` and the state of the test environment.
    pub fn wait_until<T>(&self, description: &str, condition: impl FnMut() -> Option<T>) -> T {
        self.wait_until_within(TIMEOUT, description, condition)
    }

    /// As [`TestEnv::wait_until`], with another timeout, for example for programs that start
    /// slowly.
    ///
    /// # Panics
    /// After `timeout`, with `description` and the state of the test environment.
    pub fn wait_until_within<T>(
        &self,
        timeout: Duration,
        description: &str,
        mut condition: impl FnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(result) = condition() {
                return result;
            }
            assert!(
                self.watcher.wait(deadline),
                "{description}: not within {timeout:?}\n{}",
                self.dump_state()
            );
        }
    }

    /// Runs `action`. If it takes longer than `timeout`, all processes of the test environment are
    /// killed. `action` then fails where it waits for one of them, and the failure shows the place.
    pub fn with_timeout<T>(&self, timeout: Duration, action: impl FnOnce() -> T) -> T {
        let (done_sender, done_receiver) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if done_receiver.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                    TaggedProcesses::with_tag(&self.process_tag()).kill();
                }
            });
            let result = action();
            drop(done_sender);
            result
        })
    }

    /// Waits until no file in the test environment is read or written for `span`, which is less
    /// than a second. Waits for two seconds at most.
    pub fn wait_until_quiet(&self, span: Duration) {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end && self.watcher.wait(Instant::now() + span) {}
    }

    /// Waits for `span`. Returns false as soon as a file in the test environment is written.
    pub fn stays_quiet_for(&self, span: Duration) -> bool {
        self.watcher.stays_quiet(Instant::now() + span)
    }

    /// Reads the tasks of a team, in no particular order.
    pub fn tasks(&self, team: &str) -> Vec<Value> {
        let entries = std::fs::read_dir(self.root().join("tasks").join(team)).expect("the team has tasks");
        let paths = entries.map(|entry| entry.expect("the directory is readable").path());
        let task_paths = paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "json"));
        let read = |path| {
            serde_json::from_slice(&std::fs::read(path).expect("the task is readable"))
                .expect("the task is valid JSON")
        };
        task_paths.map(read).collect()
    }

    /// Reads the messages of an inbox. Empty if the file is missing.
    pub fn inbox(&self, team: &str, name: &str) -> Vec<Value> {
        let path = self.root().join(format!("teams/{team}/inboxes/{name}.json"));
        match std::fs::read(path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).expect("an inbox is a complete JSON array at any time")
            }
            Err(_) => Vec::new(),
        }
    }

    /// Reads a file of the test environment. Empty if the file can't be read.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The path of the scripted agent, as a command-line argument.
    pub fn scripted_agent_path(&self) -> String {
        crate::programs().join("scripted-agent").display().to_string()
    }

    /// Writes an executable file.
    pub fn write_script(&self, name: &str, text: &str) -> PathBuf {
        let text_path = self.path(&format!("{name}.text"));
        write_harness_file(&text_path, text);
        self.install_program(&text_path, name)
    }

    /// Copies the file at `from`, as an executable file.
    ///
    /// A child process writes it, not this process. If another thread forked while this process had
    /// the file open for writing, the file could not be executed (`ETXTBSY`) until the new process
    /// calls exec.
    pub fn install_program(&self, from: &Path, name: &str) -> PathBuf {
        let path = self.path(name);
        let status = Command::new("install").args(["-m", "755"]).arg(from).arg(&path).status();
        assert!(status.expect("install starts").success(), "install can't create {}", path.display());
        path
    }
}

/// Runs a command and waits until it ends. There is no timeout: teamctl has its own deadlines, and
/// CI limits the duration of all tests.
pub fn run_command(mut command: Command) -> CommandOutput {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let status = output.status;
    CommandOutput {
        command: format!("{:?} {:?}", command.get_program(), command.get_args().collect::<Vec<_>>()),
        code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Writes a file that no program under test writes.
#[allow(clippy::disallowed_methods, reason = "a file of the harness, not below the root")]
fn write_harness_file(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the file can be written");
}
