//! A pane's output, given to a program.
//!
//! tmux runs a shell command for it, and expands formats and dates in the command first. So every word is spelled in
//! a way that holds neither `#` nor `%`: whatever is not plain goes through the shell's own `printf`, byte by byte.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tmux_interface::PipePane;

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::{Error, PaneId, PaneTag, TmuxServer};

impl TmuxServer {
    /// Runs `command`, a program and its arguments, with what the pane prints from now on as its standard input. A
    /// record that was running ends.
    ///
    /// # Errors
    /// `NotOurs`; `Invalid` for a program whose path is not absolute, or a word with a NUL. A program that fails is
    /// not noticed here.
    pub fn pipe_output(&mut self, pane: PaneId, owner: &PaneTag, command: &[PathBuf]) -> Result<(), Error> {
        self.run_if_tagged(Deadline::for_action("record a pane"), pane, owner, &pipe_commands(pane, command)?)
            .map(drop)
    }
}

pub(crate) fn pipe_commands(pane: PaneId, command: &[PathBuf]) -> Result<CommandList, Error> {
    Ok(CommandList::new(
        &PipePane::new().target_pane(pane.to_string()).shell_command(shell_command(command)?).build(),
    ))
}

fn shell_command(command: &[PathBuf]) -> Result<String, Error> {
    if !command.first().is_some_and(|program| program.is_absolute()) {
        let program = command.first().map(|program| program.to_string_lossy().into_owned());
        return Err(Error::invalid_argument(
            &program.unwrap_or_default(),
            "the program of a record has an absolute path",
        ));
    }
    let words: Vec<String> = command.iter().map(|word| quote_for_tmux(word)).collect::<Result<_, _>>()?;
    Ok(format!("exec {}", words.join(" ")))
}

/// One word of `sh`.
fn quote_for_tmux(word: &Path) -> Result<String, Error> {
    let bytes = word.as_os_str().as_bytes();
    if bytes.contains(&0) {
        return Err(Error::invalid_argument(&word.to_string_lossy(), "no word of a record holds a NUL"));
    }
    let mut spelled = String::from("'");
    for run in bytes.chunk_by(|one, other| needs_no_escape(*one) == needs_no_escape(*other)) {
        match std::str::from_utf8(run) {
            Ok(text) if needs_no_escape(run[0]) => spelled.push_str(text),
            _ => spelled.push_str(&octal_printf(run)),
        }
    }
    spelled.push('\'');
    Ok(spelled)
}

/// A newline is plain in single quotes, and would be lost at the end of a substitution.
fn needs_no_escape(byte: u8) -> bool {
    byte == b'\n' || matches!(byte, b' '..=b'~' if !b"#%'\\".contains(&byte))
}

/// Leaves the single quotes, and comes back to them.
fn octal_printf(run: &[u8]) -> String {
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
    fn format_date_and_quote_characters_are_escaped() {
        for (path, want) in [
            ("/a b/c", "'/a b/c'"),
            ("/#(x)", r#"'/'"$(printf '\043')"'(x)'"#),
            ("/%H'", r#"'/'"$(printf '\045')"'H'"$(printf '\047')"''"#),
            ("/é$(x)\n", "'/'\"$(printf '\\303\\251')\"'$(x)\n'"),
        ] {
            assert_eq!(quote_for_tmux(Path::new(path)).unwrap(), want);
        }
    }

    #[test]
    fn relative_program_and_nul_are_rejected() {
        assert!(shell_command(&["a".into()]).is_err() && shell_command(&[]).is_err());
        assert!(shell_command(&["/a".into(), "b\0c".into()]).is_err());
        assert_eq!(shell_command(&["/a b".into(), "c".into()]).unwrap(), "exec '/a b' 'c'");
    }
}
