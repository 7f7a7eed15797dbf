//! From a message to whoever waits for it: through teamd, and by the ways that are there without it. Four of them are asked
//! in turn, so that a drift of the machine meets all.

use crate::{row, team};
use harness::{House, history, pause, quantile};
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 500;

/// Who is woken: by what, and where it says that it was.
struct Ear {
    cause: Cause,
    told: UnixDatagram,
}

enum Cause {
    /// A file that is renamed to this place; as long as an inbox, and longer each time.
    File(PathBuf, Vec<Value>),
    /// A byte.
    Line(UnixStream),
}

impl Ear {
    /// How long from right before the rename, or the byte, to the first that it does.
    fn ring(&mut self) -> Duration {
        let began = match &mut self.cause {
            Cause::File(path, messages) => renamed(path, messages),
            Cause::Line(line) => {
                let began = history::now();
                std::io::Write::write_all(line, b".").unwrap();
                began
            }
        };
        // A word of something before is none of this.
        let heard = std::iter::repeat_with(|| self.heard()).find(|heard| *heard >= began);
        Duration::from_nanos(heard.expect("it repeats") - began)
    }

    fn heard(&self) -> u64 {
        let mut time = [0; 8];
        self.told.recv(&mut time).unwrap();
        u64::from_le_bytes(time)
    }
}

/// As programs do who know of no teamd: all of it beside, then in one step to its place; when that step began.
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn renamed(path: &Path, messages: &mut Vec<Value>) -> u64 {
    let text = format!("message {}", messages.len());
    let time = "2026-01-01T00:00:00.000Z";
    messages.push(json!({"from": "team-lead", "text": text, "timestamp": time, "read": false}));
    let beside = path.with_extension("new");
    std::fs::File::create(&beside)
        .and_then(|mut file| {
            std::io::Write::write_all(&mut file, &serde_json::to_vec_pretty(messages).unwrap())
        })
        .unwrap();
    let began = history::now();
    std::fs::rename(&beside, path).unwrap();
    began
}

/// The bare ones end with this.
struct Bare(Vec<Child>);

impl Drop for Bare {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl Bare {
    fn start(&mut self, words: &[&str], stdin: Stdio, stdout: Stdio) {
        let mut agent = Command::new(harness::programs().join("agent"));
        self.0.push(agent.args(words).stdin(stdin).stdout(stdout).spawn().unwrap());
    }
}

fn bound(house: &House, name: &str) -> (UnixDatagram, String) {
    let path = house.path(&format!("out/{name}"));
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (told, path.display().to_string())
}

fn pair() -> (UnixStream, Stdio) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ours, Stdio::from(OwnedFd::from(theirs)))
}

fn ears(house: &House, bare: &mut Bare) -> [Ear; 4] {
    let (told, socket) = bound(house, "ear");
    let script = format!("exec '{}' ear {socket} <&$TEAMD_WAKE_FD", house.agent());
    house.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", &script]).ok();
    let inbox = house.root().join("teams/bench/inboxes/ann.json");
    let teamd = Ear { cause: Cause::File(inbox, Vec::new()), told };

    let directory = |name: &str| {
        let path = house.path(&format!("out/{name}.d"));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (told, socket) = bound(house, "relayed");
    let (watched, (ours, theirs)) = (directory("relayed"), pair());
    bare.start(&["ear", &socket], theirs, Stdio::null());
    bare.start(&["relay", watched.to_str().unwrap()], Stdio::null(), Stdio::from(OwnedFd::from(ours)));
    let relayed = Ear { cause: Cause::File(watched.join("ann.json"), Vec::new()), told };

    let (told, socket) = bound(house, "inotify");
    let watched = directory("inotify");
    bare.start(&["ear", &socket, watched.to_str().unwrap()], Stdio::null(), Stdio::null());
    let inotify = Ear { cause: Cause::File(watched.join("ann.json"), Vec::new()), told };

    let (told, socket) = bound(house, "line");
    let (ours, theirs) = pair();
    bare.start(&["ear", &socket], theirs, Stdio::null());
    let line = Ear { cause: Cause::Line(ours), told };
    let ears = [teamd, relayed, inotify, line];
    // Each is there, and the relay has its watch by then.
    for ear in &ears {
        ear.heard();
    }
    pause(Duration::from_millis(300));
    ears
}

pub(crate) fn beside_the_bare_ways() {
    let (house, mut bare) = (team(), Bare(Vec::new()));
    let mut ears = ears(&house, &mut bare);
    let mut took: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (ear, took) in ears.iter_mut().zip(&mut took) {
            took.push(ear.ring());
            // As in life: whoever is woken had time to fall asleep.
            pause(Duration::from_millis(2));
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
    row(
        "a message put in place until its agent's first instruction: through teamd; the same relay on bare inotify; bare inotify; a byte through a socket; p50, p99 of 500",
        &format!("{}; {relay:.2} × the relay, {inotify:.2} × inotify", figures.join("; ")),
        "1.5 ×, 3 ×, 300 µs",
    );
    drop(bare);
    house.end();
}
