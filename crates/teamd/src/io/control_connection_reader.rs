//! Reads from one connection of the control socket, and turns each JSON object into an event.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::io::unfinished_request_memory_limit::{UnfinishedBytes, UnfinishedRequests};
use platform::ProcessEntry;
use protocol::control_socket::framing::{LineAssembler, MAX_LINE_BYTES};
use protocol::control_socket::{Call, FromShim, Process, Request};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};
use std::collections::HashMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// How long a JSON object may take from its first byte to its last. For the first object of a
/// connection, the time starts when the connection is accepted.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Who is at the other end of a connection, as far as the daemon knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerKind {
    /// The peer has not sent a complete call yet.
    Unknown,
    Client,
    /// A shim, or a hook that waits for work of its member.
    Member,
}

/// The wake sockets that shims have sent and that the event loop has not taken over yet. The key is
/// the connection on which the socket arrived. All readers of connections share this map.
pub(super) type PendingWakeSockets = Arc<Mutex<HashMap<ConnId, OwnedFd>>>;

/// A connection on which a home has connected.
#[derive(Debug)]
pub(super) struct HomeStream {
    pub(super) stream: Arc<UnixStream>,
    /// The bytes that were read after the call.
    pub(super) received: Vec<u8>,
}

/// The connections of homes. The links to these homes take them from here.
pub(super) type PendingHomeStreams = Arc<Mutex<HashMap<ConnId, HomeStream>>>;

/// Why a reader has ended.
#[derive(Debug, PartialEq, Eq)]
enum ReaderEnd {
    Closed,
    /// The link to a home reads the connection from now on.
    GivenToLink,
}

/// The reading side of a connection.
pub(super) struct ConnectionReader {
    pub(super) conn: ConnId,
    /// The pid of the client or shim.
    pub(super) pid: u32,
    pub(super) stream: Arc<UnixStream>,
    pub(super) wake_sockets: PendingWakeSockets,
    pub(super) home_streams: PendingHomeStreams,
    pub(super) events: UnboundedSender<CoreEvent>,
    pub(super) kind: Arc<Mutex<PeerKind>>,
    pub(super) unfinished: UnfinishedRequests,
    /// The peer is a shim: it has sent [`Request::ConnectShim`], and all its further messages are
    /// reports.
    pub(super) is_shim: bool,
}

impl ConnectionReader {
    /// Reads until the connection closes, and reports that it has closed.
    pub(super) async fn run(mut self) {
        match self.read().await {
            Ok(ReaderEnd::GivenToLink) => return,
            Ok(ReaderEnd::Closed) => {}
            Err(reason) => tracing::debug!(conn = self.conn, "connection closed: {reason}"),
        }
        self.events.send(CoreEvent::ConnectionClosed { conn: self.conn }).ok();
    }

    /// Reads lines, assembles them to JSON objects and sends an event for each object. Returns `Ok`
    /// if the client or shim has closed the connection, or if the connection has become the link to
    /// the daemon of another host.
    async fn read(&mut self) -> Result<ReaderEnd, Box<dyn std::error::Error>> {
        let mut assembler = LineAssembler::default();
        let (mut pending, mut unfinished) = (Vec::new(), UnfinishedBytes::default());
        let mut buffer = vec![0; 16 * 1024];
        let mut deadline = Some(Instant::now() + MESSAGE_TIMEOUT);
        loop {
            let read = read_with_timeout(deadline, self.receive(&mut buffer)).await?;
            if read == 0 {
                return Ok(ReaderEnd::Closed);
            }
            pending.extend_from_slice(&buffer[..read]);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                match assembler.push_line(std::str::from_utf8(&line[..end])?)? {
                    Some(text) => {
                        let event = self.parse_message(&text)?;
                        if is_from_home(&event) {
                            let home = HomeStream { stream: self.stream.clone(), received: pending };
                            let mut streams =
                                self.home_streams.lock().unwrap_or_else(PoisonError::into_inner);
                            streams.insert(self.conn, home);
                            self.events.send(event)?;
                            return Ok(ReaderEnd::GivenToLink);
                        }
                        self.events.send(event)?;
                        (deadline, unfinished) = (None, UnfinishedBytes::default());
                    }
                    None => self.reserve(&mut unfinished, assembler.unfinished_bytes())?,
                }
            }
            if pending.len() > MAX_LINE_BYTES {
                return Err("a line of over 64 KiB".into());
            }
            if !pending.is_empty() || assembler.unfinished_bytes() > 0 {
                deadline.get_or_insert_with(|| Instant::now() + MESSAGE_TIMEOUT);
            }
        }
    }

    /// Reserves memory for the `bytes` of an incomplete JSON object that have arrived so far.
    fn reserve(&self, unfinished: &mut UnfinishedBytes, bytes: usize) -> Result<(), String> {
        let reserved = self.unfinished.reserve(unfinished, bytes);
        reserved.map_err(|_| "the unfinished requests of all clients take too much memory".to_owned())
    }

    /// Reads bytes into `buffer`. If the peer sends a file descriptor with the bytes, keeps it in
    /// `wake_sockets`. A shim sends one: the daemon's end of the wake socket that the shim has made
    /// for its agent.
    async fn receive(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream
            .async_io(Interest::READABLE, || {
                let mut buffer_space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut buffer_space);
                let flags = platform::unix_sockets_and_peers::RECEIVE_CLOSE_ON_EXEC;
                let received = recvmsg(&*self.stream, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags)?;
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        let mut sockets = self.wake_sockets.lock().unwrap_or_else(PoisonError::into_inner);
                        for descriptor in descriptors {
                            platform::unix_sockets_and_peers::set_close_on_exec(&descriptor)?;
                            sockets.insert(self.conn, descriptor);
                        }
                    }
                }
                Ok(received.bytes)
            })
            .await
    }

    /// Turns the JSON object `text`, which a client or shim has sent, into an event for the event
    /// loop.
    ///
    /// # Errors
    ///
    /// If a shim's message is not valid, or the shim has exited. The caller must then close the
    /// connection.
    fn parse_message(&mut self, text: &str) -> Result<CoreEvent, Box<dyn std::error::Error>> {
        failpoint::hit("connection.received");
        let conn = self.conn;
        Ok(if self.is_shim {
            let report = serde_json::from_str::<FromShim>(text)?;
            CoreEvent::ShimReported { conn, report: report.with_short_texts() }
        } else {
            let call: Call = match serde_json::from_str(text) {
                Ok(call) => call,
                Err(error) => return Ok(invalid_call(conn, text, &error)),
            };
            let is_member = matches!(call.request, Request::ConnectShim(_) | Request::LongPoll(_));
            let kind = if is_member { PeerKind::Member } else { PeerKind::Client };
            *self.kind.lock().unwrap_or_else(PoisonError::into_inner) = kind;
            match call.request {
                Request::ConnectShim(hello) => {
                    self.is_shim = true;
                    let (hello, peer) = (hello.with_short_texts(), peer_process(self.pid)?);
                    CoreEvent::ShimConnected { conn, hello, peer }
                }
                _ => CoreEvent::ClientCall { client: conn, call: Box::new(call) },
            }
        })
    }
}

/// Whether a home has connected. What follows on its connection are no messages.
fn is_from_home(event: &CoreEvent) -> bool {
    matches!(event, CoreEvent::ClientCall { call, .. } if matches!(call.request, Request::ConnectHome(_)))
}

/// Waits until `receive` completes, or until `deadline` if there is one.
///
/// The caller passes a deadline while it waits for the first JSON object of a connection, or for
/// the rest of an object. At other times there is no deadline, because a client may wait for its
/// reply for any length of time.
async fn read_with_timeout(
    deadline: Option<Instant>,
    receive: impl Future<Output = std::io::Result<usize>>,
) -> std::io::Result<usize> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, receive).await?,
        None => receive.await,
    }
}

/// Returns the event for the call `text`, which cannot be parsed. The event contains the client's
/// protocol version if at least that can be read, so that the core can tell a client of another
/// release why its call was not understood.
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
    let start_time = ProcessEntry::start_time(pid)?.ok_or("the peer has exited")?;
    Ok(Process { pid, start_time })
}
