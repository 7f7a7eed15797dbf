//! One process per command: the way that is left when there is no control connection.
//!
//! Slower by 2 ms or more, and an argument vector has to stay below 16 KB there. It never starts a server, and every
//! process is given until the deadline, then killed and reaped.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::Error;
use crate::address::Tmux;
use crate::deadline::Deadline;
use crate::reply::Reply;
use crate::script::Script;

/// Runs a script on a server that is there already.
///
/// # Errors
/// `Run`, `Timeout`, or `Invalid` for a script that cannot be spelled.
pub(crate) fn run(tmux: &Tmux, script: &Script, deadline: Deadline) -> Result<Reply, Error> {
    let mut command = tmux.command();
    command.arg("-N").args(script.arguments()?);
    let output = output(tmux, command, deadline)?;
    let text = output.text.strip_suffix(b"\n").unwrap_or(&output.text).to_vec();
    Ok(Reply::new(text, output.complaint))
}

/// What a process left behind; a complaint if it failed.
pub(crate) struct Output {
    pub(crate) text: Vec<u8>,
    pub(crate) complaint: Option<String>,
}

/// Runs a command to its end.
///
/// # Errors
/// `Run` or `Timeout`.
pub(crate) fn output(tmux: &Tmux, mut command: Command, deadline: Deadline) -> Result<Output, Error> {
    let mut child = match command.spawn() {
        // The kernel refuses what tmux would refuse, and in about its words.
        Err(long) if long.kind() == ErrorKind::ArgumentListTooLong => {
            return Ok(Output { text: Vec::new(), complaint: Some("command too long".to_owned()) });
        }
        spawned => spawned.map_err(|source| tmux.not_run(source))?,
    };
    let gathered = gather(&mut child, deadline);
    if gathered.is_err() {
        // It may have ended in between; then there is nothing to kill.
        drop(child.kill());
    }
    let status = child.wait().map_err(|source| tmux.not_run(source))?;
    let (text, complaint) = gathered?;
    let complaint = (!status.success()).then(|| String::from_utf8_lossy(&complaint).trim().to_owned());
    Ok(Output { text, complaint })
}

fn gather(child: &mut Child, deadline: Deadline) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let text = drain(child.stdout.take());
    let complaint = drain(child.stderr.take());
    let wait = |end: Receiver<Vec<u8>>| end.recv_timeout(deadline.left()).map_err(|_| deadline.passed());
    Ok((wait(text)?, wait(complaint)?))
}

/// Reads to the end on a thread, which ends with the process, and gives it all at once. A pipe that is not there or
/// breaks counts as empty: the exit status tells.
pub(crate) fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
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
