//! All that the event loop owns, and the lookups in it.

pub(crate) mod agent;
pub(crate) mod daemon;
pub(crate) mod event_log_cursor;
pub(crate) mod settings;
pub(crate) mod sleep_clock;
pub(crate) mod task_board;
pub(crate) mod team;
pub(crate) mod waiters;
