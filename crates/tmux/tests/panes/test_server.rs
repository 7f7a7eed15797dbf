//! A private tmux server with a user's session in it, and ways to wait that end.
//!
//! The program under test is a script that adds the server's own configuration and an environment in which nothing of
//! the caller's is left; it never sees the default socket, since `TMUX_TMPDIR` is private as well.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tempfile::TempDir;
use tmux::{BorderLabel, CreatedPane, PaneTag, ServerAddress, ServerNotice, TmuxProgram, TmuxServer};

/// How long anything may take before a test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

const DEFAULT_CONF: &str = "";

/// What users have in their configurations. The shell is one that would print its arguments and run nothing.
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

pub(crate) struct TestServer {
    dir: TempDir,
    /// The real tmux.
    pub(crate) tmux: PathBuf,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.command(["kill-server"]).stderr(Stdio::null()).status());
    }
}

/// Runs a test on every kind of server.
pub(crate) fn on_all_servers(test: impl Fn(&TestServer)) {
    for tmux in programs() {
        for conf in [DEFAULT_CONF, HOSTILE_CONF] {
            println!("{} with {conf:?}", tmux.display());
            test(&TestServer::start(&tmux, conf));
        }
    }
}

/// Runs a test on a plain server of every version.
pub(crate) fn on_default_servers(test: impl Fn(&TestServer)) {
    for tmux in programs() {
        println!("{}", tmux.display());
        test(&TestServer::start(&tmux, DEFAULT_CONF));
    }
}

fn programs() -> Vec<PathBuf> {
    match env::var_os("TEAMD_TEST_TMUX") {
        Some(list) if !list.is_empty() => env::split_paths(&list).collect(),
        _ => {
            let path = env::var_os("PATH").expect("a PATH");
            let found = env::split_paths(&path).map(|dir| dir.join("tmux")).find(|file| file.exists());
            vec![found.expect("these tests need tmux in PATH")]
        }
    }
}

impl TestServer {
    fn start(tmux: &Path, conf: &str) -> TestServer {
        let bench = TestServer { dir: tempfile::tempdir().expect("a directory"), tmux: tmux.to_owned() };
        let shell = bench.write_script("shell", "printf '%s\\n' \"$@\"\nexec sleep 1000");
        bench.write_file("conf", &conf.replace("SHELL", shell.to_str().expect("UTF-8")));
        bench.write_tmux_wrapper("");
        bench.start_server();
        bench
    }

    /// A user's session `main` of two panes, 200 by 50.
    pub(crate) fn start_server(&self) {
        self.run(
            ["new-session", "-d", "-s", "main", "-x", "200", "-y", "50", "--", "sleep", "1000", ";"]
                .iter()
                .chain(&["set-option", "-t", "=main:", "destroy-unattached", "off", ";"])
                .chain(&["split-window", "-t", "=main:", "--", "sleep", "1000"]),
        );
    }

    /// Makes the program under test anew, with a line of shell before tmux.
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
        let mut file = fs::File::create(self.path(name)).expect("a file");
        file.write_all(text.as_bytes()).expect("a file written");
    }

    pub(crate) fn write_script(&self, name: &str, text: &str) -> PathBuf {
        // By a child: a program that this process had open for writing while another thread forked is busy
        // until that fork has become its own program.
        self.write_file(&format!("{name}.text"), &format!("#!/bin/sh\n{text}\n"));
        let mut copy = Command::new("install");
        copy.args(["-m", "755"]).arg(self.path(format!("{name}.text"))).arg(self.path(name));
        assert!(copy.status().expect("install").success());
        self.path(name)
    }

    pub(crate) fn make_fifo(&self, name: &str) -> PathBuf {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().expect("mkfifo").success());
        self.path(name)
    }

    pub(crate) fn address(&self) -> ServerAddress {
        ServerAddress::Path(self.path("socket"))
    }

    pub(crate) fn program(&self) -> TmuxProgram {
        TmuxProgram(self.path("tmux"))
    }

    /// The user's own tmux.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.path("tmux"));
        command.env_remove("TMUX").arg("-u").arg("-S").arg(self.path("socket")).args(args);
        command
    }

    /// Runs the user's own tmux, and gives what it printed.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let output = self.command(args).output().expect("tmux runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn connect(&self) -> (TmuxServer, Receiver<ServerNotice>) {
        let (sender, notices) = channel();
        // A test may be over before its server is.
        let notice = Box::new(move |notice| sender.send(notice).unwrap_or_default());
        let server = TmuxServer::connect_with(&self.program(), &self.address(), notice);
        (server.unwrap_or_else(|error| panic!("{error}")), notices)
    }

    /// A person in front of session `main`; gone when dropped.
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
        let person = AttachedUser(script.spawn().expect("these tests need script(1)"));
        self.wait_for("attached");
        self.run(["set-hook", "-gu", "client-attached[70]"]);
        person
    }

    /// Blocks until somebody signals that channel.
    pub(crate) fn wait_for(&self, channel: &str) {
        let mut child = self.command(["wait-for", channel]).spawn().expect("tmux runs");
        let id = child.id();
        let (sender, ended) = std::sync::mpsc::channel();
        let waiter = thread::spawn(move || sender.send(child.wait()));
        if ended.recv_timeout(TIMEOUT).is_err() {
            signal("KILL", id);
            panic!("nobody signalled {channel}");
        }
        drop(waiter.join());
    }

    /// The hidden sessions that are there.
    pub(crate) fn hidden_sessions(&self) -> Vec<String> {
        let names = self.run(["list-sessions", "-F", "#{session_name}"]);
        names.lines().filter(|name| name.starts_with("_teamd-")).map(ToOwned::to_owned).collect()
    }
}

pub(crate) struct AttachedUser(Child);

impl Drop for AttachedUser {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "kill -s {name} {pid}");
}

/// Runs something that may block, for as long as our patience lasts.
pub(crate) fn with_timeout<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = channel();
    thread::spawn(move || sender.send(run()));
    done.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("{what} took too long"))
}

/// Asks again until there is an answer. For what no event tells: that the server has read a pane's terminal.
pub(crate) fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} never came");
        thread::yield_now();
    }
}

/// Reads a fifo to its end.
pub(crate) fn read(fifo: PathBuf) -> Vec<u8> {
    with_timeout("the fifo", move || fs::read(fifo).expect("the fifo read"))
}

pub(crate) fn strings<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Vec<String> {
    words.into_iter().map(|word| word.as_ref().to_owned()).collect()
}

pub(crate) fn tag(name: &str) -> PaneTag {
    name.parse().expect("an owner")
}

pub(crate) fn label(text: &str) -> BorderLabel {
    BorderLabel { name: text.into(), color: "orange".into(), state: text.into(), task: text.into() }
}

/// Claimed as agents' panes are, with a recorder that keeps nothing.
pub(crate) fn tag_created(server: &mut TmuxServer, made: CreatedPane, owner: &PaneTag, label: &BorderLabel) {
    let record = ["/bin/sh", "-c", "exec cat >/dev/null"].map(PathBuf::from);
    let claimed = server.tag_and_pipe(made, owner, label, &record, None).unwrap();
    claimed.tagged.and(claimed.window_configured).and(claimed.piped).unwrap();
}

/// Sits in a pane and does nothing.
pub(crate) fn idle_command() -> Vec<String> {
    strings(["sleep", "1000"])
}
