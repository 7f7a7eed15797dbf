//! Tests that a team of many members without panes is spawned, gets a broadcast, and is shut down:
//! each member runs, each reads the message, each approves its shutdown, and nothing remains.
//!
//! `MEMBERS=n` sets the number of members (60 by default). `make bench ROWS=members` measures 2,000.

use harness::{TestEnv, number_from_env, record_result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many members are spawned at a time.
const SPAWNERS: u64 = 8;
/// How long all members together may take for the broadcast, and for their shutdown.
const TEAM_TIMEOUT: Duration = Duration::from_secs(300);

/// Spawns the members `w0`, `w1` and so on, several at a time.
fn spawn_members(env: &TestEnv, count: u64) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..SPAWNERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let name = format!("w{number}");
                    env.teamctl(["spawn", &name, "--profile", "worker", "--backend", "in-process"])
                        .expect_success();
                }
            });
        }
    });
}

/// The numbers of members that run, and of messages that members have not read.
fn count_running_and_unread(env: &TestEnv) -> (u64, u64) {
    let status = env.json(["status"]);
    let members = status["teams"][0]["members"].as_array().unwrap().iter();
    let members: Vec<_> = members.filter(|member| member["name"] != "team-lead").collect();
    let running = members.iter().filter(|member| member["lifecycle"] == "running").count();
    let unread = members.iter().map(|member| member["unread"].as_u64().unwrap()).sum();
    (running as u64, unread)
}

#[test]
fn many_members_are_spawned_woken_and_shut_down() {
    let count = number_from_env("MEMBERS", 60);
    let env = TestEnv::with_team();
    spawn_members(&env, count);
    assert_eq!(count_running_and_unread(&env).0, count);
    env.teamctl(["broadcast", "main is frozen until noon"]).expect_success();
    env.wait_until_within(TEAM_TIMEOUT, "every member has read the message", || {
        (count_running_and_unread(&env) == (count, 0)).then_some(())
    });
    let grace = format!("{}s", TEAM_TIMEOUT.as_secs());
    let exits = env.json(["shutdown", "--all", "--grace", &grace]);
    let exits = exits["exits"].as_array().unwrap();
    let approved = exits.iter().filter(|exit| exit["description"] == "approved").count();
    assert_eq!((exits.len() as u64, approved as u64), (count, count));
    env.shut_down();
    record_result("members", count);
}
