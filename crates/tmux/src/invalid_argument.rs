//! The error for an argument or a value that is not valid. It is a part of [`crate::Error`].

/// An argument of the caller is not valid, or a value of tmux did not parse.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {what:?}: {why}")]
pub struct InvalidArgument {
    /// The argument, cut to 80 characters.
    pub what: String,
    /// What is wrong with the argument, as a clause.
    pub why: &'static str,
}

impl InvalidArgument {
    /// Returns the error for `what`. `why` is a clause that says what is wrong.
    pub(crate) fn new(what: &str, why: &'static str) -> InvalidArgument {
        InvalidArgument { what: what.chars().take(80).collect(), why }
    }
}
