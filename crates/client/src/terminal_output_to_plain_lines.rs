//! Converts the terminal output of a program to lines of plain text.

use protocol::escape_control_chars::visible;

/// The lines of the output as people see them: without escape sequences, and with control
/// characters escaped. If a line contains carriage returns, only the text after the last one is
/// kept.
pub fn printable_lines(output: &[u8]) -> Vec<String> {
    plain_text(output).lines().map(after_last_carriage_return).map(visible).collect()
}

/// What a terminal shows of one line of output: the text after the last carriage return, without
/// escape sequences. Other control characters stay in the text.
pub fn plain_line(line: &[u8]) -> String {
    after_last_carriage_return(plain_text(line).trim_end()).to_owned()
}

fn plain_text(output: &[u8]) -> String {
    let plain = anstream::adapter::strip_bytes(output).into_vec();
    String::from_utf8_lossy(&plain).into_owned()
}

/// The part of a line after the last carriage return. A progress bar overwrites its line by
/// printing a carriage return, so only this part is visible at the end.
fn after_last_carriage_return(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}
