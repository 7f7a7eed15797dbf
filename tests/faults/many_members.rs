//! Tests that a team of many members without panes is spawned, gets a broadcast, and is shut down:
//! each member runs, each reads the message, each approves its shutdown, and nothing remains.
//!
//! `MEMBERS=n` sets the number of members (60 by default). `make bench ROWS=members` measures 2,000.

use harness::{TestEnv, count_unread, number_from_env, record_result};
use std::time::Duration;

/// How long all members together may take for the broadcast, and for their shutdown.
const TEAM_TIMEOUT: Duration = Duration::from_secs(300);

#[test]
fn many_members_are_spawned_woken_and_shut_down() {
    let count = number_from_env("MEMBERS", 60);
    let env = TestEnv::with_team();
    env.spawn_workers(count as usize);
    let count_running =
        || env.members().iter().filter(|member| member["lifecycle"] == "running").count() as u64;
    assert_eq!(count_running(), count);
    let broadcast = env.json(["broadcast", "main is frozen until noon"]);
    assert_eq!(broadcast["recipients"].as_array().map_or(0, Vec::len) as u64, count, "{broadcast}");
    env.wait_until_within(TEAM_TIMEOUT, "every member has read the message", || {
        (count_unread(&env.members()) == 0).then_some(())
    });
    assert_eq!(count_running(), count);
    let grace = format!("{}s", TEAM_TIMEOUT.as_secs());
    let exits = env.json(["shutdown", "--all", "--grace", &grace]);
    let exits = exits["exits"].as_array().unwrap();
    let approved = exits.iter().filter(|exit| exit["description"] == "approved").count();
    assert_eq!((exits.len() as u64, approved as u64), (count, count));
    env.shut_down();
    record_result("members", count);
}
