//! Spawns many members without panes at a time.

use crate::TestEnv;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many members are spawned at a time.
const SPAWNERS: usize = 8;

impl TestEnv {
    /// Spawns `count` built-in workers without panes: `w0`, `w1` and so on.
    ///
    /// # Panics
    /// If a spawn fails.
    pub fn spawn_workers(&self, count: usize) {
        let next = AtomicUsize::new(0);
        let spawn_next = || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let name = format!("w{number}");
            let args = ["spawn", &name, "--profile", "worker", "--backend", "in-process"];
            (number < count).then(|| self.teamctl(args).expect_success())
        };
        std::thread::scope(|scope| {
            for _ in 0..SPAWNERS {
                scope.spawn(|| while spawn_next().is_some() {});
            }
        });
    }

    /// The members of the only team in `teamctl --json status`, without the lead.
    pub fn members(&self) -> Vec<Value> {
        let status = self.json(["status"]);
        let members = status["teams"][0]["members"].as_array().cloned().unwrap_or_default();
        members.into_iter().filter(|member| member["name"] != "team-lead").collect()
    }
}

/// The number of messages that these members have not read.
///
/// # Panics
/// If the inbox of a member cannot be read.
pub fn count_unread(members: &[Value]) -> u64 {
    members.iter().map(|member| member["unread"].as_u64().expect("the inbox can be read")).sum()
}
