//! Trials of the promises: what can fail is made to fail, again and again, and what must hold is counted. Each has its
//! number of rounds from the environment (`MESSAGES=n`, say), small unless told; `make torture` tells the large ones.
//!
//! What a trial did goes to [`harness::figure`], for the tables of README and docs/torture.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod arguments;
mod claims;
mod clients;
mod crash;
mod crew;
mod hostile;
mod kills;
mod mailbox;
mod orphans;
mod others;
mod recovery;
mod servers;
mod soak;
mod starts;
mod stopped;
mod strangers;
mod sweep;
mod traffic;

/// Every file in this directory is a trial of the list above.
#[test]
fn no_trial_is_forgotten() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/trials");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(name == "main" || listed.contains(&format!("mod {name};")), "{name} is not in main.rs");
    }
}
