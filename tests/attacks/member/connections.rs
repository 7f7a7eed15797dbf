//! Takes all connections to the daemon, with silent connections and with calls that are never
//! finished, while a person runs commands.

use crate::attack_log::{AttackLog, check_refused};
use harness::{ProcessStats, TestEnv};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command of the person may take during an attack.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The limit of the daemon's resident memory while calls are unfinished.
const MAX_MEMORY_KB: u64 = 192 * 1024;

/// What each connection of an attacking process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionKind {
    Silent,
    HalfSent,
}

/// A process that holds connections until it is dropped.
#[derive(Debug)]
struct Attacker(Child);

impl Drop for Attacker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts this test program as a process that opens `count` connections, and waits until it has.
fn start_attacker(env: &TestEnv, kind: ConnectionKind, count: usize) -> Attacker {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "member::connections::hold_connections"]);
    command.env("ATTACK_SOCKET", env.control_socket()).env("ATTACK_COUNT", count.to_string());
    command.env("ATTACK_KIND", format!("{kind:?}")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let is_ready = output.lines().any(|line| line.unwrap().contains("connected"));
    assert!(is_ready, "the attacker has exited");
    Attacker(child)
}

/// Opens connections and holds them until standard input is closed. Runs only as an attacker.
#[test]
#[ignore = "a process of the attack on connections"]
fn hold_connections() {
    let Ok(socket) = std::env::var("ATTACK_SOCKET") else { return };
    let count: usize = std::env::var("ATTACK_COUNT").unwrap().parse().unwrap();
    let is_half_sent = std::env::var("ATTACK_KIND").unwrap() == format!("{:?}", ConnectionKind::HalfSent);
    let part = format!("{{\"part\":\"{}\"}}\n", "x".repeat(60_000));
    let streams: Vec<UnixStream> = (0..count)
        .filter_map(|_| {
            let mut stream = UnixStream::connect(&socket).ok()?;
            stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
            let parts = if is_half_sent { 7 * 1024 * 1024 / part.len() } else { 0 };
            // The daemon may close the connection meanwhile.
            (0..parts).try_for_each(|_| stream.write_all(part.as_bytes())).ok();
            Some(stream)
        })
        .collect();
    println!("connected");
    std::io::stdin().read_line(&mut String::new()).ok();
    drop(streams);
}

/// Runs a command of the person, which must succeed in time.
fn run_in_time(log: &mut AttackLog, env: &TestEnv, tried: &str, args: &[&str]) {
    let start = Instant::now();
    let output = env.with_timeout(COMMAND_TIMEOUT * 3, || env.teamctl_with(args, &[]));
    let took = start.elapsed();
    let seen = check_refused(&output, &[0]).map(|_| format!("{took:.1?}"));
    let outcome = if took > COMMAND_TIMEOUT { Err(format!("it took {took:.1?}")) } else { seen };
    log.record(format!("{tried}: a person's teamctl {}", args.join(" ")), outcome);
}

fn attack_with(log: &mut AttackLog, tried: &str, kind: ConnectionKind, processes: usize, count: usize) {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--", "sleep", "3600"]).expect_success();
    }
    let pid = env.daemon_pid();
    let attackers: Vec<Attacker> = (0..processes).map(|_| start_attacker(&env, kind, count)).collect();
    for args in
        [&["status"][..], &["send", "bob", "x"], &["kill", "ann"], &["spawn", "cat", "--", "sleep", "60"]]
    {
        run_in_time(log, &env, tried, args);
    }
    let peak = ProcessStats::read(pid).map_or(u64::MAX, |stats| stats.peak);
    log.record_amount(format!("{tried}: fills the daemon's memory"), peak, MAX_MEMORY_KB, "KB");
    drop(attackers);
    run_in_time(log, &env, &format!("after that, {tried}"), &["kill", "bob"]);
    env.shut_down();
}

pub(crate) fn attack(log: &mut AttackLog) {
    attack_with(log, "530 silent connections of a process", ConnectionKind::Silent, 1, 530);
    attack_with(log, "530 silent connections of 4 processes", ConnectionKind::Silent, 4, 133);
    attack_with(log, "40 half-sent calls of 7 MiB", ConnectionKind::HalfSent, 1, 40);
    attack_with(log, "240 half-sent calls of 7 MiB of 3 processes", ConnectionKind::HalfSent, 3, 80);
}
