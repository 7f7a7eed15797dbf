//! Members of teams: from spawn to exit, and what follows an exit.

pub(crate) mod cleanup;
pub(crate) mod exit;
pub(crate) mod pending_respawns;
pub(crate) mod permission_mode;
pub(crate) mod plan_approval_respawn;
pub(crate) mod resume_members;
pub(crate) mod shutdown;
pub(crate) mod spawn;
pub(crate) mod start_steps;
pub(crate) mod termination;
