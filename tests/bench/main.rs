//! The benchmarks of `make bench`. They measure the figures of docs/performance.md on this machine
//! and print them as a table. They do not check whether a figure reaches its target.
//!
//! `make bench ROWS="wake mcp"` runs only these benchmarks. `TMPDIR` selects the file system of the
//! test environments, which affects the figures.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed benchmark must stop; the results are printed"
)]

mod cli_startup;
mod hosts;
mod idle;
mod many_hosts;
mod many_members;
mod mcp_calls;
mod message_throughput;
mod panes;
mod task_latency;
mod tasks;
mod tmux_connection;
mod top;
mod wake_latency;

use harness::{RecoveryTimer, TestEnv, quantile};
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The name of a group of rows, and the function that measures and prints it.
type Benchmark = (&'static str, fn());

const BENCHMARKS: [Benchmark; 25] = [
    ("spawn", measure_spawn),
    ("thirty", measure_thirty_spawns),
    ("message", measure_message_to_wake),
    ("wake", wake_latency::measure_wake_methods),
    ("send", cli_startup::measure_cli_startup),
    ("ask", cli_startup::measure_ask),
    ("panes", panes::measure_panes),
    ("mcp", mcp_calls::measure_calls),
    ("idle", measure_idle_twenty),
    ("hundred", idle::measure_idle_hundred),
    ("memory", idle::measure_memory_of_two_hundred),
    ("members", many_members::measure_two_thousand),
    ("adoption", measure_adoption),
    ("in-flight", measure_daemon_kill),
    ("traffic", message_throughput::measure_throughput),
    ("leftovers", measure_descendant_cleanup),
    ("list", tasks::measure_list),
    ("claims", tasks::measure_claims),
    ("store", tasks::measure_store),
    ("unblocked", task_latency::measure_unblocking),
    ("headless", task_latency::measure_headless_idle),
    ("diamonds", task_latency::measure_task_graph),
    ("top", top::measure_top),
    ("hosts", hosts::measure_hosts),
    ("ten-hosts", many_hosts::measure_many_hosts),
];

/// Runs the benchmarks named on the command line, or all.
fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    println!("directory {}, {} cores\n", std::env::temp_dir().display(), core_count());
    println!("| what | figure | target |\n| --- | --- | --- |");
    let is_selected = |(name, _): &&Benchmark| names.is_empty() || names.iter().any(|other| other == name);
    BENCHMARKS.iter().filter(is_selected).for_each(|(_, measure)| measure());
}

fn print_row(description: &str, figure: &str, target: &str) {
    println!("| {description} | {figure} | {target} |");
}

fn core_count() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// Creates a test environment with a daemon and the team `bench`.
fn env_with_team() -> TestEnv {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "bench"]).expect_success();
    env
}

fn time_call(call: impl FnOnce()) -> Duration {
    let start = Instant::now();
    call();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Measures a spawn and `tmux split-window` alternately, so that changes in the machine's speed
/// affect both.
fn measure_spawn() {
    let env = env_with_team();
    env.teamctl(["spawn", "first", "--", "sleep", "3600"]).expect_success();
    let window =
        env.tmux(["new-window", "-d", "-P", "-F", "#{window_id}", "-t", "user:", "--", "sleep", "3600"]);
    let (mut spawn_times, mut tmux_times) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        tmux_times.push(time_call(|| {
            drop(env.tmux([
                "split-window",
                "-d",
                "-P",
                "-F",
                "#{pane_id}",
                "-t",
                &window,
                "--",
                "sleep",
                "3600",
            ]));
        }));
        let pane =
            env.tmux(["list-panes", "-t", &window, "-F", "#{pane_id}"]).lines().last().unwrap().to_owned();
        env.tmux(["kill-pane", "-t", &pane]);
        spawn_times.push(time_call(|| {
            drop(env.teamctl(["spawn", "next", "--", "sleep", "3600"]).expect_success());
        }));
        env.teamctl(["kill", "next"]).expect_success();
    }
    let (spawn, tmux) = (median(spawn_times), median(tmux_times));
    let ratio = spawn.as_secs_f64() / tmux.as_secs_f64();
    print_row(
        "spawn, to the running agent; bare `tmux split-window`; median of 20",
        &format!("{spawn:.1?}; {tmux:.1?}; {ratio:.2} ×"),
        "3 ×",
    );
    env.shut_down();
}

fn measure_thirty_spawns() {
    let env = env_with_team();
    let start = Instant::now();
    let calls: Vec<Child> =
        (0..30).map(|n| env.start_teamctl(["spawn", &format!("a{n}"), "--", "sleep", "3600"])).collect();
    let outputs = calls.into_iter().filter_map(|call| call.wait_with_output().ok());
    let count = outputs.filter(|output| output.status.success()).count();
    print_row(
        "30 agents spawned at once",
        &format!("{count} registered in {:.0?}", start.elapsed()),
        "30 in 2 s",
    );
    env.shut_down();
}

/// The time in ns since the epoch. The scripted agent uses the same clock.
fn unix_time_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// Measures the time until the agent has read its inbox. The agent records this time. If it is
/// before the return of `send`, the time from the return counts as 0.
fn measure_message_to_wake() {
    let env = env_with_team();
    let cwd = env.path("").display().to_string();
    let record = format!("exec '{}' record out/ann <&$TEAMD_WAKE_FD", env.scripted_agent_path());
    env.teamctl(["spawn", "ann", "--cwd", &cwd, "--", "sh", "-c", &record]).expect_success();
    env.wait_until("the agent is ready", || env.read("out/ann").contains("ready").then_some(()));
    let (mut from_return, mut from_start) = (Vec::new(), Vec::new());
    for n in 0..100 {
        let sent_at = unix_time_ns();
        env.teamctl(["send", "ann", &format!("message {n}")]).expect_success();
        let returned_at = unix_time_ns();
        let size =
            std::fs::metadata(env.root().join("teams/bench/inboxes/ann.json")).unwrap().len().to_string();
        let read_at = env.wait_until("the agent has read the message", || {
            let text = env.read("out/ann");
            let line = text.lines().find(|line| line.split(' ').nth(1) == Some(&size))?.to_owned();
            line.split(' ').next()?.parse::<u128>().ok()
        });
        from_return.push(Duration::from_nanos(u64::try_from(read_at.saturating_sub(returned_at)).unwrap()));
        from_start.push(Duration::from_nanos(u64::try_from(read_at - sent_at).unwrap()));
    }
    print_row(
        "message, until the agent has read it: from the return of `send`; from its start; medians of 100",
        &format!("{:.1?}; {:.1?}", median(from_return), median(from_start)),
        "2 ms from the return",
    );
    env.shut_down();
}

/// Creates a test environment with twenty idle members of the profile `worker`.
fn env_with_twenty_workers() -> TestEnv {
    let env = env_with_team();
    for n in 0..20 {
        env.teamctl(["spawn", &format!("a{n}"), "--profile", "worker"]).expect_success();
    }
    env.wait_until("all members are idle", || {
        let status = env.json(["status"]);
        let members = status["teams"][0]["members"].as_array()?.clone();
        (members.iter().filter(|member| member["activity"] == "idle").count() == 20).then_some(())
    });
    env
}

/// The pids of the daemon and of all shims.
fn daemon_and_shims(env: &TestEnv) -> (u32, Vec<u32>) {
    let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let shims = panes
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').nth(1)?.parse().ok());
    (env.daemon_pid(), shims.collect())
}

fn measure_idle_twenty() {
    let env = env_with_twenty_workers();
    let (teamd, shims) = daemon_and_shims(&env);
    let sum = |read: fn(u32) -> u64| read(teamd) + shims.iter().map(|pid| read(*pid)).sum::<u64>();
    let before = (
        sum(cpu_ticks),
        context_switches(teamd),
        shims.iter().map(|pid| context_switches(*pid)).sum::<u64>(),
    );
    let window = Duration::from_secs(30);
    // An event must not end this wait, because the benchmark measures idle processes.
    harness::sleep(window);
    let after = (
        sum(cpu_ticks),
        context_switches(teamd),
        shims.iter().map(|pid| context_switches(*pid)).sum::<u64>(),
    );
    let share = (after.0 - before.0) as f64 / 100.0 / window.as_secs_f64() * 100.0;
    print_row(
        "20 idle workers, 30 s: CPU of teamd and all shims; context switches of teamd, of all shims",
        &format!("{share:.2} %; {}, {}", after.1 - before.1, after.2 - before.2),
        "0.1 %; the rescan alone",
    );
    let shims_rss: Vec<u64> = shims.iter().map(|pid| resident(*pid)).collect();
    print_row(
        "memory of teamd with 20 agents; of the largest shim",
        &format!(
            "{:.1} MB; {:.1} MB",
            megabytes(resident(teamd)),
            megabytes(*shims_rss.iter().max().unwrap())
        ),
        "20 MB; 4 MB",
    );
    env.shut_down();
}

fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}

/// The CPU time of a process (utime + stime), in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Parses a field of /proc/PID/status. 0 if it is missing.
fn status_field(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim_start_matches(':').split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The voluntary and involuntary context switches of all threads of a process.
fn context_switches(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    texts
        .map(|text| {
            status_field(&text, "voluntary_ctxt_switches") + status_field(&text, "nonvoluntary_ctxt_switches")
        })
        .sum()
}

/// The resident memory of a process in kB, including the shared pages of its program.
fn resident(pid: u32) -> u64 {
    status_field(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), "VmRSS")
}

/// The shims are without a daemon for up to 450 ms. By then they try to reconnect at the longest
/// interval.
fn measure_adoption() {
    let env = env_with_twenty_workers();
    let mut recovery = RecoveryTimer::new(&env);
    let before = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let mut times: Vec<Duration> =
        (0..100).map(|n| recovery.measure(20, Duration::from_millis(n % 10 * 50))).collect();
    let after = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let same_count = before.lines().filter(|line| !line.starts_with(' ') && after.contains(*line)).count();
    let (p50, p99) = (quantile(&mut times, 50), quantile(&mut times, 99));
    print_row(
        "kill -9 teamd: from the start of the next until all 20 are adopted; p50, p99 of 100",
        &format!("{p50:.0?}, {p99:.0?}; {same_count} the same processes"),
        "20 in 1 s",
    );
    let daemon = recovery.into_daemon();
    env.shut_down();
    daemon.unwrap().wait().unwrap();
}

/// Measures how long `teamctl` waits for its reply after the daemon was killed.
fn measure_daemon_kill() {
    let env = env_with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let call = env.start_teamctl(["shutdown", "ann", "--grace", "1h"]);
    env.wait_until("the shutdown has started", || {
        (env.member("ann")?["lifecycle"] == "stopping").then_some(())
    });
    let daemon = env.daemon_pid();
    let mut output = None;
    let duration = time_call(|| {
        env.kill_process(daemon);
        output = call.wait_with_output().ok();
    });
    let code = output.and_then(|output| output.status.code());
    print_row(
        "a request in flight when teamd dies",
        &format!("exit {} after {duration:.1?}", code.unwrap_or(-1)),
        "exit 69 at once",
    );
    env.start_daemon();
    env.shut_down();
}

/// Counts the processes that remain after a shutdown of agents whose children survive the usual
/// signals.
fn measure_descendant_cleanup() {
    let env = env_with_team();
    for n in 0..5 {
        env.teamctl(["spawn", &format!("a{n}"), "--", &env.scripted_agent_path(), "children"])
            .expect_success();
    }
    for n in 0..5 {
        let name = format!("a{n}");
        env.wait_until("the agent's children run", || {
            env.teamctl(["capture", &name]).expect_success().contains("children are out").then_some(())
        });
    }
    let before = count_sleepers(&env);
    let duration = time_call(|| {
        drop(env.teamctl(["shutdown", "--all", "--grace", "100ms", "--force"]).expect_success());
    });
    print_row(
        "processes left after `shutdown --all` of 5 agents whose children ignore HUP and TERM, nohup, setsid, fork twice",
        &format!("{} of {before}, after {duration:.1?}", count_sleepers(&env)),
        "0",
    );
    env.shut_down();
}

fn count_sleepers(env: &TestEnv) -> usize {
    harness::TaggedProcesses::with_tag(&env.process_tag())
        .list()
        .iter()
        .filter(|line| line.contains("sleep 3600"))
        .count()
}
