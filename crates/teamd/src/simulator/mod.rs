//! Deterministic simulator: runs the core with a simulated clock, disk, tmux server and processes.
//!
//! The module [`replay`] repeats the record of a team, for `teamctl replay --check` and in tests. The
//! module `random` is a test: it runs the core under random events and faults, and checks
//! invariants.

mod chance;
mod clients;
mod daemon;
mod daemon_threads;
mod disk;
mod effect_runner;
mod hosts;
#[cfg(test)]
mod random;
pub(crate) mod replay;
mod scan_memory;
mod shim;
mod shim_and_agent_processes;
mod simulation;
mod team_files;
mod tmux;
mod turn_agent_state;
mod turn_agents;
mod worktrees;
