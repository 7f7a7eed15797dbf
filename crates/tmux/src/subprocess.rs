//! One process per command: the way that is left when there is no control connection.
//!
//! Slower by 2 ms or more, and an argument vector has to stay below 16 KB there. It never starts a server, and every
//! process is given until the deadline, then killed and reaped.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::Error;
use crate::address::TmuxEndpoint;
use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::reply::CommandReply;

/// Runs a script on a server that is there already.
///
/// # Errors
/// `Run`, `Timeout`, or `Invalid` for a script that cannot be spelled.
pub(crate) fn run(
    tmux: &TmuxEndpoint,
    script: &CommandList,
    deadline: Deadline,
) -> Result<CommandReply, Error> {
    let mut command = tmux.command();
    command.arg("-N").args(script.to_args()?);
    let output = run_process(tmux, command, deadline)?;
    let text = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout).to_vec();
    Ok(CommandReply::new(text, output.error))
}

/// What a process left behind; a complaint if it failed.
pub(crate) struct ProcessOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) error: Option<String>,
}

/// Runs a command to its end.
///
/// # Errors
/// `Run` or `Timeout`.
pub(crate) fn run_process(
    tmux: &TmuxEndpoint,
    mut command: Command,
    deadline: Deadline,
) -> Result<ProcessOutput, Error> {
    let mut child = match command.spawn() {
        // The kernel refuses what tmux would refuse, and in about its words.
        Err(long) if long.kind() == ErrorKind::ArgumentListTooLong => {
            return Ok(ProcessOutput { stdout: Vec::new(), error: Some("command too long".to_owned()) });
        }
        spawned => spawned.map_err(|source| tmux.start_error(source))?,
    };
    let gathered = collect_output(&mut child, deadline);
    if gathered.is_err() {
        // It may have ended in between; then there is nothing to kill.
        drop(child.kill());
    }
    let status = child.wait().map_err(|source| tmux.start_error(source))?;
    let (text, complaint) = gathered?;
    let complaint = (!status.success()).then(|| String::from_utf8_lossy(&complaint).trim().to_owned());
    Ok(ProcessOutput { stdout: text, error: complaint })
}

fn collect_output(child: &mut Child, deadline: Deadline) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let text = read_in_thread(child.stdout.take());
    let complaint = read_in_thread(child.stderr.take());
    let wait = |end: Receiver<Vec<u8>>| {
        end.recv_timeout(deadline.remaining_time()).map_err(|_| deadline.timeout_error())
    };
    Ok((wait(text)?, wait(complaint)?))
}

/// Reads to the end on a thread, which ends with the process, and gives it all at once. A pipe that is not there or
/// breaks counts as empty: the exit status tells.
pub(crate) fn read_in_thread(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let read = move || {
        let mut bytes = Vec::new();
        drop(pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)));
        // Nobody waits any more once the deadline has passed.
        drop(sender.send(bytes));
    };
    // Without a thread the sender is dropped, and the wait ends as if the time were over.
    drop(thread::Builder::new().name("tmux output".to_owned()).spawn(read));
    receiver
}
