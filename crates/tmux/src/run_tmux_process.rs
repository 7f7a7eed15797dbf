//! Runs each command list by starting a tmux program. This is the slow way to send commands, for
//! the case that tmux accepts no control client (a program that stays connected to the server).
//!
//! It takes at least 2 ms longer for each list, and the arguments of the process must be smaller
//! than 16 KB. The process never starts a tmux server. A process that still runs at the deadline is
//! killed and reaped.

use std::io::ErrorKind;
use std::process::{Child, Command};

use crate::Error;
use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::deadline::Deadline;
use crate::read_process_output_until_deadline::read_pipes;
use crate::server_address_and_program::TmuxEndpoint;

/// Runs the command list `script` in a tmux process. The option `-N` keeps tmux from starting a
/// server if none is running.
///
/// # Errors
///
/// `ProgramNotStarted`, `Timeout`; `InvalidArgument` if a command of `script` contains NUL.
pub(crate) fn run(
    tmux: &TmuxEndpoint,
    script: &CommandList,
    deadline: Deadline,
) -> Result<CommandReply, Error> {
    let mut command = tmux.command();
    command.arg("-N").args(script.to_args()?);
    let output = run_process(tmux, command, deadline)?;
    let text = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout).to_vec();
    Ok(CommandReply::from_process(deadline.action(), text, output.error))
}

/// The output of a process that has exited.
pub(crate) struct ProcessOutput {
    pub(crate) stdout: Vec<u8>,
    /// Standard error if the process failed. `None` if it succeeded.
    pub(crate) error: Option<String>,
}

/// Runs `command` until it exits. If it still runs at the deadline, kills it.
///
/// # Errors
///
/// `ProgramNotStarted`, `Timeout`.
pub(crate) fn run_process(
    tmux: &TmuxEndpoint,
    mut command: Command,
    deadline: Deadline,
) -> Result<ProcessOutput, Error> {
    let mut child = match command.spawn() {
        // The kernel has refused the argument vector because it is too long. tmux has a lower limit
        // and would refuse it too, so the error text is the same as tmux's own.
        Err(error) if error.kind() == ErrorKind::ArgumentListTooLong => {
            return Ok(ProcessOutput { stdout: Vec::new(), error: Some("command too long".to_owned()) });
        }
        spawned => spawned.map_err(|source| tmux.start_error(source))?,
    };
    let output = collect_output(&mut child, deadline);
    if output.is_err() {
        // This fails only if the process has exited meanwhile.
        drop(child.kill());
    }
    let status = child.wait().map_err(|source| tmux.start_error(source))?;
    let (stdout, stderr) = output?;
    let error = (!status.success()).then(|| String::from_utf8_lossy(&stderr).trim().to_owned());
    Ok(ProcessOutput { stdout, error })
}

/// Reads standard output and standard error to their ends.
fn collect_output(child: &mut Child, deadline: Deadline) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let output = read_pipes([stdout.into(), stderr.into()], deadline.at());
    output.map(|[stdout, stderr]| (stdout, stderr)).ok_or_else(|| deadline.timeout_error())
}
