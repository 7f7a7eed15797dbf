//! Commands that find problems: `doctor` in the installation and its files, `why` in the work of a
//! member, and `trace` in the delivery of a message.

mod list_inbox_owners;

pub(crate) mod doctor;
pub(crate) mod trace;
pub(crate) mod why;
