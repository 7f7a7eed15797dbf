//! Commands that find out what is wrong: with the installation and its files (`doctor`), with a
//! member (`why`), with a message (`trace`).

mod inbox_owners;

pub(crate) mod doctor;
pub(crate) mod trace;
pub(crate) mod why;
