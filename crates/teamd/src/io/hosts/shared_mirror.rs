//! The mirrors of one link. The thread that compares files and the one that stores received items
//! share them.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::host_jobs::{HostEvent, LinkId};
use mirror::{Mirror, MirrorOutput};
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// A handle of the mirrors.
#[derive(Debug, Clone)]
pub(super) struct SharedMirror {
    locked: Arc<Mutex<LockedMirror>>,
    reporter: LinkReporter,
}

/// Sends what a link reports to the event loop.
#[derive(Debug, Clone)]
pub(super) struct LinkReporter {
    pub(super) link: LinkId,
    pub(super) events: UnboundedSender<CoreEvent>,
}

#[derive(Debug)]
struct LockedMirror {
    mirror: Mirror,
    items: UnboundedSender<ItemPayload>,
    /// The teams that were reported last.
    teams: BTreeSet<TeamName>,
}

impl LinkReporter {
    pub(super) fn report(&self, event: HostEvent) {
        // The event loop has ended if this fails.
        self.events.send(CoreEvent::HostReported { link: self.link.clone(), event }).ok();
    }
}

impl SharedMirror {
    /// `items` gets what the mirrors send to the other host.
    pub(super) fn new(
        mirror: Mirror,
        items: UnboundedSender<ItemPayload>,
        reporter: LinkReporter,
    ) -> SharedMirror {
        let teams: BTreeSet<TeamName> = mirror.teams().into_iter().collect();
        reporter.report(HostEvent::TeamsChanged(teams.clone()));
        let locked = LockedMirror { mirror, items, teams };
        SharedMirror { locked: Arc::new(Mutex::new(locked)), reporter }
    }

    /// Replaces the mirrors by those that were opened again, after the link has ended. What the link has
    /// not kept is found again by a comparison of all files.
    ///
    /// # Errors
    ///
    /// If `open` fails. The earlier mirrors remain then.
    pub(super) fn reopen(
        &self,
        open: impl FnOnce() -> Result<Mirror, ErrorReport>,
        items: UnboundedSender<ItemPayload>,
    ) -> Result<(), ErrorReport> {
        let mut locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        (locked.mirror, locked.items) = (open()?, items);
        Ok(())
    }

    /// Makes one step of the mirrors. Queues its items, and then reports its notices and `event`. All
    /// this happens under one lock, so items and notices are in the order of the steps.
    pub(super) fn update<T>(
        &self,
        step: impl FnOnce(&mut Mirror) -> Result<(T, MirrorOutput), ErrorReport>,
        event: impl FnOnce(T) -> Option<HostEvent>,
    ) -> Result<(), ErrorReport> {
        let mut locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        let result = step(&mut locked.mirror);
        let teams: BTreeSet<TeamName> = locked.mirror.teams().into_iter().collect();
        if teams != locked.teams {
            locked.teams = teams.clone();
            self.reporter.report(HostEvent::TeamsChanged(teams));
        }
        let (value, output) = result?;
        // The link has ended if this fails.
        output.items.into_iter().for_each(|item| drop(locked.items.send(item)));
        output.notices.into_iter().for_each(|notice| self.reporter.report(HostEvent::Notice(notice)));
        event(value).into_iter().for_each(|event| self.reporter.report(event));
        Ok(())
    }

    /// The teams that are mirrored.
    pub(super) fn teams(&self) -> BTreeSet<TeamName> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner).teams.clone()
    }

    pub(super) fn reporter(&self) -> &LinkReporter {
        &self.reporter
    }
}
