//! A daemon that the test plays, and the shim that it has started.

use harness::{TaggedProcesses, TestEnv};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// An environment whose daemon is the test, with a team of the lead, ann and bob on disk.
pub(super) struct FakeDaemon {
    pub(super) env: TestEnv,
    listener: UnixListener,
    pub(super) pid: u32,
    shim: Option<ShimChild>,
    received: BufReader<UnixStream>,
    stream: UnixStream,
    wake: OwnedFd,
}

impl FakeDaemon {
    /// Starts the shim of ann, and lets it start the agent with these turns.
    pub(super) fn start(env: TestEnv, turns: &Value, log: Option<&str>) -> FakeDaemon {
        let (listener, socket) = listen(&env);
        let mut command = env.command(harness::programs().join("teamd-shim"));
        command.arg("run").arg("x-1").arg("--socket").arg(&socket);
        if let Some(log) = log {
            command.arg("--headless").arg(env.path(log));
        }
        let out = std::fs::File::create(env.path("out/pane")).unwrap();
        let shim = ShimChild(command.stdout(out).stderr(Stdio::null()).spawn().unwrap());
        let pid = shim.0.id();
        FakeDaemon::from_listener(env, listener, turns, (pid, Some(shim)))
    }

    /// The same in a pane of a window of its own, which is called `ann`; what it shows is kept as above.
    pub(super) fn start_in_pane(env: TestEnv, turns: &Value) -> FakeDaemon {
        let (listener, socket) = listen(&env);
        let socket = socket.display().to_string();
        let shim = harness::programs().join("teamd-shim").display().to_string();
        let words = ["new-window", "-d", "-n", "ann", "-P", "-F", "#{pane_pid}", "--"];
        let pid = env
            .run_tmux(&[&words[..], &[&shim, "run", "x-1", "--socket", &socket]].concat())
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
        let (heard, stream, wake, hello) = accept(&listener);
        assert_eq!(hello["request"]["connect_shim"]["spawn_id"], "x-1");
        let mut play = FakeDaemon { env, listener, pid, shim, received: heard, stream, wake };
        play.send(&json!({"start_agent": play.send_start_agent(turns)}));
        play
    }

    fn send_start_agent(&self, turns: &Value) -> Value {
        let env = |name: &str| std::env::var(name).unwrap_or_default();
        let path = format!("{}:{}", harness::programs().display(), env("PATH"));
        let root = self.env.root();
        let environment = json!({
            "PATH": path, "HOME": self.env.path("home"), "XDG_STATE_HOME": self.env.path("state"),
            "TEST_DIR": self.env.process_tag().trim_start_matches("TEST_DIR="), "TEAMD_ROOT": root, "TEAMD_TEAM": "survey", "TEAMD_MEMBER": "ann",
        });
        let (cwd, state) = (self.env.root().parent().unwrap().to_owned(), self.env.path("state/own"));
        if turns["argv"].is_array() {
            return json!({"argv": turns["argv"], "cwd": cwd, "env": environment, "state_dir": state});
        }
        let mut all = json!({
            "root": root, "team": "survey", "name": "ann", "color": "blue", "prompt": "", "is_respawn": false,
            "session_id": null,
        });
        all.as_object_mut().unwrap().extend(turns.as_object().unwrap().clone());
        json!({"argv": [], "cwd": cwd, "env": environment, "state_dir": state, "setup": all})
    }

    /// The daemon dies.
    pub(super) fn disconnect(&self) {
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// Accepts the shim's connection to the next daemon. Returns the turn status of its hello.
    pub(super) fn accept_reconnect(&mut self) -> Value {
        let (heard, stream, wake, hello) = accept(&self.listener);
        (self.received, self.stream, self.wake) = (heard, stream, wake);
        let hello = &hello["request"]["connect_shim"];
        assert_eq!(hello["agent_pid"], self.pid);
        hello["turn_status"].clone()
    }

    pub(super) fn send(&mut self, word: &Value) {
        let text: Vec<char> = word.to_string().chars().collect();
        let parts: Vec<String> = text.chunks(10_000).map(|part| part.iter().collect()).collect();
        let (last, parts) = parts.split_last().unwrap();
        parts.iter().for_each(|part| writeln!(self.stream, "{}", json!({"part": part})).unwrap());
        writeln!(self.stream, "{}", json!({"last": last})).unwrap();
    }

    pub(super) fn wake(&self) {
        rustix::io::write(&self.wake, b"\n").unwrap();
    }

    /// The next word that `wanted` takes; others are passed over.
    pub(super) fn receive_until<T>(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> Option<T>) -> T {
        loop {
            let mut line = String::new();
            let read = self.received.read_line(&mut line);
            assert!(
                read.is_ok_and(|read| read > 0),
                "{what}: the shim disconnected\n{}",
                self.env.dump_state()
            );
            if let Some(found) = wanted(&serde_json::from_str(&line).unwrap()) {
                return found;
            }
        }
    }

    pub(super) fn receive_turn_report(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.receive_until(what, |word| word.get("turn_status").filter(|now| wanted(now)).cloned())
    }

    /// The command of its task has said so in `out/up`.
    pub(super) fn wait_until_task_runs(&self) {
        self.env.wait_until("it is up", || self.env.path("out/up").exists().then_some(()));
    }

    pub(super) fn receive_idle(&mut self, turns: u64) -> Value {
        self.receive_turn_report("it idles", |now| now["activity"] == "idle" && now["turn_number"] == turns)
    }

    /// What the agent showed in its pane, so far.
    pub(super) fn pane_output(&self) -> String {
        self.env.read("out/pane")
    }

    pub(super) fn idle_notifications(&self) -> Vec<Value> {
        self.env.payloads_to_lead("ann", "idle_notification")
    }

    /// Waits for the exit report, confirms it, and waits until the shim and all its processes have exited.
    pub(super) fn finish(mut self) -> (TestEnv, Value) {
        let ended = self.receive_until("it ends", |word| word.get("exited").cloned());
        self.send(&json!("exit_recorded"));
        self.exit_code();
        std::fs::remove_file(self.env.path("run/play.sock")).unwrap();
        self.assert_no_processes();
        (self.env, ended)
    }

    /// No process of its turns is left.
    pub(super) fn assert_no_processes(&self) {
        let left = TaggedProcesses::with_tag(&self.env.process_tag()).list();
        let left: Vec<&String> = left.iter().filter(|line| line.contains("sleep")).collect();
        assert!(left.is_empty(), "{left:#?}");
    }

    /// Once it has gone. A pane's own process is none of ours to wait for: its window goes with it.
    pub(super) fn exit_code(&mut self) -> Option<i32> {
        if let Some(shim) = &mut self.shim {
            return shim.0.wait().unwrap().code();
        }
        let windows = || self.env.tmux(["list-windows", "-a", "-F", "#{window_name}"]);
        self.env.wait_until("its window closes", || (!windows().contains("ann")).then_some(()));
        None
    }

    /// Tells it to end.
    pub(super) fn stop(mut self) -> TestEnv {
        self.send(&json!({"end": {"grace_ms": 2000}}));
        self.finish().0
    }
}

/// Ended with the test, however that ends.
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

/// The hello, with the far end of the wake line beside it.
fn accept(listener: &UnixListener) -> (BufReader<UnixStream>, UnixStream, OwnedFd, Value) {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut bytes = [0; 16 * 1024];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(&stream, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::empty()).unwrap();
    let line = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    let hello = serde_json::from_slice(&bytes[..got.bytes]).unwrap();
    (BufReader::new(stream.try_clone().unwrap()), stream, line.unwrap(), hello)
}
