//! Reads and writes the frames of one connection.

use crate::event_and_effect::{ConnectionNumber, LinkEvent};
use protocol::annex_link::FrameDecoder;
use std::fmt;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long the last frames of a closed connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

const READ_BYTES: usize = 64 * 1024;

/// Both directions of a byte stream to the other host.
pub struct LinkStream {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl LinkStream {
    /// A stream that is read from `reader` and written to `writer`.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> LinkStream {
        LinkStream { reader: Box::new(reader), writer: Box::new(writer) }
    }
}

impl fmt::Debug for LinkStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkStream")
    }
}

/// How a connection has ended.
#[derive(Debug)]
pub(super) enum ConnectionEnd {
    /// This end has closed it, and everything was written.
    ClosedHere,
    /// The stream has ended or failed. The text is for people.
    Failed(String),
}

/// What the link sends on a connection. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct ConnectionHandle {
    frames: UnboundedSender<Vec<u8>>,
    _close: oneshot::Sender<()>,
}

/// The task's side of a [`ConnectionHandle`].
#[derive(Debug)]
pub(super) struct ConnectionQueue {
    frames: UnboundedReceiver<Vec<u8>>,
    closed: oneshot::Receiver<()>,
}

impl ConnectionHandle {
    pub(super) fn new() -> (ConnectionHandle, ConnectionQueue) {
        let ((frames, queue), (close, closed)) = (unbounded_channel(), oneshot::channel());
        (ConnectionHandle { frames, _close: close }, ConnectionQueue { frames: queue, closed })
    }

    /// Sends a frame. If the connection has ended, the event of its end is on the way.
    pub(super) fn send(&self, frame: Vec<u8>) {
        self.frames.send(frame).ok();
    }
}

/// Reads and writes frames until the connection ends. If this end closes the connection, it still
/// writes the frames in `queue`, for at most [`CLOSE_TIMEOUT`].
pub(super) async fn carry_frames(
    stream: LinkStream,
    number: ConnectionNumber,
    queue: ConnectionQueue,
    events: &Sender<LinkEvent>,
) -> ConnectionEnd {
    let mut write = pin!(write_frames(stream.writer, queue.frames));
    tokio::select! {
        reason = read_frames(stream.reader, number, events) => ConnectionEnd::Failed(reason),
        result = &mut write => match result {
            Ok(()) => ConnectionEnd::ClosedHere,
            Err(error) => ConnectionEnd::Failed(format!("cannot write to the connection: {error}")),
        },
        _ = queue.closed => {
            timeout(CLOSE_TIMEOUT, write).await.ok();
            ConnectionEnd::ClosedHere
        }
    }
}

async fn write_frames(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut frames: UnboundedReceiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(mut bytes) = frames.recv().await {
        while let Ok(more) = frames.try_recv() {
            bytes.extend(more);
        }
        writer.write_all(&bytes).await?;
        writer.flush().await?;
    }
    Ok(())
}

/// Passes frames to the link until the stream ends. Returns why it has ended.
async fn read_frames(
    mut reader: Box<dyn AsyncRead + Send + Unpin>,
    connection: ConnectionNumber,
    events: &Sender<LinkEvent>,
) -> String {
    let (mut decoder, mut buffer) = (FrameDecoder::default(), vec![0; READ_BYTES]);
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return "the connection was closed".to_owned(),
            Ok(count) => decoder.push(&buffer[..count]),
            Err(error) => return format!("cannot read from the connection: {error}"),
        }
        loop {
            let event = match decoder.next_frame() {
                Ok(Some((frame, bytes))) => LinkEvent::Received { connection, frame, bytes },
                Ok(None) => break,
                Err(error) => return error.to_string(),
            };
            if events.send(event).await.is_err() {
                return "the link has ended".to_owned();
            }
        }
    }
}
