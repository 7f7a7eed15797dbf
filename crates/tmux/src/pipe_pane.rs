//! Pipes the output of a pane to a program.
//!
//! tmux runs a shell command to start the program, and expands formats (`#…`) and dates (`%…`) in
//! that command first. So the command is written without the characters `#` and `%`. For each of
//! these characters, and for every byte that is not plain text, the command calls the shell's
//! `printf`.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tmux_interface::PipePane;

use crate::command_list::CommandList;
use crate::{Error, InvalidArgument, PaneId, PaneTag, TmuxServer};

impl TmuxServer {
    /// Runs `command`, a program and its arguments, with the output of the pane as its standard
    /// input. Earlier output is not included. If the output of the pane was piped to another
    /// program already, that pipe ends.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane does not have the tag `tag`; `InvalidArgument` if the path of the
    /// program is not absolute or a word contains NUL. An error of the program itself is not
    /// reported.
    pub fn pipe_output(&mut self, pane: PaneId, tag: &PaneTag, command: &[PathBuf]) -> Result<(), Error> {
        let commands = pipe_commands(pane, command)?;
        self.call("pipe a pane's output").run_if_tagged(pane, tag, &commands).map(drop)
    }
}

/// Returns the tmux commands that pipe the output of a pane to the program `command`.
///
/// # Errors
///
/// `InvalidArgument` if the path of the program is not absolute or a word contains NUL.
pub(crate) fn pipe_commands(pane: PaneId, command: &[PathBuf]) -> Result<CommandList, InvalidArgument> {
    Ok(CommandList::new(
        &PipePane::new().target_pane(pane.to_string()).shell_command(shell_command(command)?).build(),
    ))
}

/// Returns `command` as a line of `sh` without `#` and `%`.
fn shell_command(command: &[PathBuf]) -> Result<String, InvalidArgument> {
    if !command.first().is_some_and(|program| program.is_absolute()) {
        let program = command.first().map(|program| program.to_string_lossy().into_owned());
        return Err(InvalidArgument::new(
            &program.unwrap_or_default(),
            "the path of the program must be absolute",
        ));
    }
    let words: Vec<String> = command.iter().map(|word| quote_for_tmux(word)).collect::<Result<_, _>>()?;
    Ok(format!("exec {}", words.join(" ")))
}

/// Quotes `word` as one word for the shell `sh`. The result has no `#` and no `%`, which tmux would
/// expand.
///
/// # Errors
///
/// `InvalidArgument` if `word` contains NUL.
fn quote_for_tmux(word: &Path) -> Result<String, InvalidArgument> {
    let bytes = word.as_os_str().as_bytes();
    if bytes.contains(&0) {
        return Err(InvalidArgument::new(&word.to_string_lossy(), "it contains a NUL"));
    }
    let mut quoted = String::from("'");
    for run in bytes.chunk_by(|one, other| needs_no_escape(*one) == needs_no_escape(*other)) {
        match std::str::from_utf8(run) {
            Ok(text) if needs_no_escape(run[0]) => quoted.push_str(text),
            _ => quoted.push_str(&octal_printf(run)),
        }
    }
    quoted.push('\'');
    Ok(quoted)
}

/// Whether `byte` can be written unchanged between single quotes. A newline must be written
/// unchanged, because a command substitution such as `$(printf …)` drops newlines at its end.
fn needs_no_escape(byte: u8) -> bool {
    byte == b'\n' || matches!(byte, b' '..=b'~' if !b"#%'\\".contains(&byte))
}

/// Returns shell text that inserts some bytes into a word in single quotes. The text closes the
/// quotes, prints the bytes with `printf`, and opens the quotes again.
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
        for (path, expected) in [
            ("/a b/c", "'/a b/c'"),
            ("/#(x)", r#"'/'"$(printf '\043')"'(x)'"#),
            ("/%H'", r#"'/'"$(printf '\045')"'H'"$(printf '\047')"''"#),
            ("/é$(x)\n", "'/'\"$(printf '\\303\\251')\"'$(x)\n'"),
        ] {
            assert_eq!(quote_for_tmux(Path::new(path)).unwrap(), expected);
        }
    }

    #[test]
    fn relative_program_and_nul_are_rejected() {
        assert!(shell_command(&["a".into()]).is_err() && shell_command(&[]).is_err());
        assert!(shell_command(&["/a".into(), "b\0c".into()]).is_err());
        assert_eq!(shell_command(&["/a b".into(), "c".into()]).unwrap(), "exec '/a b' 'c'");
    }
}
