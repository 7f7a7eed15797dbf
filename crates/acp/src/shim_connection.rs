//! The connection to the shim: a stream socket on the driver's standard input. A task reads the
//! shim's messages, and the driver's event loop writes messages to the shim.

use crate::driver_event::{AcpEvent, EventSender};
use protocol::acp_driver_protocol::{FromDriver, MAX_DRIVER_LINE_BYTES};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The write half of the connection.
#[derive(Debug)]
pub(crate) struct ShimSocket(OwnedWriteHalf);

impl ShimSocket {
    /// Takes the socket on standard input and starts the task that reads messages from it.
    ///
    /// # Errors
    ///
    /// A sentence for people, if standard input is no stream socket.
    pub(crate) fn from_stdin(events: EventSender) -> Result<ShimSocket, String> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().map(StdUnixStream::from);
        let socket = stdin.and_then(|stream| stream.local_addr().map(|_| stream));
        let socket = socket.and_then(|stream| {
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        });
        let no_socket = |error| format!("cannot run by hand: standard input is no stream socket: {error}");
        let (read_half, write_half) = socket.map_err(no_socket)?.into_split();
        tokio::spawn(read_messages(read_half, events));
        Ok(ShimSocket(write_half))
    }

    /// Sends a message. Errors are ignored: the reader reports that the shim has exited.
    pub(crate) async fn send(&mut self, message: &FromDriver) {
        let mut line = serde_json::to_vec(message).unwrap_or_default();
        line.push(b'\n');
        self.0.write_all(&line).await.ok();
    }
}

async fn read_messages(read_half: OwnedReadHalf, events: EventSender) {
    let mut reader = BufReader::new(read_half);
    let reason = loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(MAX_DRIVER_LINE_BYTES as u64).read_until(b'\n', &mut line).await;
        match read {
            Ok(0) => break "the shim has exited".to_owned(),
            Err(error) => break format!("cannot read from the shim: {error}"),
            Ok(_) => {}
        }
        match serde_json::from_slice(&line) {
            Ok(message) => drop(events.send(AcpEvent::ShimMessage(message))),
            Err(error) => break format!("invalid message from the shim: {error}"),
        }
    };
    events.send(AcpEvent::ShimClosed(reason)).ok();
}
