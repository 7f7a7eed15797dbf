//! How much a trial is to do, and what it has done: a file for each figure, in the directory that `FIGURES` names.
//! Without that nothing is written. `scripts/promises` and `scripts/torture` make the tables of
//! docs/promises.md and docs/torture.md of these files.

use serde_json::json;
use std::path::PathBuf;

/// How many rounds: the environment's word, or the usual number.
///
/// # Panics
/// If the environment's word is no number.
pub fn iterations(variable: &str, usual: u64) -> u64 {
    match std::env::var(variable) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")),
        Err(_) => usual,
    }
}

/// So many were tried and held; called where all of them did. Figures of one name from two tests would hide one another.
pub fn record_result(name: &str, count: u64) {
    write(name, &json!({"count": count}));
}

/// This machine refuses what the figure needs; a skip is shown as such wherever the figure is.
#[allow(clippy::print_stderr, reason = "a test that did not run says so")]
pub fn record_skip(name: &str, why: &str) {
    eprintln!("SKIPPED {name}: {why}");
    write(name, &json!({"skipped": why}));
}

#[allow(clippy::disallowed_methods, reason = "not below ROOT")]
fn write(name: &str, value: &serde_json::Value) {
    let Some(directory) = std::env::var_os("FIGURES").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&directory).expect("the directory of FIGURES can be made");
    std::fs::write(directory.join(format!("{name}.json")), value.to_string())
        .expect("a figure can be written");
}
