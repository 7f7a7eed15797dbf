//! Replays records of teams: the core of today decides again, in a simulated world on a virtual
//! clock, while people and agents do what they did in the record.
//!
//! The daemon decides otherwise than in the record if, for example, another member gets a task.
//! `teamctl replay --check` shows this to users. Turns of a few milliseconds may differ by chance,
//! because the daemon learns of claims, results and turns in different ways.
//!
//! A complete record of `teamctl create --record` becomes a test when it is put into tests/records.
//! `RECORD=/ABSOLUTE/PATH cargo test -p teamd replay` replays one record and prints the differences.

pub(crate) mod check_record;
mod comparable_history;
mod conditions_of_record;
mod parse_record;
mod replayed_agents;
mod run_script;
mod script_from_record;

#[cfg(test)]
mod tests;
