//! Stories of the whole system: real tmux, real programs, a house of its own for each.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod acp;
mod agents;
mod architecture;
mod bad_input;
mod budgets;
mod claims;
mod crash;
mod damage;
mod death;
mod delete;
mod dialogs;
mod docs;
mod doctor;
mod doors;
mod environment;
mod examples;
mod hidden;
mod hints;
mod hooks;
mod injection;
mod journal;
mod keys;
mod lives;
mod mcp;
mod messages;
mod native;
mod notices;
mod panes;
mod parcels;
mod plans;
mod requests;
mod root;
mod run;
mod segment;
mod sessions;
mod shutdown;
mod spawn;
mod state;
mod tasks;
mod told;
mod tomorrow;
mod top;
mod trace;
mod turns;
mod verbs;
mod watching;
mod why;
mod worktrees;

/// Every file in this directory is a story of the list above.
#[test]
fn no_story_is_forgotten() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e");
    let told = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(name == "main" || told.contains(&format!("mod {name};")), "{name} is not in main.rs");
    }
}
