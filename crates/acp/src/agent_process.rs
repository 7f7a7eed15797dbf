//! Starts the agent program as a child process of the driver. The program's standard input and
//! output carry the Agent Client Protocol, one JSON message per line. Its standard error goes to
//! the pane. An output line that is not a protocol message becomes the event `AcpEvent::StrayLine`.

use crate::args::DriverArgs;
use crate::driver_event::{AcpEvent, EventSender};
use futures_util::{Sink, Stream, sink, stream};
use protocol::control_socket::ExitReport;
use std::io;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Maximum length of a message from the program, in bytes. A longer output line is split at this
/// length, and its parts are printed to the pane.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Standard input and output of the program.
pub(crate) struct AgentPipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
}

/// Starts the agent program in the driver's working directory and with the driver's environment.
/// The program is killed when the driver ends.
///
/// # Errors
///
/// A sentence for people, if the program cannot be started.
pub(crate) fn start_agent_process(args: &DriverArgs, events: EventSender) -> Result<AgentPipes, String> {
    let (program, arguments) = args.argv.split_first().ok_or("there is no program")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn();
    let mut child = child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.ok_or("cannot speak to the program: it has no pipes")?;
    tokio::spawn(wait_for_exit(child, events));
    Ok(AgentPipes { input, output })
}

async fn wait_for_exit(mut child: Child, events: EventSender) {
    let text = child
        .wait()
        .await
        .map_or_else(|error| error.to_string(), |status| ExitReport::from_status(status).to_string());
    events.send(AcpEvent::ProgramExited(text)).ok();
}

/// The sink that writes messages to the program's standard input, one message per line. Write
/// errors are ignored: if the program has ended, the driver learns it by the event
/// [`AcpEvent::ProgramExited`] or [`AcpEvent::OutputClosed`].
pub(crate) fn message_sink(input: ChildStdin) -> impl Sink<String, Error = io::Error> + Send + 'static {
    Box::pin(sink::unfold(input, async |mut input: ChildStdin, mut line: String| {
        line.push('\n');
        input.write_all(line.as_bytes()).await.ok();
        Ok(input)
    }))
}

/// The stream of messages in the program's output. At the end of the output the stream puts
/// [`AcpEvent::OutputClosed`] into `events`, and then ends.
pub(crate) fn message_stream(
    output: ChildStdout,
    events: EventSender,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let state = (BufReader::new(output), events);
    Box::pin(stream::unfold(state, async |(mut output, events)| {
        while let Some(line) = read_line(&mut output).await {
            if is_message(&line) {
                return Some((Ok(line), (output, events)));
            }
            events.send(AcpEvent::StrayLine(line)).ok();
        }
        events.send(AcpEvent::OutputClosed).ok();
        None
    }))
}

async fn read_line(output: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = Vec::new();
    let read = output.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Whether an output line of the program is a JSON-RPC message. Programs also print warnings and
/// banners. These lines must not reach the protocol library, which would send the program a parse
/// error for each of them.
fn is_message(line: &str) -> bool {
    let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line);
    object.is_ok_and(|object| object.contains_key("jsonrpc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_rpc_objects_are_messages() {
        assert!(is_message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        for line in ["", "warning: x", "{", "[]", r#"{"a":1}"#, r#"[{"jsonrpc":"2.0"}]"#] {
            assert!(!is_message(line), "{line}");
        }
    }
}
