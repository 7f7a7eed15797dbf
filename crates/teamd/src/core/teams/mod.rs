//! Teams: creation, deletion, policy, budget.

pub(crate) mod adopt;
pub(crate) mod budget;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod set_policy;
pub(crate) mod teams_in_root;
