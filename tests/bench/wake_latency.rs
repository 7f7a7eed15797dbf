//! Measures the time from a message to the wake of the process that waits for it: with teamd, and
//! with three methods without teamd. The four methods alternate, so that changes in the machine's
//! speed affect all of them.

use crate::{env_with_team, print_row};
use harness::{TestEnv, history, quantile, sleep};
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 500;

/// A way to wake a process. The process reports the time of each wake on `reports`.
struct WakeMethod {
    trigger: WakeTrigger,
    reports: UnixDatagram,
}

/// What wakes the process.
enum WakeTrigger {
    /// A rename to this path. The file is an inbox that gets one more message each time.
    Rename(PathBuf, Vec<Value>),
    /// A byte on this socket.
    Socket(UnixStream),
}

impl WakeMethod {
    /// Measures the time from right before the rename or the byte to the first action of the woken
    /// process.
    fn measure_wake(&mut self) -> Duration {
        let start = match &mut self.trigger {
            WakeTrigger::Rename(path, messages) => append_by_rename(path, messages),
            WakeTrigger::Socket(socket) => {
                let start = history::monotonic_ns();
                std::io::Write::write_all(socket, b".").unwrap();
                start
            }
        };
        // Skips reports of earlier wakes.
        let wake = std::iter::repeat_with(|| self.receive_time()).find(|time| *time >= start);
        Duration::from_nanos(wake.expect("the iterator is infinite") - start)
    }

    /// Receives the time of a wake, in ns on the monotonic clock.
    fn receive_time(&self) -> u64 {
        let mut time = [0; 8];
        self.reports.recv(&mut time).unwrap();
        u64::from_le_bytes(time)
    }
}

/// Adds a message as other programs do: writes the whole inbox to a temporary file and renames it.
/// Returns the time right before the rename.
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn append_by_rename(path: &Path, messages: &mut Vec<Value>) -> u64 {
    let text = format!("message {}", messages.len());
    let time = "2026-01-01T00:00:00.000Z";
    messages.push(json!({"from": "team-lead", "text": text, "timestamp": time, "read": false}));
    let temp_path = path.with_extension("new");
    std::fs::File::create(&temp_path)
        .and_then(|mut file| {
            std::io::Write::write_all(&mut file, &serde_json::to_vec_pretty(messages).unwrap())
        })
        .unwrap();
    let start = history::monotonic_ns();
    std::fs::rename(&temp_path, path).unwrap();
    start
}

/// The scripted agents that run without teamd. Dropping it kills them.
struct BareProcesses(Vec<Child>);

impl Drop for BareProcesses {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl BareProcesses {
    fn start(&mut self, args: &[&str], stdin: Stdio, stdout: Stdio) {
        let mut agent = Command::new(harness::programs().join("scripted-agent"));
        self.0.push(agent.args(args).stdin(stdin).stdout(stdout).spawn().unwrap());
    }
}

/// Binds a datagram socket for the reports of one method. Returns it with its path.
fn bind_socket(env: &TestEnv, name: &str) -> (UnixDatagram, String) {
    let path = env.path(&format!("out/{name}"));
    let reports = UnixDatagram::bind(&path).unwrap();
    reports.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (reports, path.display().to_string())
}

fn socket_pair() -> (UnixStream, Stdio) {
    let (socket, child_socket) = UnixStream::pair().unwrap();
    (socket, Stdio::from(OwnedFd::from(child_socket)))
}

/// Starts the waiting processes of all methods: through teamd, by a relay that inotify wakes, by
/// inotify itself, and by a byte on a socket.
fn start_wake_methods(env: &TestEnv, bare: &mut BareProcesses) -> [WakeMethod; 4] {
    let (reports, socket) = bind_socket(env, "ear");
    let script = format!("exec '{}' ear {socket} <&$TEAMD_WAKE_FD", env.scripted_agent_path());
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", &script]).expect_success();
    let inbox = env.root().join("teams/bench/inboxes/ann.json");
    let teamd = WakeMethod { trigger: WakeTrigger::Rename(inbox, Vec::new()), reports };

    let directory = |name: &str| {
        let path = env.path(&format!("out/{name}.d"));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (reports, socket) = bind_socket(env, "relayed");
    let (watched, (relay_output, agent_input)) = (directory("relayed"), socket_pair());
    bare.start(&["ear", &socket], agent_input, Stdio::null());
    let relay_output = Stdio::from(OwnedFd::from(relay_output));
    bare.start(&["relay", watched.to_str().unwrap()], Stdio::null(), relay_output);
    let relayed = WakeMethod { trigger: WakeTrigger::Rename(watched.join("ann.json"), Vec::new()), reports };

    let (reports, socket) = bind_socket(env, "inotify");
    let watched = directory("inotify");
    bare.start(&["ear", &socket, watched.to_str().unwrap()], Stdio::null(), Stdio::null());
    let inotify = WakeMethod { trigger: WakeTrigger::Rename(watched.join("ann.json"), Vec::new()), reports };

    let (reports, socket) = bind_socket(env, "line");
    let (wake_socket, agent_input) = socket_pair();
    bare.start(&["ear", &socket], agent_input, Stdio::null());
    let byte = WakeMethod { trigger: WakeTrigger::Socket(wake_socket), reports };
    let methods = [teamd, relayed, inotify, byte];
    // Each process sends a first report when it has started. The relay sends none, so the sleep
    // gives it time to add its watch.
    for method in &methods {
        method.receive_time();
    }
    sleep(Duration::from_millis(300));
    methods
}

pub(crate) fn measure_wake_methods() {
    let (env, mut bare) = (env_with_team(), BareProcesses(Vec::new()));
    let mut methods = start_wake_methods(&env, &mut bare);
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (method, times) in methods.iter_mut().zip(&mut times) {
            times.push(method.measure_wake());
            // Gives the process time to block again, as it does between real messages.
            sleep(Duration::from_millis(2));
        }
    }
    let median_ratio = |baseline: usize| {
        let mut ratios: Vec<f64> = times[0]
            .iter()
            .zip(&times[baseline])
            .map(|(teamd, bare)| teamd.as_secs_f64() / bare.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ROUNDS / 2]
    };
    let (relay, inotify) = (median_ratio(1), median_ratio(2));
    let figures =
        times.each_mut().map(|times| format!("{:.0?}, {:.0?}", quantile(times, 50), quantile(times, 99)));
    print_row(
        "from a message in place to the agent's first instruction: through teamd; a relay on bare inotify; bare inotify; a byte through a socket; p50, p99 of 500",
        &format!("{}; {relay:.2} × the relay, {inotify:.2} × inotify", figures.join("; ")),
        "1.5 ×, 3 ×, 300 µs",
    );
    drop(bare);
    env.shut_down();
}
