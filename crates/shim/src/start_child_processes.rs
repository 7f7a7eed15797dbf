//! Starts the child processes of the shim: agent programs, drivers, and the processes of turns.
//! Gives each process its working directory, environment and terminal.

use crate::orphans_without_subreaper;
use crate::output_pty::OutputPty;
use crate::pre_exec::{run_in_foreground, run_in_new_session};
use crate::turns::turn_executor_trait::{StartError, TurnCommand};
use profile::find_program_in_path::program_exists;
use protocol::control_socket::StartAgent;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Environment variables that describe the pane and its terminal. The agent gets the shim's values
/// and not those of the spawn request, because the caller of that request runs in another terminal.
const PANE_VARIABLES: [&str; 6] =
    ["TERM", "TMUX", "TMUX_PANE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// Where the agent's output appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneMode {
    Pane,
    /// The output goes only into the agent's log.
    Headless,
}

/// Starts an agent's program that keeps running, unlike a program that is started for each turn.
/// For an agent without a pane, `output` is the pseudo-terminal that takes the program's output. If
/// `output` is `None`, the program runs in the foreground of the pane's terminal.
///
/// # Errors
///
/// A sentence for people that says why the program was not started.
pub(crate) fn start_agent(
    start: &StartAgent,
    wake_socket: &OwnedFd,
    output: Option<&OutputPty>,
) -> Result<Child, String> {
    let (program, arguments) = start.argv.split_first().ok_or("cannot start an agent without a program")?;
    let pane_mode = if output.is_some() { PaneMode::Headless } else { PaneMode::Pane };
    let mut command = base_command(&start.cwd, &start.env, program, pane_mode)?;
    command.args(arguments).env("TEAMD_WAKE_FD", wake_socket.as_raw_fd().to_string());
    match output {
        Some(output) => {
            attach_output(&mut command, output)
                .map_err(|error| format!("cannot start {program}: {error}"))?;
            command.stdin(Stdio::null());
            run_in_new_session(&mut command, Some(wake_socket));
        }
        None => run_in_foreground(&mut command, wake_socket),
    }
    let child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
    if pane_mode == PaneMode::Headless {
        orphans_without_subreaper::track_session(child.id());
    }
    Ok(child)
}

/// Starts the process of one turn.
pub(crate) fn start_turn(
    start: &StartAgent,
    turn: &TurnCommand,
    pane_mode: PaneMode,
    output: &OutputPty,
) -> Result<Child, StartError> {
    let no_program = || StartError::Permanent("cannot start a turn without a program".to_owned());
    let (program, arguments) = turn.argv.split_first().ok_or_else(no_program)?;
    let mut command =
        base_command(&start.cwd, &start.env, program, pane_mode).map_err(StartError::Permanent)?;
    command.args(arguments).envs(turn.env.iter().map(|(name, value)| (name, value)));
    command.stdin(if turn.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    start_detached(output, command, program)
}

/// Starts a program for `teamctl ask`, which asks it one question. The program writes its output to
/// pipes.
///
/// # Errors
///
/// A sentence for people that says why the program was not started.
pub(crate) fn start_asked_program(
    cwd: &Path,
    env: &BTreeMap<String, String>,
    turn: &TurnCommand,
) -> Result<Child, String> {
    let (program, arguments) = turn.argv.split_first().ok_or("cannot ask without a program")?;
    let mut command = base_command(cwd, env, program, PaneMode::Headless)?;
    command.args(arguments).stdin(if turn.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    run_in_new_session(&mut command, None);
    let child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
    orphans_without_subreaper::track_session(child.id());
    Ok(child)
}

/// Starts the driver of an agent. `driver_socket` becomes the driver's standard input.
pub(crate) fn start_driver(
    start: &StartAgent,
    argv: &[String],
    driver_socket: OwnedFd,
    pane_mode: PaneMode,
    output: &OutputPty,
) -> Result<Child, StartError> {
    let no_program = || StartError::Permanent("cannot start an agent without a driver".to_owned());
    let (program, arguments) = argv.split_first().ok_or_else(no_program)?;
    let mut command =
        base_command(&start.cwd, &start.env, program, pane_mode).map_err(StartError::Permanent)?;
    command.args(arguments).stdin(driver_socket);
    start_detached(output, command, program)
}

/// Starts a command in a new session, with its output on the shim's pseudo-terminal.
fn start_detached(output: &OutputPty, mut command: Command, program: &str) -> Result<Child, StartError> {
    let to_start_error = |error: std::io::Error| {
        let text = format!("cannot start {program}: {error}");
        match error.kind() {
            // An error such as a missing program would occur again at every start, so it ends the
            // agent. Other errors, such as a lack of memory or an argument that is too long, affect
            // only the current turn.
            ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory => {
                StartError::Permanent(text)
            }
            _ if error.raw_os_error() == Some(nix::errno::Errno::ENOEXEC as i32) => {
                StartError::Permanent(text)
            }
            _ => StartError::Transient(text),
        }
    };
    attach_output(&mut command, output).map_err(to_start_error)?;
    run_in_new_session(&mut command, None);
    let child = command.spawn().map_err(to_start_error)?;
    orphans_without_subreaper::track_session(child.id());
    Ok(child)
}

/// The reason for a start failure if the program does not exist.
pub(crate) const NO_SUCH_PROGRAM: &str = "no such program";

/// Checks that exec would find the program in the `PATH` of the agent's environment.
///
/// # Errors
///
/// A sentence for people, if the program does not exist.
pub(crate) fn check_program_exists(start: &StartAgent, program: &str) -> Result<(), String> {
    let path = start.env.get("PATH").map_or("", String::as_str);
    match program_exists(program, &start.cwd, path) {
        true => Ok(()),
        false => Err(format!("cannot start {program}: {NO_SUCH_PROGRAM}")),
    }
}

/// Builds a command that runs in the directory `cwd` with the environment `env`.
///
/// # Errors
///
/// A sentence for people, if the directory does not exist.
fn base_command(
    cwd: &Path,
    env: &BTreeMap<String, String>,
    program: &str,
    pane_mode: PaneMode,
) -> Result<Command, String> {
    if !cwd.is_dir() {
        return Err(format!("cannot start in {}: no such directory", cwd.display()));
    }
    let mut command = Command::new(program);
    command.current_dir(cwd).env_clear().envs(env).env("PWD", cwd);
    for name in PANE_VARIABLES {
        match std::env::var_os(name).filter(|_| pane_mode == PaneMode::Pane) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if pane_mode == PaneMode::Headless {
        command.env("TERM", "dumb").env("NO_COLOR", "1");
    }
    Ok(command)
}

fn attach_output(command: &mut Command, output: &OutputPty) -> std::io::Result<()> {
    let (stdout, stderr) = output.stdio_pair()?;
    command.stdout(stdout).stderr(stderr);
    Ok(())
}
