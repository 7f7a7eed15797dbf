//! Opens a link: its spool, its mirrors and its receiver.

use crate::core::jobs::host_jobs::MirrorJob;
use crate::io::files::event_log;
use crate::io::hosts::link_files::LinkFiles;
use crate::io::hosts::mirror_queue::MirrorQueue;
use crate::io::hosts::mirror_thread;
use crate::io::hosts::receive_items::MirrorReceiver;
use crate::io::hosts::shared_mirror::{LinkReporter, SharedMirror};
use link::{SpoolContents, SpoolFile};
use mirror::Mirror;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::Event;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::StateDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

/// What a link needs to open its files and to run.
#[derive(Debug)]
pub(super) struct LinkSetup {
    pub(super) files: LinkFiles,
    pub(super) reporter: LinkReporter,
    pub(super) queue: Arc<MirrorQueue>,
}

/// Events of the log that an earlier daemon has not sent, by team.
pub(super) type UnsentEvents = BTreeMap<TeamName, Vec<Event>>;

/// An opened link: its spool, its mirrors and its receiver.
#[derive(Debug)]
pub(super) struct OpenLink {
    pub(super) spool: (SpoolFile, SpoolContents),
    pub(super) mirror: SharedMirror,
    /// What the mirrors send to the other host.
    pub(super) items: UnboundedReceiver<ItemPayload>,
    pub(super) receiver: MirrorReceiver,
    /// Closes after the last write of the receiver.
    pub(super) receiver_end: oneshot::Receiver<()>,
}

impl LinkSetup {
    /// Opens the spool, the mirrors and the receiver of the link. Blocks.
    ///
    /// If the link was open before, `earlier` has its mirrors, and they are replaced by new ones.
    /// If `earlier` is `None`, also starts the thread of the mirrors.
    ///
    /// # Errors
    ///
    /// If a file can't be read or the thread can't be started.
    pub(super) fn open(&self, earlier: Option<SharedMirror>) -> Result<OpenLink, ErrorReport> {
        let is_first = earlier.is_none();
        let read_events = |kept: &BTreeMap<TeamName, u64>| {
            let state_dir = StateDir::open(&self.files.state_dir)?;
            event_log::read_events_after(&state_dir, kept).map_err(ErrorReport::from)
        };
        let open = self.open_files(earlier, read_events)?;
        // The thread is started last, so no second thread ever takes jobs of the queue.
        if is_first {
            let files = (self.files.root.clone(), self.files.state_dir.clone());
            mirror_thread::start(open.mirror.clone(), self.queue.clone(), files).map_err(internal_error)?;
        }
        Ok(open)
    }

    /// Opens the files, and queues the first jobs of the mirrors. For each team, the function
    /// `read_events` takes the number of an event, and returns the later events in the event log.
    ///
    /// # Errors
    ///
    /// If a file can't be read.
    pub(super) fn open_files(
        &self,
        earlier: Option<SharedMirror>,
        read_events: impl FnOnce(&BTreeMap<TeamName, u64>) -> Result<UnsentEvents, ErrorReport>,
    ) -> Result<OpenLink, ErrorReport> {
        let link = &self.reporter.link;
        if earlier.is_none() {
            self.files.remove_temp_files(link)?;
        }
        let spool = self.files.open_spool(link)?;
        let (sender, items) = unbounded_channel();
        let open_mirror = || self.files.open_mirror(link, &spool.1);
        let mirror = match earlier {
            Some(mirror) => {
                mirror.reopen(open_mirror, sender)?;
                mirror
            }
            None => {
                let mut mirror = open_mirror()?;
                self.queue_unsent_events(&mut mirror, read_events)?;
                SharedMirror::new(mirror, sender, self.reporter.clone())
            }
        };
        let (receiver, receiver_end) = MirrorReceiver::open(mirror.clone(), self.files.directory(link)?)?;
        self.queue.push(MirrorJob::CompareAll);
        Ok(OpenLink { spool, mirror, items, receiver, receiver_end })
    }

    /// At the annex: queues the events that an earlier daemon has logged but not sent to the home.
    /// The event loop sends only events that this daemon logs.
    fn queue_unsent_events(
        &self,
        mirror: &mut Mirror,
        read_events: impl FnOnce(&BTreeMap<TeamName, u64>) -> Result<UnsentEvents, ErrorReport>,
    ) -> Result<(), ErrorReport> {
        let kept = mirror.kept_events()?;
        if !kept.is_empty() {
            let unsent = read_events(&kept)?.into_iter();
            unsent.for_each(|(team, events)| self.queue.push(MirrorJob::SendEvents { team, events }));
        }
        Ok(())
    }
}

pub(super) fn internal_error(error: impl std::fmt::Display) -> ErrorReport {
    ErrorReport::new(ErrorKind::Internal, format!("cannot run a link to another host: {error}"))
}
