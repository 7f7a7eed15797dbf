//! The command that connects the home to an annex, such as `ssh HOST teamctl annex --stdio`. Its
//! standard input and output are the byte stream.

use super::connection_task::{ConnectionEnd, ConnectionQueue, LinkStream, carry_frames};
use crate::event_and_effect::{ConnectionNumber, LinkEvent};
use protocol::escape_control_chars::visible;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

/// How long the command may take to exit after its input was closed. Afterwards it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest line of the command's standard error that is reported, in bytes.
const MAX_ERROR_BYTES: u64 = 4 * 1024;

/// Runs the command, and carries the frames of its connection until it ends.
pub(super) async fn run_connect_command(
    command: Vec<OsString>,
    number: ConnectionNumber,
    queue: ConnectionQueue,
    events: Sender<LinkEvent>,
) {
    let reason = match start(&command) {
        Ok((child, stream, errors)) => {
            events.send(LinkEvent::Opened { connection: number }).await.ok();
            let last_error = tokio::spawn(read_last_line(errors));
            let end = carry_frames(stream, number, queue, &events).await;
            let status = wait_for_exit(child).await;
            let ConnectionEnd::Failed(reason) = end else { return };
            let last_error = timeout(EXIT_TIMEOUT, last_error).await.ok().and_then(Result::ok);
            describe_end(reason, status, last_error.unwrap_or_default())
        }
        Err(error) => {
            format!("cannot start {}: {error}", command.first().unwrap_or(&OsString::new()).display())
        }
    };
    events.send(LinkEvent::Closed { connection: number, reason }).await.ok();
}

fn start(command: &[OsString]) -> io::Result<(Child, LinkStream, ChildStderr)> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn()?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let pipes = output.zip(input).zip(errors).ok_or(io::ErrorKind::BrokenPipe)?;
    let ((output, input), errors) = pipes;
    Ok((child, LinkStream::new(output, input), errors))
}

/// Waits until the command exits, or kills it. `None` if it was killed.
async fn wait_for_exit(mut child: Child) -> Option<String> {
    let status = timeout(EXIT_TIMEOUT, child.wait()).await.ok()?;
    Some(status.map_or_else(|error| error.to_string(), |status| status.to_string()))
}

/// The last line that is not empty.
async fn read_last_line(errors: ChildStderr) -> String {
    let (mut reader, mut last) = (BufReader::new(errors), String::new());
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(MAX_ERROR_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            return last;
        }
        let line = visible(String::from_utf8_lossy(&line).trim());
        last = if line.is_empty() { last } else { line };
    }
}

/// `the connection was closed: exit status: 255: ssh: Could not resolve hostname devbox`
fn describe_end(reason: String, status: Option<String>, last_error: String) -> String {
    let parts = [Some(reason), status, Some(last_error)];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}
