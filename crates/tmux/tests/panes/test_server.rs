//! A private tmux server with a user's session, and functions that wait with a time limit.
//!
//! The tests call tmux through a script, which adds the server's configuration and clears the
//! caller's tmux environment. `TMUX_TMPDIR` is private too, so no test uses the default socket.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tempfile::TempDir;
use tmux::{BorderLabel, CreatedPane, PaneTag, ServerAddress, ServerNotice, TmuxProgram, TmuxServer};

/// How long a wait may take before the test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

const DEFAULT_CONF: &str = "";

/// User settings that may cause failures. `SHELL` is replaced by a program that only prints its
/// arguments and sleeps.
const HOSTILE_CONF: &str = r##"
set -g base-index 1
set -g pane-base-index 1
set -g renumber-windows on
set -g default-shell "SHELL"
set -g default-command "exec sleep 1000"
set -g remain-on-exit on
set -g synchronize-panes on
set -g destroy-unattached on
set -g detach-on-destroy off
set -g automatic-rename on
set -g mode-keys vi
set -g status-right "%H:%M #{pane_title}"
set-hook -g after-list-panes 'display-message -p "%exit spoofed"'
set-hook -g after-split-window 'display-message -p "%begin 1 2 3"'
set-hook -g after-new-window 'display-message "hello"'
set-hook -g window-layout-changed 'display-message -p "#{pane_title}"'
"##;

/// A tmux server in a private directory. Drop kills it.
pub(crate) struct TestServer {
    dir: TempDir,
    /// Path of the real tmux program.
    pub(crate) tmux: PathBuf,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.command(["kill-server"]).stderr(Stdio::null()).status());
    }
}

/// Runs a test with both configurations, for every tmux program.
pub(crate) fn on_all_servers(test: impl Fn(&TestServer)) {
    for tmux in programs() {
        for conf in [DEFAULT_CONF, HOSTILE_CONF] {
            println!("{} with {conf:?}", tmux.display());
            test(&TestServer::start(&tmux, conf));
        }
    }
}

/// Runs a test with the default configuration, for every tmux program.
pub(crate) fn on_default_servers(test: impl Fn(&TestServer)) {
    for tmux in programs() {
        println!("{}", tmux.display());
        test(&TestServer::start(&tmux, DEFAULT_CONF));
    }
}

/// Returns the tmux programs of `TEAMD_TEST_TMUX`, or the one in `PATH`.
fn programs() -> Vec<PathBuf> {
    match env::var_os("TEAMD_TEST_TMUX") {
        Some(list) if !list.is_empty() => env::split_paths(&list).collect(),
        _ => {
            let path = env::var_os("PATH").expect("PATH is set");
            let tmux = env::split_paths(&path).map(|dir| dir.join("tmux")).find(|file| file.exists());
            vec![tmux.expect("tmux is in PATH")]
        }
    }
}

impl TestServer {
    fn start(tmux: &Path, conf: &str) -> TestServer {
        let server = TestServer {
            dir: tempfile::tempdir().expect("a temporary directory can be created"),
            tmux: tmux.to_owned(),
        };
        let shell = server.write_script("shell", "printf '%s\\n' \"$@\"\nexec sleep 1000");
        server.write_file("conf", &conf.replace("SHELL", shell.to_str().expect("the path is UTF-8")));
        server.write_tmux_wrapper("");
        server.start_server();
        server
    }

    /// Starts the server with the user's session `main`, which has two panes and 200 columns by 50
    /// lines.
    pub(crate) fn start_server(&self) {
        self.run(
            ["new-session", "-d", "-s", "main", "-x", "200", "-y", "50", "--", "sleep", "1000", ";"]
                .iter()
                .chain(&["set-option", "-t", "=main:", "destroy-unattached", "off", ";"])
                .chain(&["split-window", "-t", "=main:", "--", "sleep", "1000"]),
        );
    }

    /// Writes the script through which the tests call tmux. The script runs the shell command
    /// `line` and then tmux.
    pub(crate) fn write_tmux_wrapper(&self, line: &str) {
        let dir = self.dir.path().display();
        let clean = format!(
            "export LC_ALL=C LANG=C TERM=screen HOME='{dir}' TMUX_TMPDIR='{dir}' MARK='{dir}/mark'\n\
             unset TMUX TMUX_PANE"
        );
        let exec = format!("exec '{}' -f '{dir}/conf' \"$@\"", self.tmux.display());
        self.write_script("tmux", &format!("{clean}\n{line}\n{exec}"));
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write_file(&self, name: &str, text: &str) {
        use std::io::Write;
        let mut file = fs::File::create(self.path(name)).expect("the file can be created");
        file.write_all(text.as_bytes()).expect("the file can be written");
    }

    pub(crate) fn write_script(&self, name: &str, text: &str) -> PathBuf {
        // A child process writes the script. If this process had the script open for writing while
        // another thread forks, the script could not be executed until the forked process calls
        // exec.
        self.write_file(&format!("{name}.text"), &format!("#!/bin/sh\n{text}\n"));
        let mut copy = Command::new("install");
        copy.args(["-m", "755"]).arg(self.path(format!("{name}.text"))).arg(self.path(name));
        assert!(copy.status().expect("install runs").success());
        self.path(name)
    }

    pub(crate) fn make_fifo(&self, name: &str) -> PathBuf {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().expect("mkfifo runs").success());
        self.path(name)
    }

    pub(crate) fn address(&self) -> ServerAddress {
        ServerAddress::Path(self.path("socket"))
    }

    pub(crate) fn program(&self) -> TmuxProgram {
        TmuxProgram(self.path("tmux"))
    }

    /// Returns a tmux command of the user.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.path("tmux"));
        command.env_remove("TMUX").arg("-u").arg("-S").arg(self.path("socket")).args(args);
        command
    }

    /// Runs a tmux command of the user, and returns its output.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let output = self.command(args).output().expect("tmux runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Connects to the server with the crate under test. Returns the connection and its notices.
    pub(crate) fn connect(&self) -> (TmuxServer, Receiver<ServerNotice>) {
        let (sender, notices) = channel();
        // The receiver may be dropped at the end of a test, before the server has exited.
        let notice = Box::new(move |notice| sender.send(notice).unwrap_or_default());
        let server = TmuxServer::connect_with(&self.program(), &self.address(), notice);
        (server.unwrap_or_else(|error| panic!("{error}")), notices)
    }

    /// Attaches a user's client to the session `main`. Drop kills the client.
    pub(crate) fn attach_user(&self) -> AttachedUser {
        self.run(["set-hook", "-g", "client-attached[70]", "wait-for -S attached"]);
        let program = self.path("tmux").display().to_string();
        let line = format!(
            "stty cols 200 rows 50; exec '{program}' -u -S '{}' attach -t =main:",
            self.path("socket").display()
        );
        let mut script = Command::new("script");
        script.args(["-qfc", &line, "/dev/null"]).env("TERM", "screen").env_remove("TMUX");
        script.env("SSH_AUTH_SOCK", "/a/socket").env("DISPLAY", ":7");
        script.stdin(Stdio::piped()).stdout(Stdio::null());
        let user = AttachedUser(script.spawn().expect("script(1) runs"));
        self.wait_for("attached");
        self.run(["set-hook", "-gu", "client-attached[70]"]);
        user
    }

    /// Blocks until `wait-for -S` signals the tmux channel.
    pub(crate) fn wait_for(&self, channel: &str) {
        let mut child = self.command(["wait-for", channel]).spawn().expect("tmux runs");
        let id = child.id();
        let (sender, exit) = std::sync::mpsc::channel();
        let waiter = thread::spawn(move || sender.send(child.wait()));
        if exit.recv_timeout(TIMEOUT).is_err() {
            signal("KILL", id);
            panic!("no signal on {channel}");
        }
        drop(waiter.join());
    }

    /// Returns the names of all of teamd's sessions.
    pub(crate) fn hidden_sessions(&self) -> Vec<String> {
        let names = self.run(["list-sessions", "-F", "#{session_name}"]);
        names.lines().filter(|name| name.starts_with("_teamd-")).map(ToOwned::to_owned).collect()
    }
}

/// A user's client in a terminal of `script(1)`.
pub(crate) struct AttachedUser(Child);

impl Drop for AttachedUser {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Sends a signal, such as `KILL`.
pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "kill -s {name} {pid}");
}

/// Runs a function that may block. Panics if it takes longer than [`TIMEOUT`].
pub(crate) fn with_timeout<T: Send + 'static>(
    description: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, done) = channel();
    thread::spawn(move || sender.send(run()));
    done.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("{description}: not within {TIMEOUT:?}"))
}

/// Calls `check` until it returns a value. For changes without an event, such as output of a pane
/// that the server has yet to read.
pub(crate) fn wait_until<T>(description: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(Instant::now() < end, "{description}: not within {TIMEOUT:?}");
        thread::yield_now();
    }
}

/// Reads a FIFO to its end.
pub(crate) fn read(fifo: PathBuf) -> Vec<u8> {
    with_timeout("the end of the FIFO", move || fs::read(fifo).expect("the FIFO can be read"))
}

pub(crate) fn strings<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Vec<String> {
    texts.into_iter().map(|text| text.as_ref().to_owned()).collect()
}

pub(crate) fn tag(name: &str) -> PaneTag {
    name.parse().expect("the name is a valid pane tag")
}

pub(crate) fn label(text: &str) -> BorderLabel {
    BorderLabel { name: text.into(), color: "orange".into(), state: text.into(), task: text.into() }
}

/// Tags and pipes a new pane, as the daemon does. The output is discarded.
pub(crate) fn tag_created(
    server: &mut TmuxServer,
    created: &CreatedPane,
    tag: &PaneTag,
    label: &BorderLabel,
) {
    let discard = ["/bin/sh", "-c", "exec cat >/dev/null"].map(PathBuf::from);
    let outcome = server.tag_and_pipe(created, tag, label, &discard, None).unwrap();
    outcome.tagged.and(outcome.window_configured).and(outcome.piped).unwrap();
}

/// Returns a command that only sleeps.
pub(crate) fn idle_command() -> Vec<String> {
    strings(["sleep", "1000"])
}
