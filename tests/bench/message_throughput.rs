//! Many messages a second for a minute, through fifty agents that each wait for theirs.

use crate::{env_with_team, print_row};
use harness::{McpClient, TestEnv, history, quantile, sleep};
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::net::UnixDatagram;
use std::process::Child;
use std::time::Duration;

const AGENTS: usize = 50;
const SENDERS: usize = 8;
const SECONDS: u64 = 60;
const MESSAGES_PER_SECOND: u64 = 1_000;

pub(crate) fn measure_throughput() {
    let env = env_with_team();
    let socket = env.path("out/heard");
    let heard = UnixDatagram::bind(&socket).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let script = format!("exec '{}' reader {} <&$TEAMD_WAKE_FD", env.scripted_agent_path(), socket.display());
    let spawn = |n: usize| {
        env.start_teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", "sh", "-c", &script])
    };
    let all: Vec<Child> = (0..AGENTS).map(spawn).collect();
    for child in all {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let (sent, mut took) = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let env = &env;
                scope.spawn(move || run_sender(env, sender as u64))
            })
            .collect();
        let listener = scope.spawn(|| receive_reports(&heard));
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
    print_row(
        "1,000 messages a second for a minute through 50 agents: read by them; from the begin of the send until read, p50, p99",
        &format!("{delivered} of {} in {SECONDS} s; {half:.1?}, {most:.1?}", sent.len()),
        "all; p99 20 ms",
    );
    env.shut_down();
}

/// Its share, each at its time; when each was begun.
fn run_sender(env: &TestEnv, sender: u64) -> Vec<(String, u64)> {
    let mut server = McpClient::connect(env, &["--team", "bench"]);
    let (began, step) = (history::monotonic_ns(), 1_000_000_000 * SENDERS as u64 / MESSAGES_PER_SECOND);
    let count = SECONDS * MESSAGES_PER_SECOND / SENDERS as u64;
    (0..count)
        .map(|n| {
            let due = began + n * step;
            sleep(Duration::from_nanos(due.saturating_sub(history::monotonic_ns())));
            let (text, at) = (format!("{sender}/{n}"), history::monotonic_ns());
            let to = format!("a{}", (n * SENDERS as u64 + sender) % AGENTS as u64);
            server.call("SendMessage", &json!({"recipient": to, "content": text, "summary": "s"})).unwrap();
            (text, at)
        })
        .collect()
}

/// What the agents have read, and when: until nothing comes any more.
fn receive_reports(heard: &UnixDatagram) -> Vec<(String, u64)> {
    let (mut all, mut bytes) = (Vec::new(), [0; 256]);
    while let Ok(length) = heard.recv(&mut bytes) {
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let (at, text) = text.split_once(' ').unwrap();
        all.push((text.to_owned(), at.parse().unwrap()));
    }
    all
}
