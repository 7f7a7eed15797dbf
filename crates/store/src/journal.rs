//! What was acknowledged, noted outside the root: a foreign writer may put back an inbox as it was before a message of
//! ours came, and nothing in the root would tell that there was one. Whoever sends notes it behind the write, whoever
//! marks read notes it before; the daemon compares, and puts back what is missing, once (`InboxReconciler`).
//!
//! A file a team, a line a note, only ever added to. A sender that is killed between the write and its note has not
//! acknowledged anything. A note that can't be written is left out: the message is stored all the same, and to say
//! otherwise would make its sender send it twice. Nothing is flushed: what a power cut takes, it takes from a message
//! that the inbox itself has.

mod entry;
mod notes;
mod reconciler;
pub(crate) mod storage;

pub use reconciler::{InboxChange, InboxReconciler, ReaderKind};
