//! The control socket: accepts connections, turns each call of a client into an event, and writes
//! the replies.
//!
//! Clients and shims send JSON objects, one per line or in parts of several lines. The daemon
//! closes a connection, but no other connection, in these cases:
//!
//! - the client has another uid than the daemon;
//! - a line is longer than 64 KiB, or an object is larger than `protocol::control_socket::framing`
//!   allows;
//! - an object does not arrive completely within seconds;
//! - the incomplete objects of all clients together are too large;
//! - the client does not read its replies;
//! - there are too many clients, and no call has arrived on this connection.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::io::control_connection_reader::{
    ConnectionReader, HomeStream, PeerKind, PendingHomeStreams, PendingWakeSockets,
};
use crate::io::unfinished_request_memory_limit::UnfinishedRequests;
use link::LinkStream;
use protocol::control_socket::framing::encode;
use protocol::control_socket::{Reply, Response};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// Maximum number of open client connections. Does not include the connections of shims and of
/// hooks that wait for work. Only [`MAX_CLIENTS_OF_PROCESS`] limits those.
const MAX_CLIENTS: usize = 512;
/// Maximum number of client connections of one process, so that no process takes all of them.
const MAX_CLIENTS_OF_PROCESS: usize = 256;
/// Maximum number of reply bytes that wait for a client to read: four objects of maximum size.
const MAX_UNREAD_BYTES: usize = 4 * protocol::control_socket::framing::MAX_OBJECT_BYTES;
/// How long an exiting daemon waits for each client that has not read its last replies yet.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// A command for the write task of a connection.
#[derive(Debug)]
enum Outgoing {
    Lines(Vec<u8>),
    Close,
}

/// The open connections to the control socket.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    writers: HashMap<ConnId, ConnectionWriter>,
    /// The connections that the daemon is closing. Each entry has the pid of the client or shim,
    /// and the write task. The write task ends after it has written the queued replies.
    closing: Vec<(u32, JoinHandle<()>)>,
    /// Wake sockets that were received from shims and are not assigned to an agent yet.
    pending_wake_sockets: PendingWakeSockets,
    /// The connections of homes that have no link yet.
    pending_home_streams: PendingHomeStreams,
    unfinished: UnfinishedRequests,
}

/// The writing side of a connection.
#[derive(Debug)]
struct ConnectionWriter {
    /// The pid of the client or shim.
    pid: u32,
    kind: Arc<Mutex<PeerKind>>,
    queue: UnboundedSender<Outgoing>,
    task: JoinHandle<()>,
    stream: Arc<UnixStream>,
    /// Number of bytes in the queue and in the write task that the client has not read yet.
    unread_bytes: Arc<AtomicUsize>,
}

impl ConnectionWriter {
    fn kind(&self) -> PeerKind {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_member(&self) -> bool {
        self.kind() == PeerKind::Member
    }

    /// Closes the connection without writing what is queued.
    fn close_at_once(&self) {
        self.task.abort();
        rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Both).ok();
    }

    /// Queues lines for the client. Closes the connection if the client does not read its replies.
    fn send(&self, conn: ConnId, lines: Vec<u8>) {
        if self.unread_bytes.fetch_add(lines.len(), Ordering::Relaxed) + lines.len() > MAX_UNREAD_BYTES {
            tracing::warn!(conn, "closed a connection: the peer does not read its replies");
            self.close_at_once();
        } else {
            self.queue.send(Outgoing::Lines(lines)).ok();
        }
    }
}

/// The error for a client that gets no connection.
fn too_many_clients_error(pid: u32, process_count: usize, client_count: usize) -> ErrorReport {
    let (message, help) = if process_count >= MAX_CLIENTS_OF_PROCESS {
        let message =
            format!("cannot connect to teamd: the process {pid} has {process_count} connections already");
        (message, "let it close some of them".to_owned())
    } else {
        let message =
            format!("cannot connect to teamd: {client_count} connections of clients are open already");
        (message, "end programs that use teamd; those of teamctl: pgrep -a teamctl".to_owned())
    };
    ErrorReport::new(ErrorKind::Timeout, message).with_help(help)
}

impl Connections {
    /// Sends a JSON object to the client or shim. If the connection is closed, drops the object.
    pub(crate) fn send<T: Serialize>(&self, conn: ConnId, value: &T) {
        match (self.writers.get(&conn), encode(value)) {
            (Some(writer), Ok(lines)) => writer.send(conn, lines),
            (None, _) => tracing::debug!(conn, "dropped a reply: the connection is closed"),
            (_, Err(error)) => tracing::error!(conn, "cannot write a reply: {error}"),
        }
    }

    /// Whether the client or shim has not closed the connection, nor the daemon.
    pub(crate) fn is_open(&self, conn: ConnId) -> bool {
        self.writers.contains_key(&conn)
    }

    /// Closes a connection once all queued replies are written.
    pub(crate) fn close(&mut self, conn: ConnId) {
        self.lock_home_streams().remove(&conn);
        if let Some(writer) = self.writers.remove(&conn) {
            writer.queue.send(Outgoing::Close).ok();
            self.closing.push((writer.pid, writer.task));
        }
    }

    /// Closes all connections once their queued replies are written. Waits at most
    /// [`FLUSH_TIMEOUT`] for each connection, so a client that does not read its replies cannot
    /// block the daemon's exit.
    pub(crate) async fn flush(&mut self) {
        let open: Vec<ConnId> = self.writers.keys().copied().collect();
        open.into_iter().for_each(|conn| self.close(conn));
        for (_, task) in self.closing.drain(..) {
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

    /// Turns the connection `conn` into the link to the home of a team. The home's daemon has
    /// opened the connection and asked for the link. Sends the reply to it, and returns the stream.
    ///
    /// # Errors
    ///
    /// If the connection is closed, or if the daemon has no free file descriptor.
    pub(crate) fn take_home_stream(&mut self, conn: ConnId) -> std::io::Result<LinkStream> {
        let pending = self.lock_home_streams().remove(&conn);
        let writer = self.writers.remove(&conn);
        let (HomeStream { stream, received }, writer) =
            pending.zip(writer).ok_or(std::io::ErrorKind::NotConnected)?;
        // Otherwise the task would shut the connection down.
        writer.task.abort();
        let reply = encode(&Response::Done(Box::new(Reply::Ack))).map_err(std::io::Error::other)?;
        // Nothing was written before, so the reply fits in the socket's buffer.
        stream.try_write(&reply)?;
        let own = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
        let (reader, writer) = UnixStream::from_std(own)?.into_split();
        Ok(LinkStream::new(std::io::Cursor::new(received).chain(reader), writer))
    }

    fn lock_home_streams(&self) -> MutexGuard<'_, HashMap<ConnId, HomeStream>> {
        self.pending_home_streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more connection of the process `pid`. If [`MAX_CLIENTS`] or
    /// [`MAX_CLIENTS_OF_PROCESS`] is reached, closes one of the connections that count for this
    /// limit: the oldest on which no call has arrived.
    ///
    /// # Errors
    ///
    /// If a limit is reached and a call has arrived on every connection that counts for it.
    fn make_room(&mut self, pid: u32) -> Result<(), ErrorReport> {
        self.closing.retain(|(_, task)| !task.is_finished());
        if self.writers.len() + self.closing.len() < MAX_CLIENTS_OF_PROCESS {
            return Ok(());
        }
        let (members, non_members): (Vec<_>, Vec<_>) =
            self.writers.iter().partition(|(_, writer)| writer.is_member());
        let member_pids: HashSet<u32> = members.iter().map(|(_, writer)| writer.pid).collect();
        let is_client = |writer: &ConnectionWriter| !member_pids.contains(&writer.pid);
        let closing_count = self.closing.iter().filter(|(pid, _)| !member_pids.contains(pid)).count();
        let client_count = non_members.iter().filter(|(_, writer)| is_client(writer)).count() + closing_count;
        let process_count = non_members.iter().filter(|(_, writer)| writer.pid == pid).count();
        let is_full = !member_pids.contains(&pid) && client_count >= MAX_CLIENTS;
        if !is_full && process_count < MAX_CLIENTS_OF_PROCESS {
            return Ok(());
        }
        let is_closable = |(_, writer): &&(&ConnId, &ConnectionWriter)| {
            writer.kind() == PeerKind::Unknown && if is_full { is_client(writer) } else { writer.pid == pid }
        };
        let oldest = non_members.iter().filter(is_closable).map(|(conn, _)| **conn).min();
        let oldest = oldest.ok_or_else(|| too_many_clients_error(pid, process_count, client_count))?;
        if let Some(writer) = self.writers.remove(&oldest) {
            tracing::warn!(conn = oldest, pid = writer.pid, "closed an idle connection: there are too many");
            writer.close_at_once();
        }
        Ok(())
    }

    /// Starts the read task and the write task of a new connection. Drops the connection if its
    /// client has another uid. If there are too many clients, replies with an error and drops the
    /// connection.
    pub(crate) fn accept_connection(
        &mut self,
        conn: ConnId,
        stream: UnixStream,
        events: &UnboundedSender<CoreEvent>,
    ) {
        let peer = stream.peer_cred();
        let is_same_user = peer.as_ref().is_ok_and(|peer| peer.uid() == nix::unistd::geteuid().as_raw());
        let pid = peer.ok().and_then(|peer| peer.pid()).and_then(|pid| u32::try_from(pid).ok());
        let (true, Some(pid)) = (is_same_user, pid) else {
            return tracing::warn!(conn, "rejected a connection");
        };
        if let Err(error) = self.make_room(pid) {
            tracing::warn!(conn, pid, "rejected a connection: {}", error.message);
            let reply = encode(&Response::Failed(error)).unwrap_or_default();
            return drop(stream.try_write(&reply));
        }
        let kind = Arc::new(Mutex::new(PeerKind::Unknown));
        let (queue, outgoing) = unbounded_channel();
        let stream = Arc::new(stream);
        let unread_bytes = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(write(stream.clone(), outgoing, unread_bytes.clone()));
        self.writers.insert(
            conn,
            ConnectionWriter { pid, kind: kind.clone(), queue, task, stream: stream.clone(), unread_bytes },
        );
        let reader = ConnectionReader {
            conn,
            pid,
            stream,
            wake_sockets: self.pending_wake_sockets.clone(),
            home_streams: self.pending_home_streams.clone(),
            events: events.clone(),
            kind,
            unfinished: self.unfinished.clone(),
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

/// The write task of a connection: writes the queued lines to the client, until it gets
/// [`Outgoing::Close`] or a write fails. Then it shuts the connection down, so that the client does
/// not wait forever for a reply.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts a connection. Returns whether it was accepted, and the other end.
    fn accept_one(connections: &mut Connections, conn: ConnId) -> (bool, UnixStream) {
        let (events, _queue) = unbounded_channel();
        let (daemon_end, peer_end) = UnixStream::pair().unwrap();
        connections.accept_connection(conn, daemon_end, &events);
        (connections.writers.contains_key(&conn), peer_end)
    }

    fn set_kind(connections: &Connections, conn: ConnId, kind: PeerKind) {
        *connections.writers[&conn].kind.lock().unwrap() = kind;
    }

    #[tokio::test]
    async fn closing_connection_counts_until_its_last_reply_is_written() {
        let mut connections = Connections::default();
        let (replies_read, wait) = tokio::sync::watch::channel(());
        for _ in 0..MAX_CLIENTS {
            let mut wait = wait.clone();
            connections.closing.push((0, tokio::spawn(async move { drop(wait.changed().await) })));
        }
        assert!(!accept_one(&mut connections, 1).0);
        drop((replies_read, wait));
        connections.closing.pop().unwrap().1.await.unwrap();
        assert!(accept_one(&mut connections, 2).0);
    }

    #[tokio::test]
    async fn process_of_a_member_gets_a_connection_beyond_the_limit() {
        let mut connections = Connections::default();
        let shim_end = accept_one(&mut connections, 1);
        set_kind(&connections, 1, PeerKind::Client);
        connections.closing = (0..MAX_CLIENTS).map(|_| (0, tokio::spawn(std::future::pending()))).collect();
        assert!(!accept_one(&mut connections, 2).0);
        set_kind(&connections, 1, PeerKind::Member);
        assert!(accept_one(&mut connections, 3).0, "the shim asks for a task");
        drop(shim_end);
    }

    #[tokio::test]
    async fn oldest_silent_connection_is_closed_and_a_client_gets_an_error_beyond_the_limit() {
        let mut connections = Connections::default();
        let mut ends: Vec<UnixStream> = Vec::new();
        let limit = MAX_CLIENTS_OF_PROCESS as ConnId;
        for conn in 0..limit {
            ends.push(accept_one(&mut connections, conn).1);
        }
        set_kind(&connections, 0, PeerKind::Client);
        let (is_accepted, end) = accept_one(&mut connections, limit);
        assert!(is_accepted && connections.writers.contains_key(&0) && !connections.writers.contains_key(&1));
        ends.push(end);
        connections.writers.keys().for_each(|conn| set_kind(&connections, *conn, PeerKind::Client));
        let (is_accepted, end) = accept_one(&mut connections, limit + 1);
        end.readable().await.unwrap();
        let mut reply = vec![0; 4096];
        let length = end.try_read(&mut reply).unwrap();
        let reply = String::from_utf8_lossy(&reply[..length]).into_owned();
        assert!(!is_accepted && reply.contains("connections already"), "{reply}");
        // Members do not count.
        set_kind(&connections, 0, PeerKind::Member);
        assert!(accept_one(&mut connections, limit + 2).0);
    }
}
