//! Runs links over real pipes and between real processes.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod end;
mod pipes;
mod processes;
