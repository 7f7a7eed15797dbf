//! Measures 1,000 messages a second for a minute to fifty agents, each of which waits for its
//! messages.

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
    let reports = UnixDatagram::bind(&socket).unwrap();
    reports.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let script = format!("exec '{}' reader {} <&$TEAMD_WAKE_FD", env.scripted_agent_path(), socket.display());
    let spawn = |n: usize| {
        env.start_teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", "sh", "-c", &script])
    };
    let children: Vec<Child> = (0..AGENTS).map(spawn).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let (sent, mut reads) = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let env = &env;
                scope.spawn(move || run_sender(env, sender as u64))
            })
            .collect();
        let receiver = scope.spawn(|| receive_reports(&reports));
        let sent: HashMap<String, u64> =
            senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        (sent, receiver.join().unwrap())
    });
    let read_count = reads.len();
    let mut latencies: Vec<Duration> = reads
        .drain(..)
        .filter_map(|(text, at)| Some(Duration::from_nanos(at.saturating_sub(*sent.get(&text)?))))
        .collect();
    let (p50, p99) = (quantile(&mut latencies, 50), quantile(&mut latencies, 99));
    print_row(
        "1,000 messages a second for a minute through 50 agents: read; from the start of the send until read, p50, p99",
        &format!("{read_count} of {} in {SECONDS} s; {p50:.1?}, {p99:.1?}", sent.len()),
        "all; p99 20 ms",
    );
    env.shut_down();
}

/// Sends one sender's share of the messages at regular intervals. Returns the text of each message
/// and the time at which its send started.
fn run_sender(env: &TestEnv, sender: u64) -> Vec<(String, u64)> {
    let mut server = McpClient::connect(env, &["--team", "bench"]);
    let (start, interval) = (history::monotonic_ns(), 1_000_000_000 * SENDERS as u64 / MESSAGES_PER_SECOND);
    let count = SECONDS * MESSAGES_PER_SECOND / SENDERS as u64;
    (0..count)
        .map(|n| {
            let due = start + n * interval;
            sleep(Duration::from_nanos(due.saturating_sub(history::monotonic_ns())));
            let (text, at) = (format!("{sender}/{n}"), history::monotonic_ns());
            let to = format!("a{}", (n * SENDERS as u64 + sender) % AGENTS as u64);
            server.call("SendMessage", &json!({"recipient": to, "content": text, "summary": "s"})).unwrap();
            (text, at)
        })
        .collect()
}

/// Receives the agents' reports until none arrives for ten seconds. Returns the text of each
/// message and the time at which the agent read it.
fn receive_reports(socket: &UnixDatagram) -> Vec<(String, u64)> {
    let (mut reports, mut bytes) = (Vec::new(), [0; 256]);
    while let Ok(length) = socket.recv(&mut bytes) {
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let (at, text) = text.split_once(' ').unwrap();
        reports.push((text.to_owned(), at.parse().unwrap()));
    }
    reports
}
