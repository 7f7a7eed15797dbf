//! From a message to whoever waits for it: through teamd, and by the ways that are there without it. Four of them are asked
//! in turn, so that a drift of the machine meets all.

use crate::{env_with_team, print_row};
use harness::{TestEnv, history, quantile, sleep};
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 500;

/// Who is woken: by what, and where it says that it was.
struct WakeMethod {
    cause: WakeTrigger,
    reports: UnixDatagram,
}

enum WakeTrigger {
    /// A file that is renamed to this place; as long as an inbox, and longer each time.
    File(PathBuf, Vec<Value>),
    /// A byte.
    Line(UnixStream),
}

impl WakeMethod {
    /// How long from right before the rename, or the byte, to the first that it does.
    fn measure_wake(&mut self) -> Duration {
        let began = match &mut self.cause {
            WakeTrigger::File(path, messages) => append_by_rename(path, messages),
            WakeTrigger::Line(line) => {
                let began = history::monotonic_ns();
                std::io::Write::write_all(line, b".").unwrap();
                began
            }
        };
        // A word of something before is none of this.
        let heard = std::iter::repeat_with(|| self.receive_time()).find(|heard| *heard >= began);
        Duration::from_nanos(heard.expect("it repeats") - began)
    }

    fn receive_time(&self) -> u64 {
        let mut time = [0; 8];
        self.reports.recv(&mut time).unwrap();
        u64::from_le_bytes(time)
    }
}

/// As programs do who know of no teamd: all of it beside, then in one step to its place; when that step began.
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn append_by_rename(path: &Path, messages: &mut Vec<Value>) -> u64 {
    let text = format!("message {}", messages.len());
    let time = "2026-01-01T00:00:00.000Z";
    messages.push(json!({"from": "team-lead", "text": text, "timestamp": time, "read": false}));
    let beside = path.with_extension("new");
    std::fs::File::create(&beside)
        .and_then(|mut file| {
            std::io::Write::write_all(&mut file, &serde_json::to_vec_pretty(messages).unwrap())
        })
        .unwrap();
    let began = history::monotonic_ns();
    std::fs::rename(&beside, path).unwrap();
    began
}

/// The bare ones end with this.
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
    fn start(&mut self, words: &[&str], stdin: Stdio, stdout: Stdio) {
        let mut agent = Command::new(harness::programs().join("scripted-agent"));
        self.0.push(agent.args(words).stdin(stdin).stdout(stdout).spawn().unwrap());
    }
}

fn bind_socket(env: &TestEnv, name: &str) -> (UnixDatagram, String) {
    let path = env.path(&format!("out/{name}"));
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (told, path.display().to_string())
}

fn socket_pair() -> (UnixStream, Stdio) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ours, Stdio::from(OwnedFd::from(theirs)))
}

fn wake_methods(env: &TestEnv, bare: &mut BareProcesses) -> [WakeMethod; 4] {
    let (told, socket) = bind_socket(env, "ear");
    let script = format!("exec '{}' ear {socket} <&$TEAMD_WAKE_FD", env.scripted_agent_path());
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", &script]).expect_success();
    let inbox = env.root().join("teams/bench/inboxes/ann.json");
    let teamd = WakeMethod { cause: WakeTrigger::File(inbox, Vec::new()), reports: told };

    let directory = |name: &str| {
        let path = env.path(&format!("out/{name}.d"));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (told, socket) = bind_socket(env, "relayed");
    let (watched, (ours, theirs)) = (directory("relayed"), socket_pair());
    bare.start(&["ear", &socket], theirs, Stdio::null());
    bare.start(&["relay", watched.to_str().unwrap()], Stdio::null(), Stdio::from(OwnedFd::from(ours)));
    let relayed =
        WakeMethod { cause: WakeTrigger::File(watched.join("ann.json"), Vec::new()), reports: told };

    let (told, socket) = bind_socket(env, "inotify");
    let watched = directory("inotify");
    bare.start(&["ear", &socket, watched.to_str().unwrap()], Stdio::null(), Stdio::null());
    let inotify =
        WakeMethod { cause: WakeTrigger::File(watched.join("ann.json"), Vec::new()), reports: told };

    let (told, socket) = bind_socket(env, "line");
    let (ours, theirs) = socket_pair();
    bare.start(&["ear", &socket], theirs, Stdio::null());
    let line = WakeMethod { cause: WakeTrigger::Line(ours), reports: told };
    let ears = [teamd, relayed, inotify, line];
    // Each is there, and the relay has its watch by then.
    for ear in &ears {
        ear.receive_time();
    }
    sleep(Duration::from_millis(300));
    ears
}

pub(crate) fn measure_wake_methods() {
    let (env, mut bare) = (env_with_team(), BareProcesses(Vec::new()));
    let mut ears = wake_methods(&env, &mut bare);
    let mut took: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (ear, took) in ears.iter_mut().zip(&mut took) {
            took.push(ear.measure_wake());
            // As in life: whoever is woken had time to fall asleep.
            sleep(Duration::from_millis(2));
        }
    }
    let ratio = |other: usize| {
        let mut all: Vec<f64> = took[0]
            .iter()
            .zip(&took[other])
            .map(|(ours, bare)| ours.as_secs_f64() / bare.as_secs_f64())
            .collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    let (relay, inotify) = (ratio(1), ratio(2));
    let figures =
        took.each_mut().map(|took| format!("{:.0?}, {:.0?}", quantile(took, 50), quantile(took, 99)));
    print_row(
        "a message put in place until its agent's first instruction: through teamd; the same relay on bare inotify; bare inotify; a byte through a socket; p50, p99 of 500",
        &format!("{}; {relay:.2} × the relay, {inotify:.2} × inotify", figures.join("; ")),
        "1.5 ×, 3 ×, 300 µs",
    );
    drop(bare);
    env.shut_down();
}
