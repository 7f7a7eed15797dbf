//! Quotes paths for shell commands that are shown to people.

use std::path::Path;

/// Returns the path as one word of a shell. It is quoted only if it needs quotes.
pub fn shell_quote(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
