//! A large team that does nothing, and what that takes: beside two programs that look again and again.

use crate::{context_switches, cpu_ticks, env_with_team, megabytes, print_row, resident};
use harness::{TestEnv, sleep};
use std::process::{Child, Command};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(60);

/// Without panes, all asked for at once.
fn members(env: &TestEnv, count: usize) {
    let agent = env.scripted_agent_path();
    let spawn = |n: usize| {
        env.start_teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", &agent, "stay"])
    };
    let all: Vec<Child> = (0..count).map(spawn).collect();
    for child in all {
        let ran = child.wait_with_output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
}

fn inbox(count: usize) -> String {
    let entry = |n: usize| {
        serde_json::json!({"from": "team-lead", "text": format!("{n:0>180}"), "timestamp": "2026-01-01T00:00:00.000Z",
            "read": true})
    };
    serde_json::to_string_pretty(&(0..count).map(entry).collect::<Vec<_>>()).unwrap()
}

/// How much it used in the window: percent of a core, switches from one process to another.
struct ProcessUsage {
    pid: u32,
    before: (u64, u64),
}

impl ProcessUsage {
    fn read(pid: u32) -> ProcessUsage {
        ProcessUsage { pid, before: (cpu_ticks(pid), context_switches(pid)) }
    }

    fn to_text(&self) -> String {
        let share = (cpu_ticks(self.pid) - self.before.0) as f64 / WINDOW.as_secs_f64();
        format!("{share:.2} %, {}", context_switches(self.pid) - self.before.1)
    }
}

pub(crate) fn measure_idle_hundred() {
    let env = env_with_team();
    members(&env, 100);
    let text = inbox(100);
    (0..50).for_each(|n| drop(env.write_file(&format!("root/teams/bench/inboxes/a{n}.json"), &text)));
    (0..50).for_each(|n| drop(env.write_file(&format!("out/copies/a{n}.json"), &text)));
    let poller = |milliseconds: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/poller.js");
        Command::new("node").arg(script).arg(env.path("out/copies")).arg(milliseconds).spawn().unwrap()
    };
    let mut pollers = ["500", "1000"].map(poller);
    // All has been looked at by then, and the pollers have begun.
    sleep(Duration::from_secs(5));
    let used = [env.daemon_pid(), pollers[0].id(), pollers[1].id()].map(ProcessUsage::read);
    // The one wait that nothing may wake: it is what is measured.
    sleep(WINDOW);
    let [ours, half, whole] = used.map(|used| used.to_text());
    print_row(
        "100 idle agents, 50 inboxes of 100, 60 s: CPU and context switches of teamd; of a poller in Node each 500 ms; each second",
        &format!("{ours}; {half}; {whole}"),
        "0.05 %, the rescan alone",
    );
    for poller in &mut pollers {
        poller.kill().unwrap();
        poller.wait().unwrap();
    }
    env.shut_down();
}

/// The five were looked through when that is told.
pub(crate) fn measure_memory_of_two_hundred() {
    let env = env_with_team();
    members(&env, 200);
    let text = inbox(100_000);
    for n in 0..5 {
        env.write_file(&format!("root/teams/bench/inboxes/a{n}.json"), &text);
    }
    let mut before = u64::MAX;
    env.wait_until_within(Duration::from_secs(120), "all of it is looked at", || {
        sleep(Duration::from_secs(1));
        let now = cpu_ticks(env.daemon_pid());
        (std::mem::replace(&mut before, now) == now).then_some(())
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
