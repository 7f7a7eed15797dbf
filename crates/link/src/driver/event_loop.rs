//! One loop over the events of a link.

use super::connect_command::run_connect_command;
use super::connection_task::{ConnectionEnd, ConnectionHandle, LinkStream, carry_frames};
use super::storage_thread::{StorageJob, start_storage_thread};
use crate::event_and_effect::{ConnectionNumber, LinkEffect, LinkEvent, LinkReport, LinkTime};
use crate::link_state::LinkState;
use crate::settings_and_identity::{LinkIdentity, LinkSettings};
use crate::spool_file::SpoolFile;
use crate::spool_lines::SpoolContents;
use crate::submission::Submission;
use crate::trait_to_store_received_items::ItemReceiver;
use protocol::annex_link::{LinkFrame, MemberGeneration, encode_frame};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How many events wait for the loop. When as many wait, connections are not read.
const QUEUED_EVENTS: usize = 64;

/// Where the connections of a link come from.
#[derive(Debug)]
pub enum ConnectionSource {
    /// The home runs this command for each connection.
    Command(Vec<OsString>),
    /// The annex gets a stream for each home that connects.
    Incoming(mpsc::Receiver<LinkStream>),
}

/// What the daemon passes to a link.
#[derive(Debug)]
pub struct LinkInputs {
    /// Items that the daemon wants to send. While too many earlier items are not acknowledged, the
    /// link takes no items from this channel, so the daemon has to wait. The link ends when the
    /// channel is closed.
    pub submissions: mpsc::Receiver<Submission>,
    /// Starts of members.
    pub spawns: mpsc::UnboundedReceiver<MemberGeneration>,
}

/// Runs one end of a link.
#[derive(Debug)]
pub struct LinkDriver {
    state: LinkState,
    source: ConnectionSource,
    inputs: LinkInputs,
    reports: mpsc::UnboundedSender<LinkReport>,
    connections: BTreeMap<ConnectionNumber, ConnectionHandle>,
    last_incoming: ConnectionNumber,
    storage: Sender<StorageJob>,
    events: mpsc::Receiver<LinkEvent>,
    event_sender: mpsc::Sender<LinkEvent>,
    started_at: Instant,
}

impl LinkDriver {
    /// Creates a link, and starts the thread that writes its files. `spool` is the result of
    /// [`SpoolFile::open`].
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(
        (identity, settings): (LinkIdentity, LinkSettings),
        spool: (SpoolFile, SpoolContents),
        receiver: Box<dyn ItemReceiver>,
        source: ConnectionSource,
        (inputs, reports): (LinkInputs, mpsc::UnboundedSender<LinkReport>),
    ) -> io::Result<LinkDriver> {
        let (event_sender, events) = mpsc::channel(QUEUED_EVENTS);
        Ok(LinkDriver {
            state: LinkState::new(identity, settings, spool.1, receiver.position()),
            source,
            inputs,
            reports,
            connections: BTreeMap::new(),
            last_incoming: 0,
            storage: start_storage_thread(spool.0, receiver, event_sender.clone())?,
            events,
            event_sender,
            started_at: Instant::now(),
        })
    }

    /// Runs the link until the channel of submissions is closed. Items in the spool that were not
    /// delivered by then are sent after the next start.
    pub async fn run(mut self) {
        while let Some(event) = self.next_event().await {
            let now = LinkTime {
                ms: self.started_at.elapsed().as_millis() as u64,
                random: uuid::Uuid::new_v4().as_u64_pair().0,
            };
            self.state.handle(event, now).into_iter().for_each(|effect| self.run_effect(effect));
        }
    }

    async fn next_event(&mut self) -> Option<LinkEvent> {
        let deadline = self.state.deadline().map(|ms| self.started_at + Duration::from_millis(ms));
        let at_deadline = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = self.events.recv() => event,
            submission = self.inputs.submissions.recv(), if self.state.has_capacity() => {
                submission.map(LinkEvent::Submitted)
            }
            Some(spawn) = self.inputs.spawns.recv() => Some(LinkEvent::SpawnStarted(spawn)),
            stream = next_stream(&mut self.source) => Some(self.open(stream)),
            () = at_deadline => Some(LinkEvent::Deadline),
        }
    }

    fn run_effect(&mut self, effect: LinkEffect) {
        match effect {
            LinkEffect::Connect { connection } => self.connect(connection),
            LinkEffect::Send { connection, frame } => self.send(connection, &frame),
            LinkEffect::Close { connection } => drop(self.connections.remove(&connection)),
            LinkEffect::Spool(write) => self.store(StorageJob::Spool(write)),
            LinkEffect::Apply { items, position } => self.store(StorageJob::Apply { items, position }),
            // The daemon may have dropped the receiver, because it shows no reports.
            LinkEffect::Report(report) => drop(self.reports.send(report)),
        }
    }

    /// Runs the connect command.
    fn connect(&mut self, connection: ConnectionNumber) {
        let ConnectionSource::Command(command) = &self.source else { return };
        let (handle, queue) = ConnectionHandle::new();
        self.connections.insert(connection, handle);
        let run = run_connect_command(command.clone(), connection, queue, self.event_sender.clone());
        drop(tokio::spawn(run));
    }

    /// Takes a stream from a home. Returns its first event, after which frames can arrive.
    fn open(&mut self, stream: LinkStream) -> LinkEvent {
        self.last_incoming += 1;
        let connection = self.last_incoming;
        let (handle, queue) = ConnectionHandle::new();
        self.connections.insert(connection, handle);
        let events = self.event_sender.clone();
        drop(tokio::spawn(async move {
            if let ConnectionEnd::Failed(reason) = carry_frames(stream, connection, queue, &events).await {
                events.send(LinkEvent::Closed { connection, reason }).await.ok();
            }
        }));
        LinkEvent::Opened { connection }
    }

    /// Gives a frame to the task that writes it.
    fn send(&mut self, connection: ConnectionNumber, frame: &LinkFrame) {
        let bytes = encode_frame(frame).expect("submissions and hellos fit in a frame");
        if let Some(handle) = self.connections.get(&connection) {
            handle.send(bytes);
        }
    }

    fn store(&mut self, job: StorageJob) {
        self.storage.send(job).expect("the thread runs until this sender is dropped");
    }
}

/// The next stream from a home. Never, if this end is the home, or if no stream can come any more.
async fn next_stream(source: &mut ConnectionSource) -> LinkStream {
    if let ConnectionSource::Incoming(streams) = source
        && let Some(stream) = streams.recv().await
    {
        return stream;
    }
    std::future::pending().await
}
