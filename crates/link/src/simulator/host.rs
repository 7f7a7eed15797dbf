//! A simulated host: its disk, and the process of its daemon.

use crate::event_and_effect::{LinkEffect, LinkEvent, ReceivedPosition};
use crate::link_state::LinkState;
use crate::received_log::{ReceivedItems, received_lines};
use crate::settings_and_identity::{LinkIdentity, LinkRole, LinkSettings};
use crate::spool_lines::{SpoolContents, SpoolWrite, item_lines};
use crate::test_items::spawn;
use protocol::annex_link::LinkItem;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Index of a host. The annex is the host 0, and the current home is the last host.
pub(super) type HostIndex = usize;
pub(super) const ANNEX: HostIndex = 0;

/// The kinds of [`ItemReceiver`](crate::ItemReceiver).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiverKind {
    OneStep,
    Idempotent,
}

/// The files of a host.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    spool: Vec<u8>,
    /// Number of the last item in the spool.
    pub(super) spool_last: u64,
    /// The log of a one-step receiver.
    received_log: Vec<u8>,
    /// The items of an idempotent receiver.
    applied: BTreeMap<u64, Arc<LinkItem>>,
    /// The stored position.
    pub(super) position: ReceivedPosition,
    kind: ReceiverKind,
    pub(super) is_full: bool,
}

impl Disk {
    pub(super) fn new(kind: ReceiverKind) -> Disk {
        Disk {
            spool: SpoolContents::default().to_lines(),
            spool_last: 0,
            received_log: Vec::new(),
            applied: BTreeMap::new(),
            position: ReceivedPosition::default(),
            kind,
            is_full: false,
        }
    }

    /// The items that have had their effect, in order.
    pub(super) fn received(&self) -> Vec<Arc<LinkItem>> {
        match self.kind {
            ReceiverKind::OneStep => ReceivedItems::parse(&self.received_log).unwrap().items,
            ReceiverKind::Idempotent => self.applied.values().cloned().collect(),
        }
    }

    /// Writes to the spool. If the process is killed during the write, only the first `bytes` bytes
    /// are written; `usize::MAX` means a complete write. An appended line that is incomplete is
    /// left out, because the next start would remove it. A replacement of the whole spool is either
    /// complete or has no effect.
    pub(super) fn write_spool(&mut self, write: &SpoolWrite, bytes: usize) {
        match write {
            SpoolWrite::Append(items) => {
                let lines = complete_lines(item_lines(items), bytes);
                self.spool_last += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                self.spool.extend(lines);
            }
            SpoolWrite::Replace(contents) if bytes >= contents.to_lines().len() => {
                (self.spool, self.spool_last) = (contents.to_lines(), contents.last_number());
            }
            SpoolWrite::Replace(_) => {}
        }
    }

    /// Stores received items. If the process is killed meanwhile, only the first `steps` steps are
    /// done; `usize::MAX` means all steps. A one-step receiver writes one byte of its log per step.
    /// An idempotent receiver applies one item per step, and stores the position in the last step.
    pub(super) fn apply(&mut self, apply: &ApplyJob, steps: usize) {
        match self.kind {
            ReceiverKind::OneStep => {
                let lines = complete_lines(received_lines(&apply.items, apply.position), steps);
                if !lines.is_empty() {
                    self.position = ReceivedItems::parse(&lines).unwrap().position;
                }
                self.received_log.extend(lines);
            }
            ReceiverKind::Idempotent => {
                for item in apply.items.iter().take(steps) {
                    self.applied.entry(item.number).or_insert_with(|| Arc::clone(item));
                }
                if steps > apply.items.len() {
                    self.position = apply.position;
                }
            }
        }
    }
}

/// The complete lines in the first `bytes` bytes.
fn complete_lines(mut lines: Vec<u8>, bytes: usize) -> Vec<u8> {
    lines.truncate(bytes);
    lines.truncate(lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    lines
}

/// Received items that are being stored.
#[derive(Debug)]
pub(super) struct ApplyJob {
    pub(super) items: Vec<Arc<LinkItem>>,
    pub(super) position: ReceivedPosition,
}

/// The process of a daemon. All of this is lost when it is killed.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) state: LinkState,
    /// Events that were not handled yet.
    pub(super) events: VecDeque<LinkEvent>,
    /// Effects that were not carried out yet.
    pub(super) effects: VecDeque<LinkEffect>,
    pub(super) spool_job: Option<SpoolWrite>,
    pub(super) apply_job: Option<ApplyJob>,
    /// The last start of the member that the link knows.
    pub(super) generation: u64,
    /// At the annex: which home, by its epoch, has sent each item. The key is the item's number. If
    /// several homes have sent an item, the last one counts.
    pub(super) epochs: BTreeMap<u64, u64>,
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) role: LinkRole,
    pub(super) disk: Disk,
    pub(super) process: Option<Process>,
    /// How many items the application wants to send in all.
    pub(super) wanted: u64,
    /// Added to the count in the text of each item, so that no two homes send the same text.
    pub(super) first_count: u64,
    /// The member's start that each submitted item names, by the item's number.
    pub(super) submitted: BTreeMap<u64, Option<u64>>,
    /// The last start of the member that the application has stored.
    pub(super) generation: u64,
}

impl Host {
    pub(super) fn new(role: LinkRole, kind: ReceiverKind, wanted: u64) -> Host {
        Host {
            role,
            disk: Disk::new(kind),
            process: None,
            wanted,
            first_count: 0,
            submitted: BTreeMap::new(),
            generation: 0,
        }
    }

    /// Starts the process from the files.
    pub(super) fn start(&mut self, settings: LinkSettings) {
        let identity = LinkIdentity {
            role: self.role,
            program_version: "0.1.0".to_owned(),
            root: "root".to_owned(),
            annex: "annex".to_owned(),
        };
        let (received, spool) = (self.disk.received(), SpoolContents::parse(&self.disk.spool).unwrap());
        let spawns = received.iter().filter_map(|item| Some(item.spawn.as_ref()?.generation));
        self.generation = spawns.max().unwrap_or(0).max(self.generation);
        self.process = Some(Process {
            state: LinkState::new(identity, settings, spool, self.disk.position),
            events: VecDeque::from([LinkEvent::SpawnStarted(spawn(self.generation))]),
            effects: VecDeque::new(),
            spool_job: None,
            apply_job: None,
            generation: 0,
            epochs: BTreeMap::new(),
        });
    }
}
