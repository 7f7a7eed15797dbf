//! Measures the spawns, a broadcast and the shutdown of 2,000 members without panes.

use crate::{env_with_team, print_row, time_call};
use harness::count_unread;
use std::time::{Duration, Instant};

const MEMBERS: usize = 2_000;
/// How long all members together may take to read a message.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) fn measure_two_thousand() {
    let env = env_with_team();
    let spawn = time_call(|| env.spawn_workers(MEMBERS));
    let mut slowest_status = Duration::ZERO;
    let broadcast = time_call(|| {
        env.teamctl(["broadcast", "main is frozen until noon"]).expect_success();
        env.wait_until_within(READ_TIMEOUT, "every member has read the message", || {
            let start = Instant::now();
            let members = env.members();
            slowest_status = slowest_status.max(start.elapsed());
            (count_unread(&members) == 0).then_some(())
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
