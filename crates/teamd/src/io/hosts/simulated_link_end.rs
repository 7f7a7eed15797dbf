//! One end of a link in a simulation: the state machine, the spool, the mirrors and the receiver of
//! the daemon, with real files. The daemon runs them in several threads. Here the simulation
//! chooses the order of their steps, and carries the frames to the other end.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::io::files::event_log;
use crate::io::hosts::link_files::LinkFiles;
use crate::io::hosts::mirror_thread;
use crate::io::hosts::open_link::LinkSetup;
use crate::io::hosts::receive_items::MirrorReceiver;
use crate::io::hosts::run_link::placeholder;
use crate::io::hosts::shared_mirror::{LinkReporter, SharedMirror};
use link::{
    ItemReceiver, LinkEffect, LinkEvent, LinkSettings, LinkState, LinkTime, ReceivedPosition, SpoolFile,
    SpoolWrite, Submission,
};
use mirror::MirroredTeamState;
use protocol::annex_link::{ItemPayload, LinkItem};
use protocol::control_socket::{FIRST_LINK_GENERATION, HomeId};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use store::{Durability, Root};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// One end of a link of a running daemon.
#[derive(Debug)]
pub(crate) struct SimulatedLinkEnd {
    pub(crate) state: LinkState,
    spool: SpoolFile,
    receiver: MirrorReceiver,
    mirror: SharedMirror,
    setup: LinkSetup,
    sent_items: UnboundedReceiver<ItemPayload>,
    /// What the mirrors send, and the link has not taken yet.
    pub(crate) items: VecDeque<ItemPayload>,
    pub(crate) events: VecDeque<LinkEvent>,
    effects: VecDeque<LinkEffect>,
    spool_job: Option<SpoolWrite>,
    apply_job: Option<ApplyJob>,
    /// The number of the last connection that the annex has taken.
    last_incoming: u64,
    /// How many items were too long for a frame.
    pub(crate) too_long_items: u64,
}

/// Received items that are being stored.
#[derive(Debug)]
struct ApplyJob {
    items: Vec<Arc<LinkItem>>,
    position: ReceivedPosition,
}

/// What an end can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkEndAction {
    /// Carry out the next effect. If there is none, handle the next event.
    Step,
    /// Take the next item of the mirrors.
    Submit,
    FinishSpool,
    FinishApply,
    RunMirrorJob,
}

/// The files of the links of one host.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedLinkFiles(LinkFiles);

impl SimulatedLinkFiles {
    pub(crate) fn new(root: Root, state_dir: PathBuf, home: HomeId) -> SimulatedLinkFiles {
        SimulatedLinkFiles(LinkFiles {
            root,
            state_dir,
            durability: Durability::Process,
            home,
            generation: FIRST_LINK_GENERATION,
        })
    }

    pub(crate) fn known_homes(&self) -> Result<Vec<LinkId>, ErrorReport> {
        self.0.known_homes()
    }

    /// Opens an end of a link. The mirrors report to `events`. `log` contains the lines that the
    /// event log of this host has already.
    pub(crate) fn open(
        &self,
        link: &LinkId,
        events: UnboundedSender<CoreEvent>,
        log: &[String],
    ) -> Result<SimulatedLinkEnd, ErrorReport> {
        let reporter = LinkReporter { link: link.clone(), events };
        let setup = LinkSetup { files: self.0.clone(), reporter, queue: Arc::default() };
        let lines = log.iter().map(|line| line.clone().into_bytes());
        let open = setup.open_files(None, |kept| Ok(event_log::events_after(lines, kept)))?;
        let (spool, contents) = open.spool;
        let identity = self.0.identity(link);
        let position = open.receiver.position();
        Ok(SimulatedLinkEnd {
            state: LinkState::new(identity, LinkSettings::default(), contents, position),
            spool,
            receiver: open.receiver,
            mirror: open.mirror,
            setup,
            sent_items: open.items,
            items: VecDeque::new(),
            events: VecDeque::new(),
            effects: VecDeque::new(),
            spool_job: None,
            apply_job: None,
            last_incoming: 0,
            too_long_items: 0,
        })
    }
}

impl SimulatedLinkEnd {
    /// The teams that are mirrored.
    pub(crate) fn team_states(&self) -> BTreeMap<TeamName, MirroredTeamState> {
        self.mirror.team_states()
    }

    pub(crate) fn push_mirror_job(&self, job: MirrorJob) {
        self.setup.queue.push(job);
    }

    /// Takes the jobs that have not run, for the end that replaces this one.
    pub(crate) fn take_mirror_jobs(&self) -> Vec<MirrorJob> {
        std::iter::from_fn(|| self.setup.queue.try_pop()).collect()
    }

    /// The number of a new connection at an annex. The connection is open.
    pub(crate) fn open_incoming(&mut self) -> u64 {
        self.last_incoming += 1;
        self.events.push_back(LinkEvent::Opened { connection: self.last_incoming });
        self.last_incoming
    }

    pub(crate) fn due_actions(&self) -> impl Iterator<Item = LinkEndAction> + use<> {
        let can_submit = !self.items.is_empty() && self.state.has_capacity();
        [
            (LinkEndAction::Step, !self.effects.is_empty() || !self.events.is_empty()),
            // The number of the next item is known only after an earlier submission was handled.
            (LinkEndAction::Submit, can_submit && self.events.is_empty()),
            (LinkEndAction::FinishSpool, self.spool_job.is_some()),
            (LinkEndAction::FinishApply, self.apply_job.is_some()),
            (LinkEndAction::RunMirrorJob, !self.setup.queue.is_empty()),
        ]
        .into_iter()
        .filter_map(|(action, is_due)| is_due.then_some(action))
    }

    /// Runs an action. Returns an effect that concerns the connection.
    pub(crate) fn run(&mut self, action: LinkEndAction, now: LinkTime) -> Option<LinkEffect> {
        match action {
            LinkEndAction::Step => return self.step(now),
            LinkEndAction::Submit => {
                let item = self.items.pop_front()?;
                let submission = Submission::new(None, item).unwrap_or_else(|_| {
                    self.too_long_items += 1;
                    placeholder()
                });
                self.events.push_back(LinkEvent::Submitted(submission));
            }
            LinkEndAction::FinishSpool => self.finish_spool(),
            LinkEndAction::FinishApply => self.finish_apply(),
            LinkEndAction::RunMirrorJob => self.run_mirror_job(),
        }
        self.items.extend(std::iter::from_fn(|| self.sent_items.try_recv().ok()));
        None
    }

    fn step(&mut self, now: LinkTime) -> Option<LinkEffect> {
        match self.effects.pop_front() {
            Some(LinkEffect::Spool(write)) => self.spool_job = Some(write),
            Some(LinkEffect::Apply { items, position }) => {
                self.apply_job = Some(ApplyJob { items, position });
            }
            Some(LinkEffect::Report(report)) => self.setup.handle_report(report),
            Some(effect) => return Some(effect),
            None => {
                let event = self.events.pop_front()?;
                self.effects.extend(self.state.handle(event, now));
            }
        }
        None
    }

    fn finish_spool(&mut self) {
        let Some(write) = self.spool_job.take() else { return };
        self.events.push_back(match self.spool.write(&write) {
            Ok(()) => LinkEvent::Spooled,
            Err(error) => LinkEvent::SpoolFailed { reason: error.to_string() },
        });
    }

    fn finish_apply(&mut self) {
        let Some(ApplyJob { items, position }) = self.apply_job.take() else { return };
        self.events.push_back(match self.receiver.apply(&items, position) {
            Ok(()) => LinkEvent::Applied,
            Err(reason) => LinkEvent::ApplyFailed { reason },
        });
    }

    /// The items that [`LinkEndAction::FinishApply`] stores.
    pub(crate) fn items_to_apply(&self) -> &[Arc<LinkItem>] {
        self.apply_job.as_ref().map_or(&[], |job| &job.items)
    }

    fn run_mirror_job(&mut self) {
        let Some(job) = self.setup.queue.try_pop() else { return };
        if let Err(error) = mirror_thread::run_job(&self.mirror, &self.setup.files.root, job.clone()) {
            let (job, reply) = mirror_thread::prepare_retry(job, &error);
            reply.into_iter().for_each(|event| self.mirror.reporter().report(event));
            self.setup.queue.push_first(job);
        }
    }

    /// Kills the process. `writes` says whether the current write to the spool is still completed.
    /// If the process is storing received items, only the first `stored` of them are stored.
    pub(crate) fn kill(mut self, writes: SpoolAtKill, stored: usize) {
        if let (SpoolAtKill::Written, Some(write)) = (writes, self.spool_job.take()) {
            self.spool.write(&write).ok();
        }
        let Some(ApplyJob { items, position }) = self.apply_job.take() else { return };
        let stored = &items[..stored.min(items.len())];
        if let Some(last) = stored.last() {
            self.receiver.apply(stored, ReceivedPosition { number: last.number, ..position }).ok();
        }
    }
}

/// Whether a write to the spool is done when the process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpoolAtKill {
    Written,
    NotWritten,
}
