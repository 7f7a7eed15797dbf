//! Turns of agents: activity, and turns without output.

pub(crate) mod activity;
pub(crate) mod interrupt_turn;
pub(crate) mod no_output;
pub(crate) mod turn_pauses;
