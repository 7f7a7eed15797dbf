//! A member at its team's files, or a person there as the lead: what it may do, and the acts that the command line and
//! the MCP server share. Nothing here needs a daemon; whoever calls brings the time.

mod answer_request;
mod answer_shutdown;
mod caller;
mod send;
mod submit_plan;
mod tasks;

pub use answer_shutdown::ShutdownDecision;
pub use caller::{Caller, require_lead};
pub use send::{BroadcastResult, FailedRecipient, SentMessage, check_text};
