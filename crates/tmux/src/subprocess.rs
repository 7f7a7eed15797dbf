//! Runs one tmux process per command list. This module is used when there is no control connection.
//!
//! A process takes at least 2 ms longer than the control connection, and its argument vector must
//! be smaller than 16 KB. The process never starts a tmux server. A process that still runs at the
//! deadline is killed and reaped.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::Error;
use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::reply::CommandReply;
use crate::server_address::TmuxEndpoint;

/// Runs the command list `script` in a tmux process. The option `-N` keeps tmux from starting a
/// server if none is running.
///
/// # Errors
///
/// `ProgramNotStarted`, `Timeout`; `InvalidArgument` if a word of `script` contains NUL.
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
    let stdout = read_in_thread(child.stdout.take());
    let stderr = read_in_thread(child.stderr.take());
    let wait = |pipe: Receiver<Vec<u8>>| {
        pipe.recv_timeout(deadline.remaining_time()).map_err(|_| deadline.timeout_error())
    };
    Ok((wait(stdout)?, wait(stderr)?))
}

/// Reads `pipe` to its end on a new thread. The returned receiver gets one value with all bytes.
///
/// If `pipe` is `None`, the value is empty. If reading fails, the value has only the bytes that
/// were read before the failure; the exit status of the process shows that something failed.
pub(crate) fn read_in_thread(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let read = move || {
        let mut bytes = Vec::new();
        drop(pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)));
        // This fails only if the receiver was dropped because the deadline had passed.
        drop(sender.send(bytes));
    };
    // If the thread can't start, the sender is dropped and the caller returns `Timeout`.
    drop(thread::Builder::new().name("tmux output".to_owned()).spawn(read));
    receiver
}
