//! Copies a text to the clipboard of the desktop by a program such as `pbcopy` on macOS. The user's
//! terminal also gets an escape sequence that sets the clipboard, but some terminals on macOS
//! ignore this sequence.

use crate::teamctl_command::memory_file;
use std::process::{Command, Stdio};

/// Starts the program on a thread of its own, which also waits for its end. Does nothing if the system has
/// no such program.
pub(crate) fn copy_in_background(text: &str) {
    if let Some(program) = platform::system().clipboard_program() {
        let text = text.to_owned();
        std::thread::spawn(move || pass_text(program, &text));
    }
}

/// Runs the program with the text on its standard input. Returns whether it has succeeded. A failure is not
/// shown, because the terminal gets the text too.
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
