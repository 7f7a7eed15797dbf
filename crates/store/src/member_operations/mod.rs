//! Operations of a member, the lead or a person on a team's files. The command line (`teamctl`) and
//! the MCP server share them. The operations need no daemon, and the caller passes the current
//! time.

mod answer_request;
mod answer_shutdown;
mod calling_member;
mod change_tasks;
mod send_and_broadcast;
mod submit_plan;

pub use answer_shutdown::ShutdownDecision;
pub use calling_member::Caller;
pub use send_and_broadcast::{BroadcastResult, FailedRecipient, SentMessage, check_text};
