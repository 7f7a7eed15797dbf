//! The tokio tasks of links. Each task opens a link's files, gives items to the link to send, and
//! reports when the link connects, disconnects or fails.

use crate::core::jobs::host_jobs::{HostEvent, MirrorJob};
use crate::io::hosts::connect_commands_file::SharedConnectCommands;
use crate::io::hosts::open_link::{LinkSetup, OpenLink, internal_error};
use link::{ConnectionSource, LinkDriver, LinkInputs, LinkReport, LinkSettings, LinkStream, Submission};
use protocol::annex_link::ItemPayload;
use protocol::control_socket::FIRST_LINK_GENERATION;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use std::ffi::OsString;
use std::sync::Arc;
use store::StateDir;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel, unbounded_channel};

/// Maximum number of items that wait for the link. Further items wait in [`OpenLink::items`].
const QUEUED_SUBMISSIONS: usize = 16;

/// Runs the home's end of a link to an annex. Each command from `commands` connects the link anew.
/// `opened` has the files of the link, if they are open already. Ends when `commands` is closed,
/// after the last write of the link and of its mirrors.
pub(super) async fn run_to_annex(
    link: Arc<LinkSetup>,
    (host, connect_commands): (HostName, Arc<SharedConnectCommands>),
    mut opened: Option<OpenLink>,
    mut commands: UnboundedReceiver<Vec<String>>,
) {
    let mut mirror = opened.as_ref().map(|open| open.mirror.clone());
    let mut next = commands.recv().await;
    while let Some(command) = next {
        let (earlier, to_open) = (opened.take(), link.clone());
        let (known_mirror, record) =
            (mirror.clone(), (host.clone(), connect_commands.clone(), command.clone()));
        let opening = run_blocking(move || {
            record_command(&to_open, record)?;
            earlier.map_or_else(|| to_open.open(known_mirror), Ok)
        });
        let result = match opening.await {
            Ok(open) => {
                mirror = Some(open.mirror.clone());
                let source = ConnectionSource::Command(connect_command(&link, &host, command));
                link.run(open, source, &mut commands).await
            }
            Err(error) => Err(error),
        };
        next = match result {
            Ok(command) => command,
            Err(error) => {
                link.reporter.report(HostEvent::Disconnected { reason: error.message });
                commands.recv().await
            }
        };
    }
    end_mirrors(link).await;
}

/// Waits for the last write of the mirrors.
async fn end_mirrors(link: Arc<LinkSetup>) {
    let end = move || {
        link.queue.close_and_wait();
        Ok(())
    };
    run_blocking(end).await.unwrap_or_else(|error| tracing::warn!("{error}"));
}

/// Records the connect command of the host for the next daemon.
fn record_command(
    link: &LinkSetup,
    (host, connect_commands, command): (HostName, Arc<SharedConnectCommands>, Vec<String>),
) -> Result<(), ErrorReport> {
    let state_dir = StateDir::open(&link.files.state_dir)?;
    connect_commands.set_command(&state_dir, &host, &command)
}

/// The connect command, with the arguments that name the link to the annex.
fn connect_command(link: &LinkSetup, host: &HostName, command: Vec<String>) -> Vec<OsString> {
    let arguments = [link.files.home.as_str().to_owned(), host.to_string()];
    let generation = Some(link.files.generation).filter(|generation| *generation > FIRST_LINK_GENERATION);
    let generation = generation.map(|generation| generation.to_string());
    command.into_iter().chain(arguments).chain(generation).map(OsString::from).collect()
}

/// Runs the annex's end of a link. `opened` is the opened link, if it was opened before. Ends when
/// `commands` is closed, or if the link can't be opened, after the last write. `commands` never
/// gets a command, because the home connects.
pub(super) async fn run_to_home(
    link: Arc<LinkSetup>,
    opened: Option<OpenLink>,
    streams: Receiver<LinkStream>,
    mut commands: UnboundedReceiver<Vec<String>>,
) {
    let to_open = link.clone();
    let opening = run_blocking(move || opened.map_or_else(|| to_open.open(None), Ok));
    let result = match opening.await {
        Ok(open) => link.run(open, ConnectionSource::Incoming(streams), &mut commands).await,
        Err(error) => Err(error),
    };
    result.map_or_else(|error| link.reporter.report(HostEvent::Failed(error)), drop);
    end_mirrors(link).await;
}

impl LinkSetup {
    /// Runs the link until there is another connect command, and returns the command. `None` if
    /// `commands` is closed.
    async fn run(
        &self,
        open: OpenLink,
        source: ConnectionSource,
        commands: &mut UnboundedReceiver<Vec<String>>,
    ) -> Result<Option<Vec<String>>, ErrorReport> {
        let (submissions, submission_queue) = channel(QUEUED_SUBMISSIONS);
        // This channel tells the link about new spawns, so that it drops items of earlier spawns.
        // The daemon does not use the channel yet.
        let (_spawns, spawns) = unbounded_channel();
        let (report_sender, mut reports) = unbounded_channel();
        let identity = (self.files.identity(&self.reporter.link), LinkSettings::default());
        let channels = (LinkInputs { submissions: submission_queue, spawns }, report_sender);
        let driver = LinkDriver::new(identity, open.spool, Box::new(open.receiver), source, channels)
            .map_err(internal_error)?;
        let running = tokio::spawn(driver.run());
        let mut forwarding = tokio::spawn(forward_items(open.items, submissions));
        let command = loop {
            tokio::select! {
                report = reports.recv() => match report {
                    Some(report) => self.handle_report(report),
                    None => break Err(internal_error("it has ended")),
                },
                command = commands.recv() => break Ok(command),
            }
        };
        // Ends the link without sending its queued items. A later comparison of all files finds
        // what was not sent. The receiver must end too: the files are opened again, and two
        // receivers would write to them.
        running.abort();
        forwarding.abort();
        running.await.ok();
        (&mut forwarding).await.ok();
        open.receiver_end.await.ok();
        command
    }

    /// Tells the event loop and the mirrors what has happened to the link.
    pub(super) fn handle_report(&self, report: LinkReport) {
        match report {
            LinkReport::Connected { .. } => {
                self.queue.push(MirrorJob::CompareAll);
                self.reporter.report(HostEvent::Connected);
            }
            LinkReport::Disconnected(reason) => {
                self.reporter.report(HostEvent::Disconnected { reason: reason.to_string() });
            }
            LinkReport::SpoolFailed { reason } => {
                self.reporter.report(HostEvent::Failed(ErrorReport::new(ErrorKind::Io, reason)));
            }
            LinkReport::ApplyFailed { reason } => {
                self.reporter.report(HostEvent::Failed(ErrorReport::new(ErrorKind::Io, reason)));
            }
            LinkReport::StorageFailedThere { reason } => {
                self.reporter.report(HostEvent::StorageThere { error: Some(reason) });
            }
            LinkReport::StorageWorksThere => self.reporter.report(HostEvent::StorageThere { error: None }),
            LinkReport::Accepted { number } => self.queue.push(MirrorJob::NoteAccepted(number)),
            // The link reports the end of the connection separately.
            LinkReport::Refused(_) => {}
            LinkReport::SpoolWorks | LinkReport::ApplyWorks | LinkReport::Dropped { .. } => {}
        }
    }
}

/// Passes the items to the link in order, each as soon as the link takes it.
async fn forward_items(mut items: UnboundedReceiver<ItemPayload>, submissions: Sender<Submission>) {
    while let Some(item) = items.recv().await {
        let submission = Submission::new(None, item).unwrap_or_else(|error| {
            tracing::error!("dropped an item for another host: {error}");
            placeholder()
        });
        if submissions.send(submission).await.is_err() {
            return;
        }
    }
}

/// An item without effect, in place of an item that is too long. The mirrors count the items, so
/// none may be missing.
pub(super) fn placeholder() -> Submission {
    Submission::new(None, ItemPayload::BarrierReached { number: 0 }).expect("the item is short")
}

/// Runs blocking code on another thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, ErrorReport> + Send + 'static,
) -> Result<T, ErrorReport> {
    tokio::task::spawn_blocking(run).await.unwrap_or_else(|error| Err(internal_error(error)))
}
