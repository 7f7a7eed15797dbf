//! Copies a text to the clipboard of the desktop by a program such as `pbcopy` on macOS. The user's
//! terminal also gets an escape sequence that sets the clipboard, but some terminals on macOS
//! ignore this sequence.

use crate::teamctl_command::memory_file;
use std::process::{Command, Stdio};

/// Runs the clipboard program on a new thread. Does nothing if the system has no such program.
pub(crate) fn copy_in_background(text: &str) {
    if let Some(program) = platform::system().clipboard_program() {
        let text = text.to_owned();
        std::thread::spawn(move || pass_text(program, &text));
    }
}

/// Runs the clipboard program with the text on its standard input. Returns whether the program has
/// succeeded. The user sees no failure, because the text may still reach the clipboard through the
/// terminal's escape sequence.
fn pass_text(mut program: Command, text: &str) -> bool {
    let Ok(input) = memory_file(text) else { return false };
    program.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn program_gets_the_whole_text() {
        assert!(pass_text(shell("[ \"$(cat)\" = \"two\nlines\" ]"), "two\nlines"));
        assert!(!pass_text(shell("[ \"$(cat)\" = one ]"), "two"));
        assert!(!pass_text(Command::new("/nonexistent"), "two"));
    }
}
