//! The environment: everything that a test needs, and the way to be rid of it.

use crate::command_output::CommandOutput;
use crate::dir_watcher::{TIMEOUT, TreeWatcher};
use crate::processes::TaggedProcesses;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// One test's world.
pub struct TestEnv {
    directory: TempDir,
    watcher: TreeWatcher,
    /// Further variables for everything that runs here.
    pub variables: Vec<(String, String)>,
}

impl Default for TestEnv {
    fn default() -> TestEnv {
        TestEnv::new()
    }
}

impl TestEnv {
    /// Directories and a tmux server with an ordinary session of 200×50; no daemon yet.
    pub fn new() -> TestEnv {
        TestEnv::with_tmux_conf("")
    }

    /// The same, and a daemon that is ready, started as a user would.
    pub fn with_daemon() -> TestEnv {
        let env = TestEnv::new();
        env.start_daemon();
        env
    }

    /// The same, and a team called `survey` with nobody but its lead.
    pub fn with_team() -> TestEnv {
        let env = TestEnv::with_daemon();
        env.teamctl(["create", "survey"]).expect_success();
        env
    }

    /// An empty one, on a server with this configuration.
    pub fn with_tmux_conf(conf: &str) -> TestEnv {
        TestEnv::from_temp_dir(tempfile::Builder::new().prefix("teamd-").tempdir(), conf)
    }

    /// An empty one in this directory: on a disk of its own, say.
    pub fn in_directory(place: &Path) -> TestEnv {
        TestEnv::from_temp_dir(tempfile::Builder::new().prefix("teamd-").tempdir_in(place), "")
    }

    fn from_temp_dir(directory: std::io::Result<TempDir>, conf: &str) -> TestEnv {
        let directory = directory.expect("a directory can be made");
        for name in ["home", "root", "state", "run", "out"] {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).expect("a directory can be made");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        }
        let watch = TreeWatcher::new(directory.path());
        let env = TestEnv { directory, watcher: watch, variables: Vec::new() };
        write_harness_file(&env.path("tmux.conf"), conf);
        env.tmux(["new-session", "-d", "-s", "user", "-x", "200", "-y", "50", "--", "cat", "-"]);
        env
    }

    /// A path in the environment.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The root: what would be `~/.claude`.
    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// The socket of the environment's tmux server.
    pub fn tmux_socket(&self) -> PathBuf {
        self.path("tmux")
    }

    /// Every process of the environment carries this entry in its environment.
    pub fn process_tag(&self) -> String {
        format!("TEST_DIR={}", self.directory.path().display())
    }

    /// A command with the environment of the environment and nothing else.
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
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs tmux on the environment's server and returns what it printed.
    pub fn tmux<const N: usize>(&self, arguments: [&str; N]) -> String {
        let ran = self.run_tmux(&arguments);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.stdout.trim_end().to_owned()
    }

    /// The same, whatever it came to.
    pub fn run_tmux(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.tmux_socket())
            .arg("-f")
            .arg(self.path("tmux.conf"))
            .args(arguments);
        run_command(command)
    }

    /// Runs teamctl as the lead.
    pub fn teamctl<const N: usize>(&self, arguments: [&str; N]) -> CommandOutput {
        self.teamctl_with(&arguments, &[])
    }

    /// Runs teamctl with further variables.
    pub fn teamctl_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = self.command(crate::programs().join("teamctl"));
        command.args(arguments).envs(variables.iter().copied());
        run_command(command)
    }

    /// Runs `teamd-shim hook EVENT` with further variables.
    pub fn hook(&self, event: &str, variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = self.command(crate::programs().join("teamd-shim"));
        command.args(["hook", event]).envs(variables.iter().copied());
        run_command(command)
    }

    /// Starts teamctl and lets it run.
    pub fn start_teamctl<const N: usize>(&self, arguments: [&str; N]) -> std::process::Child {
        let mut command = self.command(crate::programs().join("teamctl"));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("teamctl starts")
    }

    /// `teamctl … --json`, which must succeed.
    pub fn json<const N: usize>(&self, arguments: [&str; N]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let ran = self.teamctl_with(&all, &[]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()
    }

    /// A member's line of `status --json`.
    pub fn member(&self, name: &str) -> Option<Value> {
        let status = self.json(["status"]);
        let teams = status["teams"].as_array()?.iter();
        teams
            .flat_map(|team| team["members"].as_array().cloned().unwrap_or_default())
            .find(|m| m["name"] == name)
    }

    /// Waits until `condition` gives something, and gives that. Looks again whenever something in the environment
    /// is written.
    ///
    /// # Panics
    /// After 30 s, with everything that can be seen of the environment.
    pub fn wait_until<T>(&self, what: &str, condition: impl FnMut() -> Option<T>) -> T {
        self.wait_until_within(TIMEOUT, what, condition)
    }

    /// The same with a patience of one's own, for programs that take long to start.
    ///
    /// # Panics
    /// After that, as `TestEnv::until` does.
    pub fn wait_until_within<T>(
        &self,
        patience: Duration,
        what: &str,
        mut condition: impl FnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(result) = condition() {
                return result;
            }
            assert!(self.watcher.wait(deadline), "{what}: not within {patience:?}\n{}", self.dump_state());
        }
    }

    /// Ends everything of the environment where `act` takes longer: whoever waits for some of it finds it dead, and says where.
    pub fn with_timeout<T>(&self, patience: Duration, act: impl FnOnce() -> T) -> T {
        let (done, ended) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                    TaggedProcesses::with_tag(&self.process_tag()).kill();
                }
            });
            let result = act();
            drop(done);
            result
        })
    }

    /// Waits until nothing in the environment is written for `span`, for two seconds at most.
    pub fn wait_until_quiet(&self, span: Duration) {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end && self.watcher.wait(Instant::now() + span) {}
    }

    /// Nothing is written in the environment for so long.
    pub fn stays_quiet_for(&self, span: Duration) -> bool {
        self.watcher.stays_quiet(Instant::now() + span)
    }

    /// A team's tasks as they stand, in no order.
    pub fn tasks(&self, team: &str) -> Vec<Value> {
        let all = std::fs::read_dir(self.root().join("tasks").join(team)).expect("the team has tasks");
        let paths = all.map(|entry| entry.expect("a directory is read").path());
        let tasks = paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "json"));
        let read = |path| {
            serde_json::from_slice(&std::fs::read(path).expect("a task is there")).expect("it is whole")
        };
        tasks.map(read).collect()
    }

    /// An inbox as it stands.
    pub fn inbox(&self, team: &str, name: &str) -> Vec<Value> {
        let path = self.root().join(format!("teams/{team}/inboxes/{name}.json"));
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).expect("an inbox is a whole array at every instant"),
            Err(_) => Vec::new(),
        }
    }

    /// A file of the environment, or nothing.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The scripted agent's program, as a word for a command line.
    pub fn scripted_agent_path(&self) -> String {
        crate::programs().join("scripted-agent").display().to_string()
    }

    /// An executable file. Written by a child: a program that this process had open for writing while another
    /// thread forked is busy until that fork has become its own program.
    pub fn write_script(&self, name: &str, text: &str) -> PathBuf {
        let (path, plain) = (self.path(name), self.path(&format!("{name}.text")));
        write_harness_file(&plain, text);
        let copied = Command::new("install").args(["-m", "755"]).arg(&plain).arg(&path).status();
        assert!(copied.expect("install is there").success(), "{} can be made", path.display());
        path
    }
}

/// Runs to the end. A program that hangs is what the CI's limit is for; teamctl has deadlines of its own.
pub(crate) fn run_command(mut command: Command) -> CommandOutput {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let status = output.status;
    CommandOutput {
        command: format!("{:?} {:?}", command.get_program(), command.get_args().collect::<Vec<_>>()),
        code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The harness's own way to write a file.
#[allow(clippy::disallowed_methods, reason = "a test's own file, before anything runs")]
fn write_harness_file(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the test environment can be written");
}
