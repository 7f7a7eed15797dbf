//! Attacks on a team, by another user of the machine and by a member that misbehaves. The test
//! prints a table of all attacks, and fails if one of them gets through.
//!
//! Opt-in: `scripts/attacks` starts it. The variable `TEAMD_TEST_ATTACKS` selects the groups of
//! attacks whose names contain its value; an empty value selects all. Attacks by another user need
//! root, and are skipped without it. Linux only: a thread acts as the other user.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot continue must stop; the table is the result"
)]

mod archives;
mod attack_log;
mod member;
mod planted;
mod repository_programs;
mod second_user;
mod user_thread;

use attack_log::AttackLog;

/// A group of attacks: the attacker and its way in, and the function that tries all of them.
type AttackGroup = (&'static str, fn(&mut AttackLog));

const GROUPS: [AttackGroup; 16] = [
    ("second user, files", second_user::files::attack),
    ("second user, socket", second_user::socket::attack),
    ("second user, directories", second_user::planted_directories::attack),
    ("second user, worktrees", second_user::planted_worktrees::attack),
    ("second user, shared root", second_user::shared_root::attack),
    ("second user, links", second_user::links::attack),
    ("member, permissions", member::permissions::attack),
    ("member, payloads", member::payloads::attack),
    ("member, requests", member::requests::attack),
    ("member, tasks", member::tasks::attack),
    ("member, ended spawn", member::ended_spawn::attack),
    ("member, usage", member::usage::attack),
    ("member, long texts", member::long_texts::attack),
    ("member, connections", member::connections::attack),
    ("archive", archives::attack),
    ("repository", repository_programs::attack),
];

#[test]
fn no_attack_gets_through() {
    let Ok(selected) = std::env::var("TEAMD_TEST_ATTACKS") else {
        return println!("SKIPPED: scripts/attacks starts the attacks");
    };
    let mut log = AttackLog::default();
    for (group, attack) in GROUPS.into_iter().filter(|(group, _)| group.contains(&selected)) {
        log.run_group(group, attack);
    }
    println!("{log}");
    assert!(log.has_attacks(), "no group of attacks has a name with {selected:?}");
    assert_eq!(log.successes(), Vec::<String>::new(), "attacks have got through");
    log.record_result();
}

/// Checks that each file of this directory is a module of this file.
#[test]
fn every_test_file_is_listed() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/attacks");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(name == "main" || listed.contains(&format!("mod {name};")), "{name} is not in main.rs");
    }
}
