//! Fault tests of the promises in docs/promises.md. Each test makes processes, disks, system calls
//! or inputs fail many times, and checks the promises after each failure.
//!
//! Environment variables such as `MESSAGES=n` set the number of rounds of each test. The defaults
//! are small; `scripts/torture` sets large numbers. Each test records its counts with
//! [`harness::record_result`], for the tables in docs/promises.md and docs/torture.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue must stop")]

mod cli_syscalls;
mod concurrent_claims;
mod concurrent_messages;
mod concurrent_starts;
mod control_client_leaks;
mod failpoints;
mod foreign_panes;
mod foreign_writers;
mod hostile_input;
mod many_members;
mod message_traffic;
mod night;
mod orphan_processes;
mod partitions;
mod random_kills;
mod recovery_time;
mod soak;
mod stopped_lock_holder;
mod team_lives_under_kills;
mod tmux_arguments;
mod tmux_server_kills;
mod workers;

/// Checks that each file of this directory is a module of this file.
#[test]
fn every_test_file_is_listed() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/faults");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(
            name == "main" || listed.contains(&format!("mod {name};")),
            "{name} is not a module of main.rs"
        );
    }
}
