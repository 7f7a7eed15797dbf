//! Members of teams: from spawn to exit, and what follows an exit.

pub(crate) mod build_start_agent_message;
pub(crate) mod cleanup_after_exit;
pub(crate) mod decide_respawns_and_suspensions;
pub(crate) mod forced_termination;
pub(crate) mod kill_members_for_client;
pub(crate) mod mark_agents_to_suspend;
pub(crate) mod plan_approval_respawn;
pub(crate) mod record_exit_and_decide_respawn;
pub(crate) mod register_and_start_agent;
pub(crate) mod set_permission_mode;
pub(crate) mod shut_down_daemon;
pub(crate) mod shutdown_requests;
pub(crate) mod spawn;
pub(crate) mod start_respawns_and_resume_members;
pub(crate) mod undo_failed_start;
