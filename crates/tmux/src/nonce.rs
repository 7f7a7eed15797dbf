//! Words that nobody can print before we have said them.
//!
//! They mark the end of an answer and a refusal. A pane that prints all it can think of still does not hit one.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A fresh word: letters, digits and a dash, 64 bits from the system's random keys.
pub(crate) fn generate() -> String {
    format!("teamd-{:016x}", RandomState::new().build_hasher().finish())
}
