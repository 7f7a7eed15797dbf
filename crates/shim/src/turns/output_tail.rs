//! Keeps the last lines of an agent's output, without control characters. If a turn fails, these
//! lines show the reason.

use client::terminal_output_to_plain_lines::printable_lines;

/// How much output is kept, in bytes. Control characters, such as those of progress bars, count
/// too.
const BUFFER_BYTES: usize = 16 << 10;
/// The most lines and bytes of the text.
const MAX_LINES: usize = 20;
const MAX_BYTES: usize = 4 << 10;

/// The end of an output.
#[derive(Debug, Default)]
pub(crate) struct OutputTail(Vec<u8>);

impl OutputTail {
    /// Adds the next part of the output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * BUFFER_BYTES {
            let excess = self.0.len() - BUFFER_BYTES;
            self.0.drain(..excess);
        }
    }

    /// Returns the last lines, and empties the buffer.
    pub(crate) fn take_text(&mut self) -> String {
        let mut lines = printable_lines(&std::mem::take(&mut self.0));
        lines.retain(|line| !line.trim().is_empty());
        let text = lines[lines.len().saturating_sub(MAX_LINES)..].join("\n");
        let start = (text.len().saturating_sub(MAX_BYTES)..text.len())
            .find(|position| text.is_char_boundary(*position));
        text[start.unwrap_or(text.len())..].trim_end().to_owned()
    }
}

/// The text of an output without control characters. If a line was overwritten, only its last state
/// is in the text.
pub(super) fn plain_text(output: &[u8]) -> String {
    printable_lines(output).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_text(bytes: &[u8]) -> String {
        let mut tail = OutputTail::default();
        bytes.chunks(700).for_each(|chunk| tail.push(chunk));
        tail.take_text()
    }

    #[test]
    fn colors_titles_and_progress_are_removed() {
        let text = "\x1b[31merror\x1b[0m: no\r\n\x1b]0;title\x07 10 %\r 99 %\r100 %\r\n\n\x07done \x1b[2K";
        assert_eq!(tail_text(text.as_bytes()), "error: no\n100 %\ndone");
    }

    #[test]
    fn tail_has_at_most_twenty_lines_and_four_kibibytes() {
        let many: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        let shown = tail_text(many.as_bytes());
        assert_eq!((shown.lines().count(), shown.lines().next()), (20, Some("line 4980")));
        let wide = tail_text("ä".repeat(50_000).as_bytes());
        assert!(wide.len() <= 4096 && wide.chars().all(|c| c == 'ä' || c == '\u{fffd}'), "{}", wide.len());
        assert_eq!(tail_text(b""), "");
        assert!(tail_text(&[0xff, 0xfe, b'x']).ends_with('x'));
    }
}
