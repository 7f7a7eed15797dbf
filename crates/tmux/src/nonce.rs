//! Nonces: random words that no other program can print by chance or on purpose, because they do
//! not exist before they are sent to tmux.
//!
//! tmux prints a nonce to mark the end of a reply, the end of a captured screen, or a condition
//! that was false. Because the word is random, no output of a pane can be mistaken for it.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a new nonce of letters, digits and a dash. It contains 64 random bits, from a hasher of
/// the standard library: the keys of such a hasher are random.
pub(crate) fn generate() -> String {
    format!("teamd-{:016x}", RandomState::new().build_hasher().finish())
}
