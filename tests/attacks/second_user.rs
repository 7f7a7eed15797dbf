//! Attacks by another user of the machine. The victim runs teamd as root, because only root can act
//! as two users.

pub(crate) mod files;
pub(crate) mod links;
pub(crate) mod planted_directories;
pub(crate) mod planted_worktrees;
pub(crate) mod shared_root;
pub(crate) mod socket;
