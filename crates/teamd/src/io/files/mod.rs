//! The files threads read and write the files of teams and the daemon's own state files.

pub(crate) mod config_scan;
pub(crate) mod environments;
pub(crate) mod event_log;
pub(crate) mod inbox_scan;
pub(crate) mod lane_shared_state;
pub(crate) mod member_batch;
pub(crate) mod members;
pub(crate) mod queue;
pub(crate) mod reopen_root;
pub(crate) mod rescan_diff;
pub(crate) mod roster;
pub(crate) mod teams;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod thread;
