//! The control socket: accepts, reads lines into events, writes answers. Knows nothing of teams.
//!
//! A peer of another uid is hung up on. A line is at most 64 KiB, an object at most what
//! `protocol::control::frame` allows, and it comes within seconds; answers are taken, too. Who breaks that is hung up
//! on, and nobody else notices.

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

/// At most so many connections at once: agents' joins, clients, and room.
const MAX_CONNECTIONS: usize = 512;
/// How long an object may take from its first byte to its last, and the first one from the connection on.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// So many bytes of answers may wait for a peer: several of the largest.
const MAX_UNREAD_BYTES: usize = 4 * protocol::control::framing::MAX_OBJECT_BYTES;
/// How long a last answer may take to be taken.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// What is to be written, or the end.
#[derive(Debug)]
enum Outgoing {
    Lines(Vec<u8>),
    Close,
}

/// The open connections, for whoever has an answer.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    writers: HashMap<ConnId, ConnectionWriter>,
    /// Closed by us, with something perhaps still on its way.
    closing: Vec<JoinHandle<()>>,
    /// The far ends of wake lines, as they came with a hello.
    pending_wake_sockets: PendingWakeSockets,
}

/// A connection's writing side.
#[derive(Debug)]
struct ConnectionWriter {
    queue: UnboundedSender<Outgoing>,
    task: JoinHandle<()>,
    stream: Arc<UnixStream>,
    /// Bytes that were given to the task and that the peer has not taken.
    unread_bytes: Arc<AtomicUsize>,
}

impl ConnectionWriter {
    /// A peer that asks and never reads what it is answered is hung up on.
    fn send(&self, conn: ConnId, lines: Vec<u8>) {
        if self.unread_bytes.fetch_add(lines.len(), Ordering::Relaxed) + lines.len() > MAX_UNREAD_BYTES {
            tracing::warn!(conn, "a peer takes none of its answers: hung up on");
            self.task.abort();
            rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Both).ok();
        } else {
            self.queue.send(Outgoing::Lines(lines)).ok();
        }
    }
}

type PendingWakeSockets = Arc<Mutex<HashMap<ConnId, OwnedFd>>>;

impl Connections {
    /// Answers; a connection that is gone has nobody to hear it.
    pub(crate) fn send<T: Serialize>(&self, conn: ConnId, value: &T) {
        match (self.writers.get(&conn), encode(value)) {
            (Some(writer), Ok(lines)) => writer.send(conn, lines),
            (None, _) => tracing::debug!(conn, "nobody is left to hear the answer"),
            (_, Err(error)) => tracing::error!(conn, "cannot write an answer: {error}"),
        }
    }

    /// Closes after what has been sent.
    pub(crate) fn close(&mut self, conn: ConnId) {
        if let Some(writer) = self.writers.remove(&conn) {
            writer.queue.send(Outgoing::Close).ok();
            self.closing.push(writer.task);
        }
    }

    /// Closes all, once what has been sent is on its way. A peer that does not read can't hold the daemon.
    pub(crate) async fn flush(&mut self) {
        let open: Vec<ConnId> = self.writers.keys().copied().collect();
        open.into_iter().for_each(|conn| self.close(conn));
        for task in self.closing.drain(..) {
            tokio::time::timeout(FLUSH_TIMEOUT, task).await.ok();
        }
    }

    /// Forgets a connection that closed by itself.
    pub(crate) fn remove(&mut self, conn: ConnId) {
        self.writers.remove(&conn);
        self.pending_wake_sockets.lock().unwrap_or_else(PoisonError::into_inner).remove(&conn);
    }

    /// The wake line that came over this connection.
    pub(crate) fn take_wake_socket(&self, conn: ConnId) -> Option<OwnedFd> {
        self.pending_wake_sockets.lock().unwrap_or_else(PoisonError::into_inner).remove(&conn)
    }

    /// Those too that are only waited for to take a last answer.
    fn count(&mut self) -> usize {
        self.closing.retain(|task| !task.is_finished());
        self.writers.len() + self.closing.len()
    }

    /// Takes up a new connection, if its peer is of our user.
    pub(crate) fn accept_connection(
        &mut self,
        conn: ConnId,
        stream: UnixStream,
        events: &UnboundedSender<CoreEvent>,
    ) {
        let peer = stream.peer_cred();
        let ours = peer.as_ref().is_ok_and(|peer| peer.uid() == nix::unistd::geteuid().as_raw());
        let pid = peer.ok().and_then(|peer| peer.pid()).and_then(|pid| u32::try_from(pid).ok());
        let (true, Some(pid)) = (ours && self.count() < MAX_CONNECTIONS, pid) else {
            return tracing::warn!(conn, "a connection was refused");
        };
        let (queue, lines) = unbounded_channel();
        let stream = Arc::new(stream);
        let waiting = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(write(stream.clone(), lines, waiting.clone()));
        self.writers
            .insert(conn, ConnectionWriter { queue, task, stream: stream.clone(), unread_bytes: waiting });
        let reader = ConnectionReader {
            conn,
            pid,
            stream,
            lines: self.pending_wake_sockets.clone(),
            events: events.clone(),
            is_shim: false,
        };
        tokio::spawn(reader.run());
    }
}

/// Accepts for ever. Where no descriptor is left it waits for one to become free rather than spin.
pub(crate) async fn accept(listener: UnixListener, admit: UnboundedSender<UnixStream>) {
    let mut told = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                failpoint::hit("connection.accepted");
                told = false;
                if admit.send(stream).is_err() {
                    return;
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::error!("cannot accept a connection, and try until it can be: {error}");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Who can't be answered is hung up on: it would wait for ever.
async fn write(stream: Arc<UnixStream>, mut queue: UnboundedReceiver<Outgoing>, waiting: Arc<AtomicUsize>) {
    while let Some(Outgoing::Lines(lines)) = queue.recv().await {
        failpoint::hit("connection.write");
        if write_all(&stream, &lines).await.is_err() {
            break;
        }
        waiting.fetch_sub(lines.len(), Ordering::Relaxed);
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

/// One connection's reading side.
struct ConnectionReader {
    conn: ConnId,
    pid: u32,
    stream: Arc<UnixStream>,
    lines: PendingWakeSockets,
    events: UnboundedSender<CoreEvent>,
    is_shim: bool,
}

impl ConnectionReader {
    async fn run(mut self) {
        if let Err(reason) = self.read().await {
            tracing::debug!(conn = self.conn, "connection closed: {reason}");
        }
        self.events.send(CoreEvent::ConnectionClosed { conn: self.conn }).ok();
    }

    async fn read(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let mut assembler = LineAssembler::default();
        let mut pending = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        let mut due = Some(Instant::now() + MESSAGE_TIMEOUT);
        loop {
            let read = read_with_timeout(due, self.receive(&mut buffer)).await?;
            if read == 0 {
                return Ok(());
            }
            pending.extend_from_slice(&buffer[..read]);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if let Some(text) = assembler.push_line(std::str::from_utf8(&line[..end])?)? {
                    self.handle_message(&text)?;
                    due = None;
                }
            }
            if pending.len() > MAX_LINE_BYTES {
                return Err("a line of over 64 KiB".into());
            }
            if !pending.is_empty() || assembler.is_incomplete() {
                due.get_or_insert_with(|| Instant::now() + MESSAGE_TIMEOUT);
            }
        }
    }

    /// Reads bytes, and keeps a descriptor that came with them; more than one is dropped, that is: closed.
    async fn receive(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream
            .async_io(Interest::READABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let flags = RecvFlags::CMSG_CLOEXEC;
                let got = recvmsg(&*self.stream, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags)?;
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                        lines.extend(descriptors.map(|descriptor| (self.conn, descriptor)));
                    }
                }
                Ok(got.bytes)
            })
            .await
    }

    fn handle_message(&mut self, text: &str) -> Result<(), Box<dyn std::error::Error>> {
        failpoint::hit("connection.heard");
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

/// None is due between two objects: whoever has asked may wait for its answer as long as it likes.
async fn read_with_timeout(
    due: Option<Instant>,
    receive: impl Future<Output = std::io::Result<usize>>,
) -> std::io::Result<usize> {
    match due {
        Some(due) => tokio::time::timeout_at(due, receive).await?,
        None => receive.await,
    }
}

/// Another release's request may hold what we can't read; its version we can.
fn invalid_call(client: ConnId, text: &str, error: &serde_json::Error) -> CoreEvent {
    #[derive(serde::Deserialize)]
    struct Version {
        v: u32,
    }
    let version = serde_json::from_str(text).ok().map(|version: Version| version.v);
    CoreEvent::InvalidCall { client, version, error: error.to_string() }
}

/// The process behind a pid, while it lives.
fn peer_process(pid: u32) -> Result<Process, Box<dyn std::error::Error>> {
    let start = process_watcher::start_time(pid)?.ok_or("a peer that ended while it spoke")?;
    Ok(Process { pid, start_time: start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_does_not_take_its_last_answer_counts_until_it_does() {
        let (events, _queue) = unbounded_channel();
        let mut connections = Connections::default();
        let admit = |connections: &mut Connections, conn| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            connections.accept_connection(conn, ours, &events);
            (connections.writers.contains_key(&conn), theirs)
        };
        let (taken, wait) = tokio::sync::watch::channel(());
        for _ in 0..MAX_CONNECTIONS {
            let mut wait = wait.clone();
            connections.closing.push(tokio::spawn(async move { drop(wait.changed().await) }));
        }
        assert!(!admit(&mut connections, 1).0);
        drop((taken, wait));
        connections.closing.pop().unwrap().await.unwrap();
        assert!(admit(&mut connections, 2).0);
    }
}
