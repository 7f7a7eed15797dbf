//! The control socket: accepts connections, turns each call of a client into an event, and writes
//! the replies.
//!
//! Clients and shims send JSON objects, one per line or in parts of several lines. In these cases
//! the daemon closes the connection of a client or shim, and other connections continue:
//!
//! - the client has another uid;
//! - a line is longer than 64 KiB, or an object is larger than `protocol::control::framing` allows;
//! - an object does not arrive completely within seconds;
//! - the client does not read its replies.

use crate::core::event::CoreEvent;
use crate::core::id::ConnId;
use crate::io::process_watcher;
use protocol::control::framing::{LineAssembler, MAX_LINE_BYTES, encode};
use protocol::control::{Call, FromShim, Process, Request};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::Serialize;
use std::collections::HashMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Maximum number of open connections, of shims and clients together.
const MAX_CONNECTIONS: usize = 512;
/// How long a JSON object may take from its first byte to its last. For the first object of a
/// connection, the time starts when the connection is accepted.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of reply bytes that wait for a client to read: four objects of maximum size.
const MAX_UNREAD_BYTES: usize = 4 * protocol::control::framing::MAX_OBJECT_BYTES;
/// How long the daemon waits when it exits until a client has read its last reply.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// An order to a connection's write task.
#[derive(Debug)]
enum Outgoing {
    Lines(Vec<u8>),
    Close,
}

/// The open connections to the control socket.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    writers: HashMap<ConnId, ConnectionWriter>,
    /// The write tasks of connections that the daemon closes. A task may still write replies.
    closing: Vec<JoinHandle<()>>,
    /// Wake sockets that were received from shims and are not assigned to an agent yet.
    pending_wake_sockets: PendingWakeSockets,
}

/// The writing side of a connection.
#[derive(Debug)]
struct ConnectionWriter {
    queue: UnboundedSender<Outgoing>,
    task: JoinHandle<()>,
    stream: Arc<UnixStream>,
    /// Number of bytes in the queue and in the write task that the client has not read yet.
    unread_bytes: Arc<AtomicUsize>,
}

impl ConnectionWriter {
    /// Queues lines for the client. Closes the connection if the client does not read its replies.
    fn send(&self, conn: ConnId, lines: Vec<u8>) {
        if self.unread_bytes.fetch_add(lines.len(), Ordering::Relaxed) + lines.len() > MAX_UNREAD_BYTES {
            tracing::warn!(conn, "closed a connection: the peer does not read its replies");
            self.task.abort();
            rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Both).ok();
        } else {
            self.queue.send(Outgoing::Lines(lines)).ok();
        }
    }
}

/// The received wake sockets by connection, shared with the tasks that read.
type PendingWakeSockets = Arc<Mutex<HashMap<ConnId, OwnedFd>>>;

impl Connections {
    /// Sends a JSON object to the client or shim. If the connection is closed, drops the object.
    pub(crate) fn send<T: Serialize>(&self, conn: ConnId, value: &T) {
        match (self.writers.get(&conn), encode(value)) {
            (Some(writer), Ok(lines)) => writer.send(conn, lines),
            (None, _) => tracing::debug!(conn, "dropped a reply: the connection is closed"),
            (_, Err(error)) => tracing::error!(conn, "cannot write a reply: {error}"),
        }
    }

    /// Closes a connection once all queued replies are written.
    pub(crate) fn close(&mut self, conn: ConnId) {
        if let Some(writer) = self.writers.remove(&conn) {
            writer.queue.send(Outgoing::Close).ok();
            self.closing.push(writer.task);
        }
    }

    /// Closes all connections once their queued replies are written. Waits at most
    /// [`FLUSH_TIMEOUT`] for each connection, so a client that does not read its replies cannot
    /// block the daemon's exit.
    pub(crate) async fn flush(&mut self) {
        let open: Vec<ConnId> = self.writers.keys().copied().collect();
        open.into_iter().for_each(|conn| self.close(conn));
        for task in self.closing.drain(..) {
            tokio::time::timeout(FLUSH_TIMEOUT, task).await.ok();
        }
    }

    /// Removes a connection that the client or shim closed.
    pub(crate) fn remove(&mut self, conn: ConnId) {
        self.writers.remove(&conn);
        self.pending_wake_sockets.lock().unwrap_or_else(PoisonError::into_inner).remove(&conn);
    }

    /// Takes the wake socket that was received on this connection. `None` if there is none.
    pub(crate) fn take_wake_socket(&self, conn: ConnId) -> Option<OwnedFd> {
        self.pending_wake_sockets.lock().unwrap_or_else(PoisonError::into_inner).remove(&conn)
    }

    /// Number of connections, including those that are being closed.
    fn count(&mut self) -> usize {
        self.closing.retain(|task| !task.is_finished());
        self.writers.len() + self.closing.len()
    }

    /// Starts to serve a new connection. Drops the connection if its client has another uid, or if
    /// [`MAX_CONNECTIONS`] connections are open already.
    pub(crate) fn accept_connection(
        &mut self,
        conn: ConnId,
        stream: UnixStream,
        events: &UnboundedSender<CoreEvent>,
    ) {
        let peer = stream.peer_cred();
        let is_same_user = peer.as_ref().is_ok_and(|peer| peer.uid() == nix::unistd::geteuid().as_raw());
        let pid = peer.ok().and_then(|peer| peer.pid()).and_then(|pid| u32::try_from(pid).ok());
        let (true, Some(pid)) = (is_same_user && self.count() < MAX_CONNECTIONS, pid) else {
            return tracing::warn!(conn, "rejected a connection");
        };
        let (queue, outgoing) = unbounded_channel();
        let stream = Arc::new(stream);
        let unread_bytes = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(write(stream.clone(), outgoing, unread_bytes.clone()));
        self.writers.insert(conn, ConnectionWriter { queue, task, stream: stream.clone(), unread_bytes });
        let reader = ConnectionReader {
            conn,
            pid,
            stream,
            wake_sockets: self.pending_wake_sockets.clone(),
            events: events.clone(),
            is_shim: false,
        };
        tokio::spawn(reader.run());
    }
}

/// Accepts connections on `listener` and sends them through `accepted` to the event loop. Ends when
/// the event loop has ended.
///
/// If accepting fails, for example because the process has no free file descriptor, this function
/// tries again after 100 ms. Of several failures in a row only the first is logged.
pub(crate) async fn accept(listener: UnixListener, accepted: UnboundedSender<UnixStream>) {
    let mut is_failure_logged = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                failpoint::hit("connection.accepted");
                is_failure_logged = false;
                if accepted.send(stream).is_err() {
                    return;
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failure_logged, true) {
                    tracing::error!("cannot accept a connection, trying again: {error}");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The write task of a connection: writes the queued lines to the client. Shuts the connection down
/// at [`Outgoing::Close`] or when a write fails, because otherwise the client would wait forever
/// for a reply.
async fn write(
    stream: Arc<UnixStream>,
    mut queue: UnboundedReceiver<Outgoing>,
    unread_bytes: Arc<AtomicUsize>,
) {
    while let Some(Outgoing::Lines(lines)) = queue.recv().await {
        failpoint::hit("connection.write");
        if write_all(&stream, &lines).await.is_err() {
            break;
        }
        unread_bytes.fetch_sub(lines.len(), Ordering::Relaxed);
    }
    rustix::net::shutdown(&*stream, rustix::net::Shutdown::Both).ok();
}

async fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The reading side of a connection.
struct ConnectionReader {
    conn: ConnId,
    /// The pid of the client or shim.
    pid: u32,
    stream: Arc<UnixStream>,
    wake_sockets: PendingWakeSockets,
    events: UnboundedSender<CoreEvent>,
    /// The peer has sent [`Request::ConnectShim`]: all further messages are a shim's reports.
    is_shim: bool,
}

impl ConnectionReader {
    /// Reads until the connection closes, and reports that it has closed.
    async fn run(mut self) {
        if let Err(reason) = self.read().await {
            tracing::debug!(conn = self.conn, "connection closed: {reason}");
        }
        self.events.send(CoreEvent::ConnectionClosed { conn: self.conn }).ok();
    }

    /// Reads lines, assembles them to JSON objects and sends an event for each object. Returns `Ok`
    /// if the client or shim closed the connection.
    async fn read(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let mut assembler = LineAssembler::default();
        let mut pending = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        let mut deadline = Some(Instant::now() + MESSAGE_TIMEOUT);
        loop {
            let read = read_with_timeout(deadline, self.receive(&mut buffer)).await?;
            if read == 0 {
                return Ok(());
            }
            pending.extend_from_slice(&buffer[..read]);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if let Some(text) = assembler.push_line(std::str::from_utf8(&line[..end])?)? {
                    self.handle_message(&text)?;
                    deadline = None;
                }
            }
            if pending.len() > MAX_LINE_BYTES {
                return Err("a line of over 64 KiB".into());
            }
            if !pending.is_empty() || assembler.is_incomplete() {
                deadline.get_or_insert_with(|| Instant::now() + MESSAGE_TIMEOUT);
            }
        }
    }

    /// Reads bytes, and keeps one file descriptor that is sent with them: the shim's end of its
    /// wake socket pair. Further descriptors are closed.
    async fn receive(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream
            .async_io(Interest::READABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let flags = RecvFlags::CMSG_CLOEXEC;
                let got = recvmsg(&*self.stream, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags)?;
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        let mut sockets = self.wake_sockets.lock().unwrap_or_else(PoisonError::into_inner);
                        sockets.extend(descriptors.map(|descriptor| (self.conn, descriptor)));
                    }
                }
                Ok(got.bytes)
            })
            .await
    }

    /// Sends the event for one JSON object `text` that a client or shim has sent.
    ///
    /// # Errors
    ///
    /// The caller must close the connection after an error. Errors are: a message of a shim is not
    /// valid, the shim has exited, or the event loop has ended.
    fn handle_message(&mut self, text: &str) -> Result<(), Box<dyn std::error::Error>> {
        failpoint::hit("connection.received");
        let conn = self.conn;
        let event = if self.is_shim {
            CoreEvent::ShimReported { conn, report: serde_json::from_str::<FromShim>(text)? }
        } else {
            let call: Call = match serde_json::from_str(text) {
                Ok(call) => call,
                Err(error) => return Ok(self.events.send(invalid_call(conn, text, &error))?),
            };
            match call.request {
                Request::ConnectShim(hello) => {
                    self.is_shim = true;
                    CoreEvent::ShimConnected { conn, hello, peer: peer_process(self.pid)? }
                }
                _ => CoreEvent::ClientCall { client: conn, call: Box::new(call) },
            }
        };
        self.events.send(event)?;
        Ok(())
    }
}

/// Waits until `receive` completes, or until `deadline` if there is one.
///
/// While no JSON object is incomplete, the caller passes no deadline, because a client may wait for
/// its reply for any length of time.
async fn read_with_timeout(
    deadline: Option<Instant>,
    receive: impl Future<Output = std::io::Result<usize>>,
) -> std::io::Result<usize> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, receive).await?,
        None => receive.await,
    }
}

/// The event for a call `text` that cannot be parsed. The event has the protocol version of the
/// call if the version can be read, because a client of another release may send calls that this
/// daemon does not know.
fn invalid_call(client: ConnId, text: &str, error: &serde_json::Error) -> CoreEvent {
    #[derive(serde::Deserialize)]
    struct CallVersion {
        /// Version 1 of the protocol names this key `v`.
        #[serde(alias = "v")]
        version: u32,
    }
    let version = serde_json::from_str(text).ok().map(|call: CallVersion| call.version);
    CoreEvent::InvalidCall { client, version, error: error.to_string() }
}

/// The pid and start time of the process at the other end of a connection.
///
/// # Errors
///
/// If that process has exited.
fn peer_process(pid: u32) -> Result<Process, Box<dyn std::error::Error>> {
    let start_time = process_watcher::start_time(pid)?.ok_or("the peer has exited")?;
    Ok(Process { pid, start_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closing_connection_counts_until_its_last_reply_is_written() {
        let (events, _queue) = unbounded_channel();
        let mut connections = Connections::default();
        let accept = |connections: &mut Connections, conn| {
            let (daemon_end, peer_end) = UnixStream::pair().unwrap();
            connections.accept_connection(conn, daemon_end, &events);
            (connections.writers.contains_key(&conn), peer_end)
        };
        let (replies_read, wait) = tokio::sync::watch::channel(());
        for _ in 0..MAX_CONNECTIONS {
            let mut wait = wait.clone();
            connections.closing.push(tokio::spawn(async move { drop(wait.changed().await) }));
        }
        assert!(!accept(&mut connections, 1).0);
        drop((replies_read, wait));
        connections.closing.pop().unwrap().await.unwrap();
        assert!(accept(&mut connections, 2).0);
    }
}
