//! The shape that the text of a file must have, and the most bytes of a file.

use protocol::json;

/// The most bytes of an inbox.
pub(crate) const INBOX_LIMIT: u64 = 256 << 20;

/// The most bytes of any other file.
pub(crate) const FILE_LIMIT: u64 = 8 << 20;

/// What a file's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonShape {
    /// An inbox.
    Array,
    /// A config or a task.
    Object,
}

impl JsonShape {
    pub(crate) fn check(self, text: &str) -> Result<(), json::JsonError> {
        match self {
            JsonShape::Array => json::Array::parse(text).map(drop),
            JsonShape::Object => json::Object::parse(text).map(drop),
        }
    }

    pub(crate) fn limit(self) -> u64 {
        match self {
            JsonShape::Array => INBOX_LIMIT,
            JsonShape::Object => FILE_LIMIT,
        }
    }
}
