//! Measures the spawns, a broadcast and the shutdown of 2,000 members without panes.

use crate::{env_with_team, print_row, time_call};
use harness::TestEnv;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MEMBERS: usize = 2_000;
/// How many members are spawned at a time.
const SPAWNERS: usize = 8;
/// How long all members together may take to read a message.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// Spawns the members, several at a time.
fn spawn_members(env: &TestEnv) {
    let next = AtomicUsize::new(0);
    let spawn_next = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let name = format!("w{number}");
        let arguments = ["spawn", &name, "--profile", "worker", "--backend", "in-process"];
        (number < MEMBERS).then(|| env.teamctl(arguments).expect_success())
    };
    std::thread::scope(|scope| {
        for _ in 0..SPAWNERS {
            scope.spawn(|| while spawn_next().is_some() {});
        }
    });
}

/// The number of messages that members have not read, and the time that `status` took.
fn count_unread(env: &TestEnv) -> (u64, Duration) {
    let mut status = None;
    let time = time_call(|| status = Some(env.json(["status"])));
    let status = status.unwrap();
    let members = status["teams"][0]["members"].as_array().unwrap().iter();
    let members = members.filter(|member| member["name"] != "team-lead");
    (members.map(|member| member["unread"].as_u64().unwrap()).sum(), time)
}

pub(crate) fn measure_two_thousand() {
    let env = env_with_team();
    let spawn = time_call(|| spawn_members(&env));
    let mut slowest_status = Duration::ZERO;
    let broadcast = time_call(|| {
        env.teamctl(["broadcast", "main is frozen until noon"]).expect_success();
        env.wait_until_within(READ_TIMEOUT, "every member has read the message", || {
            let (unread, time) = count_unread(&env);
            slowest_status = slowest_status.max(time);
            (unread == 0).then_some(())
        });
    });
    let shutdown = time_call(|| {
        env.teamctl(["shutdown", "--all", "--grace", "300s"]).expect_success();
    });
    print_row(
        "2,000 members without a pane: spawned, 8 at a time; a broadcast, until all have read it; slowest `status` meanwhile; shut down",
        &format!("{spawn:.1?}; {broadcast:.1?}; {slowest_status:.1?}; {shutdown:.1?}"),
        "all of them",
    );
    env.shut_down();
}
