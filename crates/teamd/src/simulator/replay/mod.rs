//! Replays records of teams: the core of today decides again, in a simulated world on a virtual
//! clock, while people and agents do what they did in the record.
//!
//! The replay fails if the core decides otherwise than in the record: for example, if another
//! member gets a task. A record of tasks that take only milliseconds may differ by chance, because
//! the clock of a record counts milliseconds.
//!
//! A complete record of `teamctl create --record` becomes a test when it is put into tests/records.
//! `RECORD=/ABSOLUTE/PATH cargo test -p teamd replay` replays one record and prints the differences.

mod comparable_history;
pub(super) mod replayed_agents;
mod run_script;
mod script_from_record;

use comparable_history::comparable_history;
use protocol::event_log_line::Event;
use run_script::run_script;
use script_from_record::{Script, parse_record};
use similar::TextDiff;

/// Replays a record. Returns how its history differs from the recorded one, as a unified diff.
/// `None` if it does not differ.
fn replay(record: &str) -> Option<String> {
    let lines = parse_record(record).expect("the record is valid");
    let recorded = comparable_history(&Script::from_lines(&lines).events);
    let log = run_script(Script::from_lines(&lines));
    let events: Vec<Event> =
        log.iter().map(|line| serde_json::from_str(line).expect("the line is an event")).collect();
    let replayed = comparable_history(&events);
    let diff = TextDiff::from_lines(&recorded, &replayed);
    (recorded != replayed).then(|| diff.unified_diff().header("recorded", "replayed").to_string())
}

#[cfg(test)]
mod tests;
