//! Measures the CPU time and memory of teamd with large idle teams, compared with two programs that
//! poll.

use crate::{context_switches, cpu_ticks, env_with_team, megabytes, print_row, resident};
use harness::{TestEnv, sleep};
use std::process::{Child, Command};
use std::time::Duration;

/// How long the CPU time is measured.
const WINDOW: Duration = Duration::from_secs(60);

/// Spawns `count` members without panes at the same time.
fn spawn_members(env: &TestEnv, count: usize) {
    let agent = env.scripted_agent_path();
    let spawn = |n: usize| {
        env.start_teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", &agent, "stay"])
    };
    let children: Vec<Child> = (0..count).map(spawn).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// The text of an inbox with `count` read messages.
fn inbox_text(count: usize) -> String {
    let entry = |n: usize| {
        serde_json::json!({"from": "team-lead", "text": format!("{n:0>180}"), "timestamp": "2026-01-01T00:00:00.000Z",
            "read": true})
    };
    serde_json::to_string_pretty(&(0..count).map(entry).collect::<Vec<_>>()).unwrap()
}

/// The CPU ticks and context switches of a process at the start of the window.
struct ProcessUsage {
    pid: u32,
    before: (u64, u64),
}

impl ProcessUsage {
    fn read(pid: u32) -> ProcessUsage {
        ProcessUsage { pid, before: (cpu_ticks(pid), context_switches(pid)) }
    }

    /// Formats the usage since `read`: the share of one core in percent, and the context switches.
    fn to_text(&self) -> String {
        let share = (cpu_ticks(self.pid) - self.before.0) as f64 / WINDOW.as_secs_f64();
        format!("{share:.2} %, {}", context_switches(self.pid) - self.before.1)
    }
}

pub(crate) fn measure_idle_hundred() {
    let env = env_with_team();
    spawn_members(&env, 100);
    let text = inbox_text(100);
    (0..50).for_each(|n| drop(env.write_file(&format!("root/teams/bench/inboxes/a{n}.json"), &text)));
    (0..50).for_each(|n| drop(env.write_file(&format!("out/copies/a{n}.json"), &text)));
    let poller = |milliseconds: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/poller.js");
        Command::new("node").arg(script).arg(env.path("out/copies")).arg(milliseconds).spawn().unwrap()
    };
    let mut pollers = ["500", "1000"].map(poller);
    // The daemon has scanned all inboxes by then, and the pollers have started.
    sleep(Duration::from_secs(5));
    let usages = [env.daemon_pid(), pollers[0].id(), pollers[1].id()].map(ProcessUsage::read);
    // An event must not end this wait, because the benchmark measures idle processes.
    sleep(WINDOW);
    let [teamd, half_second, second] = usages.map(|usage| usage.to_text());
    print_row(
        "100 idle agents, 50 inboxes of 100, 60 s: CPU and context switches of teamd; of a Node program that polls each 500 ms; each second",
        &format!("{teamd}; {half_second}; {second}"),
        "0.05 %, the rescan alone",
    );
    for poller in &mut pollers {
        poller.kill().unwrap();
        poller.wait().unwrap();
    }
    env.shut_down();
}

/// Measures the memory after the daemon has scanned five long inboxes. The scan has ended when the
/// daemon uses no more CPU time.
pub(crate) fn measure_memory_of_two_hundred() {
    let env = env_with_team();
    spawn_members(&env, 200);
    let text = inbox_text(100_000);
    for n in 0..5 {
        env.write_file(&format!("root/teams/bench/inboxes/a{n}.json"), &text);
    }
    let mut last_ticks = u64::MAX;
    env.wait_until_within(Duration::from_secs(120), "the daemon has scanned the inboxes", || {
        sleep(Duration::from_secs(1));
        let ticks = cpu_ticks(env.daemon_pid());
        (std::mem::replace(&mut last_ticks, ticks) == ticks).then_some(())
    });
    let shims = harness::TaggedProcesses::with_tag(&env.process_tag()).list();
    let shims = shims.iter().filter(|line| line.contains("teamd-shim run"));
    let largest = shims.filter_map(|line| line.split(' ').next()?.parse().ok()).map(resident).max();
    print_row(
        "memory of teamd with 200 agents, spawned at once, and five inboxes of 100,000; of the largest shim",
        &format!("{:.1} MB; {:.1} MB", megabytes(resident(env.daemon_pid())), megabytes(largest.unwrap())),
        "30 MB; 3 MB",
    );
    env.shut_down();
}
