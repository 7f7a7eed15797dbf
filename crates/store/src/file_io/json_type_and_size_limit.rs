//! The JSON type and the size limit of a file.

use protocol::format_preserving_json;

/// Maximum size of an inbox in bytes.
pub(crate) const INBOX_LIMIT: u64 = 256 << 20;

/// Maximum size of any other file in bytes.
pub(crate) const FILE_LIMIT: u64 = 8 << 20;

/// The JSON type of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonShape {
    /// An inbox.
    Array,
    /// A config or a task.
    Object,
}

impl JsonShape {
    pub(crate) fn check(self, text: &str) -> Result<(), format_preserving_json::JsonError> {
        match self {
            JsonShape::Array => format_preserving_json::Array::parse(text).map(drop),
            JsonShape::Object => format_preserving_json::Object::parse(text).map(drop),
        }
    }

    pub(crate) fn limit(self) -> u64 {
        match self {
            JsonShape::Array => INBOX_LIMIT,
            JsonShape::Object => FILE_LIMIT,
        }
    }
}
