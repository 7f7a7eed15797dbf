//! Makes a text a single line.

/// Replaces each line break and tab of `text` by a space.
pub fn single_line(text: &str) -> String {
    text.replace(['\r', '\n', '\t'], " ")
}
