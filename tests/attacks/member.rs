//! Attacks by a member that misbehaves. It has the environment of a real spawn, and no more: teamd
//! does not defend a team against a member that writes the files of its user.

pub(crate) mod connections;
pub(crate) mod ended_spawn;
mod long_requests;
pub(crate) mod long_texts;
pub(crate) mod payloads;
pub(crate) mod permissions;
pub(crate) mod requests;
pub(crate) mod tasks;
pub(crate) mod usage;
