//! Turns of agents: activity, and turns without output.

pub(crate) mod activity;
pub(crate) mod failed_turns;
pub(crate) mod no_output;
