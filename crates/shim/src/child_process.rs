//! Starting what an agent runs: in which directory, with which environment, and how it is told what is missing.

use crate::pre_exec::{run_in_foreground, run_in_new_session};
use crate::pty::OutputPty;
use crate::turns::executor::{StartError, TurnCommand};
use protocol::control::StartAgent;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the terminal in this pane can do, and which pane it is: known here, not where the agent was ordered.
const PANE_VARIABLES: [&str; 6] =
    ["TERM", "TMUX", "TMUX_PANE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// Where the agent is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneMode {
    Pane,
    /// Nowhere but in its log.
    Headless,
}

/// An agent for its whole life, in the foreground of this terminal, or writing to `terminal` where there is no pane.
/// The text of an error names what is missing.
pub(crate) fn start_agent(
    go: &StartAgent,
    line: &OwnedFd,
    terminal: Option<&OutputPty>,
) -> Result<Child, String> {
    let (program, arguments) = go.argv.split_first().ok_or("cannot start an agent without a program")?;
    let place = if terminal.is_some() { PaneMode::Headless } else { PaneMode::Pane };
    let mut command = base_command(go, program, place)?;
    command.args(arguments).env("TEAMD_WAKE_FD", line.as_raw_fd().to_string());
    match terminal {
        Some(terminal) => {
            attach_output(&mut command, terminal)
                .map_err(|error| format!("cannot start {program}: {error}"))?;
            command.stdin(Stdio::null());
            run_in_new_session(&mut command, Some(line));
        }
        None => run_in_foreground(&mut command, line),
    }
    command.spawn().map_err(|error| format!("cannot start {program}: {error}"))
}

/// The process of one turn.
pub(crate) fn start_turn(
    go: &StartAgent,
    process: &TurnCommand,
    place: PaneMode,
    terminal: &OutputPty,
) -> Result<Child, StartError> {
    let none = || StartError::Permanent("cannot start a turn without a program".to_owned());
    let (program, arguments) = process.argv.split_first().ok_or_else(none)?;
    let mut command = base_command(go, program, place).map_err(StartError::Permanent)?;
    command.args(arguments).envs(process.env.iter().map(|(name, value)| (name, value)));
    command.stdin(if process.input.is_some() { Stdio::piped() } else { Stdio::null() });
    start_detached(terminal, command, program)
}

/// The driver of an agent that stands, `line` its standard input.
pub(crate) fn start_driver(
    go: &StartAgent,
    words: &[String],
    line: OwnedFd,
    place: PaneMode,
    terminal: &OutputPty,
) -> Result<Child, StartError> {
    let none = || StartError::Permanent("cannot start an agent without a driver".to_owned());
    let (program, arguments) = words.split_first().ok_or_else(none)?;
    let mut command = base_command(go, program, place).map_err(StartError::Permanent)?;
    command.args(arguments).stdin(line);
    start_detached(terminal, command, program)
}

/// In a session of its own, its output on our terminal.
fn start_detached(terminal: &OutputPty, mut command: Command, program: &str) -> Result<Child, StartError> {
    let failed = |error: std::io::Error| {
        let text = format!("cannot start {program}: {error}");
        match error.kind() {
            // These are there to stay; a lack of memory or too long a text is this turn's.
            ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory => {
                StartError::Permanent(text)
            }
            _ if error.raw_os_error() == Some(nix::errno::Errno::ENOEXEC as i32) => {
                StartError::Permanent(text)
            }
            _ => StartError::Transient(text),
        }
    };
    attach_output(&mut command, terminal).map_err(failed)?;
    run_in_new_session(&mut command, None);
    command.spawn().map_err(failed)
}

/// Refuses a program that exec would not find, before anything runs.
pub(crate) fn check_program_exists(go: &StartAgent, program: &str) -> Result<(), String> {
    let runs =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let path = go.env.get("PATH").map_or("", String::as_str);
    let found = if program.contains('/') {
        runs(&go.cwd.join(program))
    } else {
        std::env::split_paths(path).any(|directory| runs(&go.cwd.join(directory).join(program)))
    };
    if found { Ok(()) } else { Err(format!("cannot start {program}: no such program")) }
}

fn base_command(go: &StartAgent, program: &str, place: PaneMode) -> Result<Command, String> {
    if !go.cwd.is_dir() {
        return Err(format!("cannot start in {}: no such directory", go.cwd.display()));
    }
    let mut command = Command::new(program);
    command.current_dir(&go.cwd).env_clear().envs(&go.env).env("PWD", &go.cwd);
    for name in PANE_VARIABLES {
        match std::env::var_os(name).filter(|_| place == PaneMode::Pane) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if place == PaneMode::Headless {
        command.env("TERM", "dumb").env("NO_COLOR", "1");
    }
    Ok(command)
}

fn attach_output(command: &mut Command, terminal: &OutputPty) -> std::io::Result<()> {
    let (out, err) = terminal.stdio_pair()?;
    command.stdout(out).stderr(err);
    Ok(())
}
