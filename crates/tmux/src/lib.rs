//! Panes: one connection to one tmux server, and guarded acts on what is ours there.
//!
//! Everything goes through [`Server`]. It speaks to tmux over a control-mode client, or through one process per
//! command where that client cannot be had. This crate knows no teams and no agents: who a pane belongs to is an
//! [`Owner`], a word in a pane option, and whatever ends, reads or marks a pane names the owner that it expects.
//!
//! Invariants: a command goes only to the server whose [`Epoch`] was seen at the start; targets are ids, never
//! names; text from outside reaches tmux only as an option's value or as an argument vector, never where tmux
//! would expand a format; nothing newer than the manual of tmux 3.2 is spelled.

#![warn(missing_docs)]

mod address;
mod border_label;
mod capture_pane;
mod command_list;
mod connect;
mod control_client;
mod control_connection;
mod control_parser;
mod create_pane;
mod deadline;
mod epoch;
mod error;
mod guarded_command;
mod hidden_panes;
mod id;
mod kill_pane;
mod layout;
mod list_panes;
mod nonce;
mod pane_tag;
mod paste;
mod pipe_pane;
mod quote;
mod reply;
mod server;
mod stale_client;
mod status_message;
mod subprocess;
mod tag_pane;
mod validate;
mod version;

pub use address::{ServerAddress, TmuxProgram};
pub use border_label::BorderLabel;
pub use create_pane::CreatedPane;
pub use epoch::ServerEpoch;
pub use error::Error;
pub use id::{PaneId, SessionId, WindowId};
pub use kill_pane::KillOutcome;
pub use layout::MAIN_PANE_PERCENT;
pub use list_panes::PaneRow;
pub use pane_tag::PaneTag;
pub use paste::ScreenAndCursor;
pub use server::{ServerNotice, TmuxServer};
pub use status_message::MAX_MESSAGE_BYTES;
pub use tag_pane::TagOutcome;
pub use version::TmuxVersion;

/// Everything that reads what tmux printed, for the fuzz target of that name.
#[cfg(fuzzing)]
pub fn fuzz_reply(bytes: &[u8]) {
    let mut wire = wire::Wire::default();
    let mut reply = reply::Reply::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(wire::Heard::Block(block)) = wire.line(line) {
            reply.take(block);
        }
    }
    for line in reply.text("fuzz").unwrap_or_default().lines() {
        list::parse_row(line);
    }
}
