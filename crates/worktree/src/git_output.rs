//! The output and exit status of git, and the error that they become.

use crate::error::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// How many lines of git's standard error an error has, from its beginning and from its end.
const FIRST_LINES: usize = 5;

const LAST_LINES: usize = 3;

/// The output and exit status of git.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl GitOutput {
    /// Whether git exited with status 0.
    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Returns the standard output if git exited with status 0 or 1. Some commands exit with status
    /// 1 if they have found nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Git`] if git exited with another status.
    pub(crate) fn stdout_if_code_0_or_1(self, action: &str) -> Result<Vec<u8>, Error> {
        if self.status.code() == Some(1) { Ok(self.stdout) } else { self.stdout_or_error(action) }
    }

    /// Returns the standard output if git succeeded.
    ///
    /// # Errors
    ///
    /// [`Error::Git`] if git failed.
    pub(crate) fn stdout_or_error(self, action: &str) -> Result<Vec<u8>, Error> {
        if self.is_success() { Ok(self.stdout) } else { Err(self.to_error(action)) }
    }

    /// Returns the error for a failure of git. If git did not find a program, the error names this
    /// program. Otherwise the error contains the lines of standard error ([`error_lines`]), or
    /// git's exit status if there are none.
    pub(crate) fn to_error(&self, action: &str) -> Error {
        if let Some(program) = self.stderr.lines().find_map(missing_program) {
            return Error::ProgramMissing { action: action.to_owned(), program: program.to_owned() };
        }
        let message = error_lines(&self.stderr);
        let stderr = if message.is_empty() { format!("git failed: {}", self.status) } else { message };
        Error::Git { action: action.to_owned(), stderr }
    }
}

/// Whether this error line of git means that another git process is creating a worktree at the
/// moment: that process has created the file `commondir`, but has not yet written its content.
pub(crate) fn names_unfinished_worktree(line: &str) -> bool {
    line.starts_with("fatal: failed to read ") && line.contains("/commondir: ")
}

/// Joins the lines of git's standard error, without hints. Git prints the cause first, the
/// consequence last, and any number of file names in between. So of a long text the first and the
/// last lines are used.
pub(crate) fn error_lines(stderr: &str) -> String {
    let is_shown = |line: &&str| !line.trim().is_empty() && !line.starts_with("hint:");
    let lines: Vec<&str> = stderr.lines().map(str::trim_end).filter(is_shown).collect();
    let Some(left_out) = lines.len().checked_sub(FIRST_LINES + LAST_LINES).filter(|n| *n > 0) else {
        return lines.join("; ");
    };
    let (first, last) = (&lines[..FIRST_LINES], &lines[lines.len() - LAST_LINES..]);
    format!("{}; … {left_out} lines …; {}", first.join("; "), last.join("; "))
}

/// If `line` is a shell's message that it did not find a program, returns the program. Such
/// messages are `git-lfs clean: 1: git-lfs: not found` and `…: git-lfs: command not found`.
pub(crate) fn missing_program(line: &str) -> Option<&str> {
    let start = line.strip_suffix(": command not found").or_else(|| line.strip_suffix(": not found"))?;
    start.rsplit_once(": ").map(|(_, program)| program)
}

/// Splits output into its entries. Each ends with a NUL.
pub(crate) fn split_nul(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// Returns the path that git printed.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(os_string(bytes))
}

/// Returns the text that git printed.
pub(crate) fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_first_and_last_lines_without_hints() {
        assert_eq!(error_lines("error: a\n\n  b\nhint: c\nfatal: d\n"), "error: a;   b; fatal: d");
        let long: String = (1..=20).map(|n| format!("{n}\n")).collect();
        assert_eq!(error_lines(&long), "1; 2; 3; 4; 5; … 12 lines …; 18; 19; 20");
    }

    #[test]
    fn missing_program_is_read_from_the_message_of_the_shell() {
        for line in ["git-lfs smudge -- a: 1: git-lfs: not found", "x: line 1: git-lfs: command not found"] {
            assert_eq!(missing_program(line), Some("git-lfs"));
        }
        for line in ["fatal: a: smudge filter lfs failed", "error: repository not found", "Not found: x"] {
            assert_eq!(missing_program(line), None);
        }
    }
}
