//! Deterministic simulator: runs the core with a simulated clock, disk, tmux server and processes.
//!
//! The module [`replay`] repeats the record of a team, for `teamctl replay --check` and in tests. The
//! modules `random` and `network` are tests. They run the core under random events and faults, on one
//! host and on several, and check invariants.

mod chance;
mod clients;
mod daemon;
mod daemon_threads;
mod disk;
mod effect_runner;
mod hosts;
#[cfg(test)]
mod network;
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
