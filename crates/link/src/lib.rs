//! The link between the daemon of a team's home host and the daemon of one annex.
//!
//! A link carries items both ways over a byte stream, which may be cut at any byte and made again.
//! Each item is delivered once and in order, also if either process is killed at any point. Each end
//! numbers its items. It writes them to its spool file before it sends them, and removes them when
//! the other end has acknowledged them. The other end acknowledges an item after it has stored it.
//! At each connection, both ends say which item they have stored last, and each goes on after it.
//!
//! [`LinkState`] decides, without I/O or clock. [`LinkDriver`] carries out its effects: it runs the
//! connect command, writes the [`SpoolFile`] and calls the [`ItemReceiver`].
//!
//! **For the sender:** a submission arrives if [`LinkReport::Accepted`] was reported for its number.
//! The numbers of submissions are consecutive. So a program that must not send something twice first
//! records the number that its submission will get. After a restart, the submission was accepted if
//! [`SpoolContents::last_number`] is not lower.
//!
//! **For the receiver:** see [`ItemReceiver`].
//!
//! **Durability:** with `process`, the spool survives the kill of any process. With `ordered` or
//! `power`, it is flushed to the disk before an item is sent. After a power loss with `process`, the
//! ends can disagree about the numbers. Then they refuse each other
//! ([`LinkRefusal::NumbersDiffer`](protocol::annex_link::LinkRefusal::NumbersDiffer)) until a person
//! decides, because anything else could lose or double an item.

mod connect_and_disconnect;
mod disconnect_reason;
mod driver;
mod event_and_effect;
mod handle_link_event;
mod hello_and_refusal;
mod incoming_items;
mod link_phase;
mod link_state;
mod outgoing_items;
mod received_log;
mod settings_and_identity;
#[cfg(test)]
mod simulator;
mod spool_file;
mod spool_lines;
mod submission;
#[cfg(test)]
mod test_items;
mod trait_to_store_received_items;
mod write_in_progress;

pub use disconnect_reason::DisconnectReason;
pub use driver::{ConnectionSource, LinkDriver, LinkInputs, LinkStream};
pub use event_and_effect::{ConnectionNumber, LinkEffect, LinkEvent, LinkReport, LinkTime, ReceivedPosition};
pub use link_phase::LinkPhase;
pub use link_state::LinkState;
pub use received_log::{ReceivedItems, ReceivedLog};
pub use settings_and_identity::{LinkIdentity, LinkRole, LinkSettings};
pub use spool_file::{OpenError, SpoolFile};
pub use spool_lines::{DamagedSpool, SpoolContents, SpoolWrite};
pub use submission::{ItemTooLong, Submission};
pub use trait_to_store_received_items::ItemReceiver;
