//! Two ends with real files, and a link between them that delivers when the test says so. Either end
//! can be killed at any time.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(clippy::print_stdout, reason = "a failed test shows what was sent")]

mod configs;
mod end;
mod event_logs;
mod faults;
mod move_home;
mod pair;
mod random_life;
mod steps;
mod take_home;
