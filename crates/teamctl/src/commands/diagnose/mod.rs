//! Commands that find problems. `doctor` checks the installation and its files, `why` the work of a
//! member, and `trace` the delivery of a message.

mod list_inbox_owners;

pub(crate) mod doctor;
pub(crate) mod trace_message;
pub(crate) mod why_no_progress;
