//! A fake daemon: starts a shim, sends it the daemon's messages and reads its reports.

use harness::{TaggedProcesses, TestEnv};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// The shim of ann, and the test's end of its connection to the daemon.
pub(super) struct FakeDaemon {
    pub(super) env: TestEnv,
    listener: UnixListener,
    pub(super) pid: u32,
    shim: Option<ShimChild>,
    reader: BufReader<UnixStream>,
    stream: UnixStream,
    wake: OwnedFd,
}

impl FakeDaemon {
    /// Starts the shim of ann without a pane and lets it start an agent with `turns`. Its output
    /// goes to `out/pane`, or to the file `log` if the agent is headless.
    pub(super) fn start(env: TestEnv, turns: &Value, log: Option<&str>) -> FakeDaemon {
        let (listener, socket) = listen(&env);
        let mut command = env.command(harness::programs().join("teamd-shim"));
        command
            .arg("run")
            .arg(spawn_id(&env))
            .arg("--socket")
            .arg(&socket)
            .arg("--state-dir")
            .arg(env.path("state"));
        if let Some(log) = log {
            command.arg("--headless").arg(env.path(log));
        }
        let out = std::fs::File::create(env.path("out/pane")).unwrap();
        let shim = ShimChild(command.stdout(out).stderr(Stdio::null()).spawn().unwrap());
        let pid = shim.0.id();
        FakeDaemon::from_listener(env, listener, turns, (pid, Some(shim)))
    }

    /// Starts the shim like [`FakeDaemon::start`], but in a tmux window named `ann`. The output of
    /// the pane is copied to `out/pane`.
    pub(super) fn start_in_pane(env: TestEnv, turns: &Value) -> FakeDaemon {
        let (listener, socket) = listen(&env);
        let socket = socket.display().to_string();
        let state = env.path("state").display().to_string();
        let shim = harness::programs().join("teamd-shim").display().to_string();
        let args = ["new-window", "-d", "-n", "ann", "-P", "-F", "#{pane_pid}", "--"];
        let pid = env
            .run_tmux(
                &[&args[..], &[&shim, "run", &spawn_id(&env), "--socket", &socket, "--state-dir", &state]]
                    .concat(),
            )
            .expect_success();
        let copy = format!("cat >{}", env.path("out/pane").display());
        env.tmux(["pipe-pane", "-t", "ann", &copy]);
        FakeDaemon::from_listener(env, listener, turns, (pid.trim().parse().unwrap(), None))
    }

    fn from_listener(
        env: TestEnv,
        listener: UnixListener,
        turns: &Value,
        (pid, shim): (u32, Option<ShimChild>),
    ) -> FakeDaemon {
        let (reader, stream, wake, hello) = accept(&listener);
        assert_eq!(hello["request"]["connect_shim"]["spawn_id"], spawn_id(&env));
        let mut daemon = FakeDaemon { env, listener, pid, shim, reader, stream, wake };
        daemon.send(&json!({"start_agent": daemon.start_agent_request(turns)}));
        daemon
    }

    /// The request that starts the agent. `turns` is a setup for turns, or has the `argv` of a
    /// long-lived program.
    fn start_agent_request(&self, turns: &Value) -> Value {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", harness::programs().display());
        let root = self.env.root();
        let environment = json!({
            "PATH": path, "HOME": self.env.path("home"), "XDG_STATE_HOME": self.env.path("state"),
            "TEST_DIR": self.env.process_tag().trim_start_matches("TEST_DIR="), "TEAMD_ROOT": root, "TEAMD_TEAM": "survey", "TEAMD_MEMBER": "ann",
            "TEAMD_SPAWN": spawn_id(&self.env),
        });
        let (cwd, state) = (self.env.root().parent().unwrap().to_owned(), self.env.path("state/own"));
        if turns["argv"].is_array() {
            return json!({"argv": turns["argv"], "cwd": cwd, "env": environment, "state_dir": state});
        }
        let mut setup = json!({
            "root": root, "team": "survey", "name": "ann", "color": "blue", "prompt": "", "is_respawn": false,
            "session_id": null,
        });
        setup.as_object_mut().unwrap().extend(turns.as_object().unwrap().clone());
        json!({"argv": [], "cwd": cwd, "env": environment, "state_dir": state, "turn_setup": setup})
    }

    /// Closes the connection, as a killed daemon does.
    pub(super) fn disconnect(&self) {
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// Accepts the shim's connection to the next daemon. Returns the turn status of its hello.
    pub(super) fn accept_reconnect(&mut self) -> Value {
        let (reader, stream, wake, hello) = accept(&self.listener);
        (self.reader, self.stream, self.wake) = (reader, stream, wake);
        let hello = &hello["request"]["connect_shim"];
        assert_eq!(hello["agent_pid"], self.pid);
        hello["turn_status"].clone()
    }

    /// Sends one message, split into lines as the daemon splits long messages.
    pub(super) fn send(&mut self, message: &Value) {
        let text: Vec<char> = message.to_string().chars().collect();
        let parts: Vec<String> = text.chunks(10_000).map(|part| part.iter().collect()).collect();
        let (last, parts) = parts.split_last().unwrap();
        parts.iter().for_each(|part| writeln!(self.stream, "{}", json!({"part": part})).unwrap());
        writeln!(self.stream, "{}", json!({"last": last})).unwrap();
    }

    pub(super) fn wake(&self) {
        rustix::io::write(&self.wake, b"\n").unwrap();
    }

    /// Reads messages of the shim until `select` returns a value for one of them, and returns that
    /// value. `what` is the text of the failure if the shim disconnects before.
    pub(super) fn receive_until<T>(&mut self, what: &str, mut select: impl FnMut(&Value) -> Option<T>) -> T {
        loop {
            let mut line = String::new();
            let read = self.reader.read_line(&mut line);
            assert!(
                read.is_ok_and(|read| read > 0),
                "{what}: the shim disconnected\n{}",
                self.env.dump_state()
            );
            if let Some(value) = select(&serde_json::from_str(&line).unwrap()) {
                return value;
            }
        }
    }

    /// Waits for a turn status for which `matches` returns true.
    pub(super) fn receive_turn_report(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        self.receive_until(what, |message| {
            message.get("turn_status").filter(|status| matches(status)).cloned()
        })
    }

    /// Waits until the command of a task has created `out/up`.
    pub(super) fn wait_until_task_runs(&self) {
        self.env.wait_until("the command of the task is running", || {
            self.env.path("out/up").exists().then_some(())
        });
    }

    /// Waits for the report that the agent is idle after turn number `turns`.
    pub(super) fn receive_idle(&mut self, turns: u64) -> Value {
        self.receive_turn_report("the agent is idle", |status| {
            status["activity"] == "idle" && status["turn_number"] == turns
        })
    }

    /// The agent's output in its pane so far.
    pub(super) fn pane_output(&self) -> String {
        self.env.read("out/pane")
    }

    pub(super) fn idle_notifications(&self) -> Vec<Value> {
        self.env.payloads_to_lead("ann", "idle_notification")
    }

    /// Waits for the exit report, confirms it, and waits until the shim and all its processes have
    /// exited.
    pub(super) fn finish(mut self) -> (TestEnv, Value) {
        let exit = self.receive_until("the agent exits", |message| message.get("exited").cloned());
        self.send(&json!("exit_recorded"));
        self.exit_code();
        std::fs::remove_file(self.env.path("run/play.sock")).unwrap();
        self.assert_no_processes();
        (self.env, exit)
    }

    /// Checks that no `sleep` process of the agent's turns is running.
    pub(super) fn assert_no_processes(&self) {
        let processes = TaggedProcesses::with_tag(&self.env.process_tag()).list();
        let processes: Vec<&String> = processes.iter().filter(|line| line.contains("sleep")).collect();
        assert!(processes.is_empty(), "{processes:#?}");
    }

    /// Waits until the shim has exited, and returns its exit code. `None` for a shim in a pane,
    /// which is no child of the test: its window closes when the shim exits.
    pub(super) fn exit_code(&mut self) -> Option<i32> {
        if let Some(shim) = &mut self.shim {
            return shim.0.wait().unwrap().code();
        }
        let windows = || self.env.tmux(["list-windows", "-a", "-F", "#{window_name}"]);
        self.env
            .wait_until("the window of the shim is closed", || (!windows().contains("ann")).then_some(()));
        None
    }

    /// Requests the end of the agent, and finishes like [`FakeDaemon::finish`].
    pub(super) fn stop(mut self) -> TestEnv {
        self.send(&json!({"end": {"grace_ms": 2000}}));
        self.finish().0
    }
}

/// A shim process that is killed when the test ends, also when the test fails.
struct ShimChild(Child);

impl Drop for ShimChild {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn listen(env: &TestEnv) -> (UnixListener, PathBuf) {
    let socket = env.path("run/play.sock");
    (UnixListener::bind(&socket).unwrap(), socket)
}

/// Accepts the shim's connection. Returns its reader and stream, the daemon's end of the wake
/// socket, and the shim's hello.
fn accept(listener: &UnixListener) -> (BufReader<UnixStream>, UnixStream, OwnedFd, Value) {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(harness::TIMEOUT)).unwrap();
    let mut bytes = [0; 16 * 1024];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let result =
        recvmsg(&stream, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::empty()).unwrap();
    let wake = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    let hello = serde_json::from_slice(&bytes[..result.bytes]).unwrap();
    (BufReader::new(stream.try_clone().unwrap()), stream, wake.unwrap(), hello)
}

/// The id of the only spawn in the test environment.
fn spawn_id(env: &TestEnv) -> String {
    let directory = env.root().parent().unwrap().file_name().unwrap().to_owned();
    format!("x-{}", directory.display())
}
