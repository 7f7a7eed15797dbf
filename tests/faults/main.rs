//! Fault tests of the promises in docs/promises.md: whatever can fail is made to fail, many times, and the tests count
//! what they checked. The environment sets the number of rounds of each test (such as `MESSAGES=n`). The default is small;
//! `scripts/torture` sets large numbers.
//!
//! Each test writes its counts with [`harness::record_result`], for the tables of docs/promises.md and docs/torture.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod cli_syscalls;
mod concurrent_claims;
mod concurrent_messages;
mod concurrent_starts;
mod control_client_leaks;
mod failpoints;
mod foreign_panes;
mod foreign_writers;
mod hostile_input;
mod message_traffic;
mod orphan_processes;
mod random_kills;
mod recovery_time;
mod soak;
mod stopped_lock_holder;
mod team_lives_under_kills;
mod tmux_arguments;
mod tmux_server_kills;
mod workers;

/// Every file in this directory is a trial of the list above.
#[test]
fn every_test_file_is_listed() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/faults");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(name == "main" || listed.contains(&format!("mod {name};")), "{name} is not in main.rs");
    }
}
