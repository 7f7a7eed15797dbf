//! Measures a team of 500 members on ten hosts. Each host is a test environment on this machine, with
//! a daemon of its own.

use crate::{cpu_ticks, env_with_team, median, print_row, time_call};
use harness::{ProcessStats, TestEnv, history};
use serde_json::json;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HOSTS: usize = 10;
const MEMBERS_OF_HOST: usize = 50;
/// How many members are spawned at a time.
const SPAWNERS: usize = 8;
const MESSAGES: usize = 100;
/// Milliseconds of a clock tick, in which Linux counts CPU time.
const MS_PER_TICK: u64 = 10;

pub(crate) fn measure_many_hosts() {
    let home = env_with_team();
    let hosts: Vec<TestEnv> = (0..HOSTS).map(|_| TestEnv::with_daemon()).collect();
    list_hosts(&home, &hosts);
    let socket = home.path("out/heard");
    let reports = UnixDatagram::bind(&socket).unwrap();
    reports.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let daemon = home.daemon_pid();
    let before = cpu_ticks(daemon);
    let start = time_call(|| spawn_members(&home, &socket.display().to_string()));
    let started = cpu_ticks(daemon);
    let latencies = (0..MESSAGES).map(|number| time_message(&home, &reports, number)).collect();
    let sent = cpu_ticks(daemon);
    let memory = ProcessStats::read(daemon).unwrap();
    let cpu = |ticks: u64, events: usize| (ticks * MS_PER_TICK) as f64 / events as f64;
    print_row(
        "10 hosts with 50 members each: start of all; CPU of the home's teamd per member; from `send` to read, median of 100; CPU of the home's teamd per message; its memory, and its largest",
        &format!(
            "{start:.1?}; {:.1} ms; {:.1?}; {:.1} ms; {:.1}, {:.1} MB",
            cpu(started - before, HOSTS * MEMBERS_OF_HOST),
            median(latencies),
            cpu(sent - started, MESSAGES),
            memory.resident as f64 / 1e3,
            memory.peak as f64 / 1e3
        ),
        "",
    );
    home.teamctl(["shutdown", "--all", "--grace", "60s"]).expect_success();
    home.shut_down();
    hosts.into_iter().for_each(TestEnv::shut_down);
}

/// Writes the hosts file of the home. A connect command sets the variables of the host.
fn list_hosts(home: &TestEnv, hosts: &[TestEnv]) {
    let entry = |(index, host): (usize, &TestEnv)| {
        let command = host.command("teamctl");
        let variables =
            command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        let connect: Vec<String> = ["env", "-i"].map(str::to_owned).into_iter().chain(variables).collect();
        format!("[host.box{index}]\nconnect = {}\n", json!(connect))
    };
    let file: String = hosts.iter().enumerate().map(entry).collect();
    home.write_file("home/.config/teamd/hosts.toml", file);
}

/// Spawns all members. The first of each host reports each message that it reads.
fn spawn_members(home: &TestEnv, socket: &str) {
    let next = AtomicUsize::new(0);
    let spawn_next = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let (name, host) = (format!("m{number}"), format!("box{}", number % HOSTS));
        let reader = format!("exec '{}' reader {socket} <&$TEAMD_WAKE_FD", home.scripted_agent_path());
        let agent: &[&str] = match number < HOSTS {
            true => &["--", "sh", "-c", &reader],
            false => &["--profile", "worker", "--backend", "in-process"],
        };
        let args = [&["spawn", &name, "--host", &host], agent].concat();
        (number < HOSTS * MEMBERS_OF_HOST).then(|| home.teamctl_with(&args, &[]).expect_success())
    };
    std::thread::scope(|scope| {
        for _ in 0..SPAWNERS {
            scope.spawn(|| while spawn_next().is_some() {});
        }
    });
}

/// The time from the start of `teamctl send` until the member has read the message.
fn time_message(home: &TestEnv, reports: &UnixDatagram, number: usize) -> Duration {
    let (name, text) = (format!("m{}", number % HOSTS), format!("message {number}"));
    let start = history::monotonic_ns();
    home.teamctl(["send", &name, &text]).expect_success();
    loop {
        let mut bytes = [0; 256];
        let length = reports.recv(&mut bytes).unwrap();
        let report = std::str::from_utf8(&bytes[..length]).unwrap();
        let (at, read) = report.split_once(' ').unwrap();
        if read == text {
            return Duration::from_nanos(at.parse::<u64>().unwrap() - start);
        }
    }
}
