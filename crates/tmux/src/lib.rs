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
mod announce;
mod client;
mod connect;
mod control;
mod create;
mod deadline;
mod epoch;
mod error;
mod exec;
mod guard;
mod hide;
mod id;
mod keys;
mod kill;
mod label;
mod layout;
mod list;
mod mark;
mod nonce;
mod owner;
mod predecessor;
mod quote;
mod record;
mod reply;
mod screen;
mod script;
mod server;
mod version;
mod wire;
mod word;

pub use address::{Address, Program};
pub use announce::LONGEST_WORD;
pub use create::Created;
pub use epoch::Epoch;
pub use error::Error;
pub use id::{PaneId, SessionId, WindowId};
pub use keys::Seen;
pub use kill::Killed;
pub use label::Label;
pub use layout::MAIN_PERCENT;
pub use list::PaneRow;
pub use mark::Claimed;
pub use owner::Owner;
pub use server::{Notice, Server};
pub use version::Version;

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
