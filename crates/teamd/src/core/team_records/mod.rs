//! Decides what the record of a team gets: everything that comes from outside, and the events of
//! the team. A files thread writes the record, and masks secrets.
//!
//! What follows from the files of the daemon alone, such as the tasks that track members, is not
//! recorded.

pub(crate) mod record_calls_reports_and_messages;
pub(crate) mod record_events_and_outputs;
pub(crate) mod recorded_teams;
