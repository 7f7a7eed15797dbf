//! Random words that no program can print before it has received them.
//!
//! They mark the end of a reply, a rejected command and the borders between captured screens. The
//! output of a pane can't contain one by accident or by intent.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a new nonce of letters, digits and a dash. It has 64 bits from the hash keys that the
/// standard library makes from system randomness.
pub(crate) fn generate() -> String {
    format!("teamd-{:016x}", RandomState::new().build_hasher().finish())
}
