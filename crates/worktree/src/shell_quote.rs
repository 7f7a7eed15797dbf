//! A path as a word of a shell's, for the commands that people are told.

use std::path::Path;

/// One word, whatever is in it.
pub fn shell_quote(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
