//! Nonces: random words that no other program can print by chance or on purpose, because they do
//! not exist before they are sent to tmux.
//!
//! A nonce marks the end of a reply, a command whose condition was false, or the border between two
//! captured screens. So the output of a pane cannot be mistaken for such a mark.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a new nonce of letters, digits and a dash. It contains 64 random bits, which come from
/// the hash keys that the standard library makes from the randomness of the operating system.
pub(crate) fn generate() -> String {
    format!("teamd-{:016x}", RandomState::new().build_hasher().finish())
}
