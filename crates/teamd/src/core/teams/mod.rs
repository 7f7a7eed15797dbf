//! Teams: creation, deletion, policy, budget.

pub(crate) mod add_foreign_team_to_state;
pub(crate) mod budget;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod find_new_and_deleted_teams;
pub(crate) mod set_policy;
