//! Turns of agents: activity, and turns without output.

pub(crate) mod apply_reported_turns_and_activity;
pub(crate) mod interrupt_turn;
pub(crate) mod log_and_notify_turn_pauses;
pub(crate) mod no_output;
