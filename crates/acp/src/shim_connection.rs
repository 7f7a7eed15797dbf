//! The socket to join, which is our standard input: words come in by a task of their own, and go out from the loop.

use crate::event::{AcpEvent, EventSender};
use protocol::driver_protocol::{FromDriver, MAX_DRIVER_LINE_BYTES};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Plain;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The way out.
#[derive(Debug)]
pub(crate) struct ShimSocket(OwnedWriteHalf);

impl ShimSocket {
    /// Takes standard input. The text of an error says that it is no socket.
    pub(crate) fn from_stdin(events: EventSender) -> Result<ShimSocket, String> {
        let plain = std::io::stdin().as_fd().try_clone_to_owned().map(Plain::from);
        let plain = plain.and_then(|plain| plain.local_addr().map(|_| plain));
        let stream = plain.and_then(|plain| {
            plain.set_nonblocking(true)?;
            UnixStream::from_std(plain)
        });
        let none = |error| format!("cannot run by hand: standard input is no stream socket: {error}");
        let (from, to) = stream.map_err(none)?.into_split();
        tokio::spawn(read_messages(from, events));
        Ok(ShimSocket(to))
    }

    /// A join that is gone is told of by the other half.
    pub(crate) async fn send(&mut self, word: &FromDriver) {
        let mut line = serde_json::to_vec(word).unwrap_or_default();
        line.push(b'\n');
        self.0.write_all(&line).await.ok();
    }
}

async fn read_messages(from: OwnedReadHalf, events: EventSender) {
    let mut from = BufReader::new(from);
    let why = loop {
        let mut line = Vec::new();
        let read = (&mut from).take(MAX_DRIVER_LINE_BYTES as u64).read_until(b'\n', &mut line).await;
        match read {
            Ok(0) => break "join is gone".to_owned(),
            Err(error) => break format!("cannot hear join: {error}"),
            Ok(_) => {}
        }
        match serde_json::from_slice(&line) {
            Ok(word) => drop(events.send(AcpEvent::ShimMessage(word))),
            Err(error) => break format!("cannot understand join: {error}"),
        }
    };
    events.send(AcpEvent::ShimClosed(why)).ok();
}
