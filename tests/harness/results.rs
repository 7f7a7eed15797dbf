//! Reads from environment variables how many cases a test runs, and records how many have passed.
//!
//! Each figure is one file in the directory that the variable `FIGURES` names. Without the variable
//! nothing is written. `scripts/promises` and `scripts/torture` build the tables of
//! docs/promises.md and docs/torture.md from these files.

use serde_json::json;
use std::path::PathBuf;

/// Reads a number, such as a count of rounds or a seed, from an environment variable. Returns
/// `default` if the variable is not set.
///
/// # Panics
/// If the variable is not a number.
pub fn number_from_env(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{variable}={value} is not a number")),
        Err(_) => default,
    }
}

/// Records that `count` cases of the figure `name` have passed. Tests call it after all cases have
/// passed. Each name belongs to one test, since a second test would overwrite the file.
pub fn record_result(name: &str, count: u64) {
    write_figure(name, &json!({"count": count}));
}

/// Records that the figure `name` is skipped because this machine lacks what it needs. The tables
/// show `reason` in place of the count.
#[allow(clippy::print_stderr, reason = "a skipped test reports it")]
pub fn record_skip(name: &str, reason: &str) {
    eprintln!("SKIPPED {name}: {reason}");
    write_figure(name, &json!({"skipped": reason}));
}

#[allow(clippy::disallowed_methods, reason = "the file is not below the root")]
fn write_figure(name: &str, value: &serde_json::Value) {
    let Some(directory) = std::env::var_os("FIGURES").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&directory).expect("the directory FIGURES can be created");
    std::fs::write(directory.join(format!("{name}.json")), value.to_string())
        .expect("the figure can be written");
}
