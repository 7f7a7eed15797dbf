//! What a program wrote to its terminal, as text.

use protocol::terminal::visible;

/// Its lines, safe to show, each as it ended.
pub fn printable_lines(output: &[u8]) -> Vec<String> {
    let plain = anstream::adapter::strip_bytes(output).into_vec();
    String::from_utf8_lossy(&plain).lines().map(after_last_carriage_return).map(visible).collect()
}

/// A line that was written over again and again, as progress bars do: how it ended.
fn after_last_carriage_return(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}
