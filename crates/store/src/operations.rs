//! Operations of a member, the lead or a person on a team's files. The command line (`teamctl`) and
//! the MCP server share them. The operations need no daemon, and the caller passes the current
//! time.

mod answer_request;
mod answer_shutdown;
mod caller;
mod send;
mod submit_plan;
mod tasks;

pub use answer_shutdown::ShutdownDecision;
pub use caller::Caller;
pub use send::{BroadcastResult, FailedRecipient, SentMessage, check_text};
