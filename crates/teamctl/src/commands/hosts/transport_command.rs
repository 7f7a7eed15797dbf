//! Builds the command that reaches another machine.

use profile::directory_environment_and_prompt::CONFIG_DIR;
use profile::find_program_in_path::program_exists;
use protocol::env_filter::is_inherited;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use std::path::Path;
use std::process::Command;
use store::{env_var, env_vars};

/// The release of this program, which the program on the other machine must have too.
pub(in crate::commands) const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether Ctrl-C ends the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum CtrlC {
    /// Ctrl-C ends the transport, or the terminal passes it on.
    EndsTransport,
    /// The transport ignores Ctrl-C. This process sends it to the other machine.
    IsSent,
}

/// Builds the command that reaches a host: `argv` followed by `words`. All `words` are plain words
/// (`protocol::hosts_file_entry::is_plain_word`), which a remote shell leaves unchanged.
///
/// Some transports pass their environment on to the host. So the command runs without the variables
/// that are true only on this machine: `CLAUDE_CONFIG_DIR`, and those that no agent inherits, such
/// as `TEAMD_MEMBER`.
///
/// # Errors
///
/// `MissingPath` if the program of the command is not installed.
pub(in crate::commands) fn transport_command(
    host: &HostName,
    argv: &[String],
    words: &[&str],
    ctrl_c: CtrlC,
) -> Result<Command, ErrorReport> {
    let program = argv.first().map(String::as_str).unwrap_or_default();
    if !program_exists(program, Path::new("."), &env_var("PATH").unwrap_or_default()) {
        let message = format!("cannot reach {host}: {program} is not installed here");
        return Err(ErrorReport::new(ErrorKind::MissingPath, message)
            .with_help("the commands of all hosts: teamctl hosts"));
    }
    let mut command = match ctrl_c {
        CtrlC::EndsTransport => Command::new(program),
        // Programs keep ignoring signals that are ignored when they start.
        CtrlC::IsSent => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' INT QUIT; exec \"$@\"", "sh", program]);
            shell
        }
    };
    command.args(argv.iter().skip(1)).args(words);
    for (name, _) in env_vars().filter(|(name, _)| !is_inherited(name) || name == CONFIG_DIR) {
        command.env_remove(name);
    }
    Ok(command)
}
