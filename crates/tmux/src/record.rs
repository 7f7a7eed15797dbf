//! A pane's output, appended to a file.
//!
//! tmux runs a shell command for it, and expands formats and dates in the command first. So the path is spelled in a
//! way that holds neither `#` nor `%`: whatever is not plain goes through the shell's own `printf`, byte by byte.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tmux_interface::PipePane;

use crate::deadline::Deadline;
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server};

impl Server {
    /// Appends what the pane prints from now on to `file`, which the server creates. A record that was running
    /// ends.
    ///
    /// # Errors
    /// `NotOurs`; `Invalid` for a path that is not absolute or holds a NUL. A file that cannot be written is not
    /// noticed here.
    pub fn record(&mut self, pane: PaneId, owner: &Owner, file: &Path) -> Result<(), Error> {
        let command = format!("exec cat >>{}", spelled(file)?);
        let pipe = PipePane::new().target_pane(pane.to_string()).shell_command(command).build();
        self.guarded(Deadline::of("record a pane"), pane, owner, &Script::of(&pipe)).map(drop)
    }
}

/// The path as one word of `sh`.
fn spelled(file: &Path) -> Result<String, Error> {
    let bytes = file.as_os_str().as_bytes();
    if !file.is_absolute() || bytes.contains(&0) {
        return Err(Error::invalid(
            &file.to_string_lossy(),
            "the path of a record is absolute and has no NUL",
        ));
    }
    let mut word = String::from("'");
    for run in bytes.chunk_by(|one, other| is_plain(*one) == is_plain(*other)) {
        match std::str::from_utf8(run) {
            Ok(text) if is_plain(run[0]) => word.push_str(text),
            _ => word.push_str(&printed(run)),
        }
    }
    word.push('\'');
    Ok(word)
}

/// A newline is plain in single quotes, and would be lost at the end of a substitution.
fn is_plain(byte: u8) -> bool {
    byte == b'\n' || matches!(byte, b' '..=b'~' if !b"#%'\\".contains(&byte))
}

/// Leaves the single quotes, and comes back to them.
fn printed(run: &[u8]) -> String {
    let mut octal = String::new();
    for byte in run {
        write!(octal, "\\{byte:03o}").expect("a String takes it");
    }
    format!("'\"$(printf '{octal}')\"'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_formats_nor_dates_nor_quotes_are_left_in_a_path() {
        for (path, want) in [
            ("/a b/c", "'/a b/c'"),
            ("/#(x)", r#"'/'"$(printf '\043')"'(x)'"#),
            ("/%H'", r#"'/'"$(printf '\045')"'H'"$(printf '\047')"''"#),
            ("/é$(x)\n", "'/'\"$(printf '\\303\\251')\"'$(x)\n'"),
        ] {
            assert_eq!(spelled(Path::new(path)).unwrap(), want);
        }
    }

    #[test]
    fn a_relative_path_is_refused() {
        assert!(spelled(Path::new("a")).is_err());
        assert!(spelled(Path::new("/a\0b")).is_err());
    }
}
