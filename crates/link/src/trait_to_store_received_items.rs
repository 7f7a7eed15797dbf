//! The application's side of receiving.

use crate::event_and_effect::ReceivedPosition;
use protocol::annex_link::LinkItem;
use std::sync::Arc;

/// Stores what the other end has sent. The link calls the methods from one thread, and acknowledges
/// an item once it is stored.
///
/// The receiver also stores a position: the number of the last item that it has received. If the
/// process is killed during [`ItemReceiver::apply`], the other end sends all items after the stored
/// position again. But each item must have its effect exactly once. There are two kinds of
/// implementations:
///
/// - **One step:** it writes items and position in one step, or each item with its number, as
///   [`ReceivedLog`](crate::ReceivedLog) does.
/// - **Idempotent:** it applies the items first, and then writes the position. It skips an item
///   that it has applied before, which it recognizes by the number or the content. It needs to
///   recognize only items after the stored position.
///
/// `simulator` tests both kinds.
pub trait ItemReceiver: Send + 'static {
    /// The stored position. Called once, before the first `apply`.
    fn position(&self) -> ReceivedPosition;

    /// Applies items in order, and stores `position`. The numbers of the items can have gaps,
    /// because the link drops items of a member's earlier spawns. If the link has dropped all
    /// items, or if only the epoch is new, `items` is empty and only `position` is stored.
    ///
    /// When the method returns, items and position survive the kill of the process.
    /// `TEAMD_DURABILITY` says whether they also survive a power loss.
    ///
    /// # Errors
    /// A text for people. The link calls the method again with the same items and perhaps more.
    fn apply(&mut self, items: &[Arc<LinkItem>], position: ReceivedPosition) -> Result<(), String>;
}
