//! The state of the daemon, and lookups in it.

pub(crate) mod agent;
pub(crate) mod budget_status;
pub(crate) mod daemon;
pub(crate) mod logged_states;
pub(crate) mod lookup;
pub(crate) mod member_names;
pub(crate) mod next_task_queries;
pub(crate) mod retry_cache;
pub(crate) mod settings;
pub(crate) mod sleep_clock;
pub(crate) mod task_board;
pub(crate) mod team;
pub(crate) mod waiters;
pub(crate) mod worktree_reservations;
