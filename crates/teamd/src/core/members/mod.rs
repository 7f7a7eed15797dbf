//! Members of teams: from spawn to exit, and what follows an exit.

pub(crate) mod cleanup_after_exit;
pub(crate) mod forced_termination;
pub(crate) mod kill;
pub(crate) mod mark_agents_to_suspend;
pub(crate) mod pending_respawns;
pub(crate) mod plan_approval_respawn;
pub(crate) mod record_exit_and_decide_respawn;
pub(crate) mod set_permission_mode;
pub(crate) mod shut_down_daemon;
pub(crate) mod shutdown_requests;
pub(crate) mod spawn;
pub(crate) mod start_pending_respawns;
pub(crate) mod start_steps_after_pane_opened;
