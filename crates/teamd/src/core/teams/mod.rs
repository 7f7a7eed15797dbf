//! Teams: creation, deletion, policy, budget.

pub(crate) mod budget;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod find_new_and_deleted_teams;
pub(crate) mod set_policy;
pub(crate) mod supervise_foreign_team;
