//! Many messages a second for a minute, through fifty agents that each wait for theirs.

use crate::{row, team};
use harness::{House, Mcp, history, pause, quantile};
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::net::UnixDatagram;
use std::process::Child;
use std::time::Duration;

const AGENTS: usize = 50;
const SENDERS: usize = 8;
const SECONDS: u64 = 60;
const A_SECOND: u64 = 1_000;

pub(crate) fn thousand_a_second() {
    let house = team();
    let socket = house.path("out/heard");
    let heard = UnixDatagram::bind(&socket).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let script = format!("exec '{}' reader {} <&$TEAMD_WAKE_FD", house.agent(), socket.display());
    let spawn = |n: usize| {
        house.teamctl_running([
            "spawn",
            &format!("a{n}"),
            "--backend",
            "in-process",
            "--",
            "sh",
            "-c",
            &script,
        ])
    };
    let all: Vec<Child> = (0..AGENTS).map(spawn).collect();
    for child in all {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let (sent, mut took) = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let house = &house;
                scope.spawn(move || sends(house, sender as u64))
            })
            .collect();
        let listener = scope.spawn(|| listens(&heard));
        let sent: HashMap<String, u64> =
            senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        (sent, listener.join().unwrap())
    });
    let delivered = took.len();
    let mut took: Vec<Duration> = took
        .drain(..)
        .filter_map(|(text, at)| Some(Duration::from_nanos(at.saturating_sub(*sent.get(&text)?))))
        .collect();
    let (half, most) = (quantile(&mut took, 50), quantile(&mut took, 99));
    row(
        "1,000 messages a second for a minute through 50 agents: read by them; from the begin of the send until read, p50, p99",
        &format!("{delivered} of {} in {SECONDS} s; {half:.1?}, {most:.1?}", sent.len()),
        "all; p99 20 ms",
    );
    house.end();
}

/// Its share, each at its time; when each was begun.
fn sends(house: &House, sender: u64) -> Vec<(String, u64)> {
    let mut server = Mcp::of(house, &["--team", "bench"]);
    let (began, step) = (history::now(), 1_000_000_000 * SENDERS as u64 / A_SECOND);
    let count = SECONDS * A_SECOND / SENDERS as u64;
    (0..count)
        .map(|n| {
            let due = began + n * step;
            pause(Duration::from_nanos(due.saturating_sub(history::now())));
            let (text, at) = (format!("{sender}/{n}"), history::now());
            let to = format!("a{}", (n * SENDERS as u64 + sender) % AGENTS as u64);
            server.call("SendMessage", &json!({"recipient": to, "content": text, "summary": "s"})).unwrap();
            (text, at)
        })
        .collect()
}

/// What the agents have read, and when: until nothing comes any more.
fn listens(heard: &UnixDatagram) -> Vec<(String, u64)> {
    let (mut all, mut bytes) = (Vec::new(), [0; 256]);
    while let Ok(length) = heard.recv(&mut bytes) {
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let (at, text) = text.split_once(' ').unwrap();
        all.push((text.to_owned(), at.parse().unwrap()));
    }
    all
}
