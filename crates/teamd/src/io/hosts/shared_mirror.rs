//! The mirrors of one link. Two threads share them: `mirror_thread` compares files, and the link's
//! storage thread stores received items (`receive_items`).

use crate::core::core_event::CoreEvent;
use crate::core::jobs::host_jobs::{HostEvent, LinkId};
use mirror::{Mirror, MirrorNotice, MirrorOutput, MirroredTeamState};
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::HomeUsage;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The mirrors put what they send to the other host into `items`.
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

    /// Replaces the mirrors by newly opened ones, after the link has ended. Items that the link has
    /// not written to its spool are lost. A later comparison of all files finds their changes
    /// again.
    ///
    /// # Errors
    ///
    /// If `open` fails. The mirrors are not replaced then.
    pub(super) fn reopen(
        &self,
        open: impl FnOnce() -> Result<Mirror, ErrorReport>,
        items: UnboundedSender<ItemPayload>,
    ) -> Result<(), ErrorReport> {
        let mut locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        (locked.mirror, locked.items) = (open()?, items);
        Ok(())
    }

    /// Calls `step` with the mirrors. Sends the items that `step` returns to the link, and then its
    /// notices and `event` to the event loop. The mirrors stay locked until the end, so that two
    /// calls do not mix their items and notices.
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
        let (value, output) = match result {
            Ok(done) => done,
            // A notice may say what has to happen before the step can succeed.
            Err(error) => {
                locked.mirror.take_notices().into_iter().for_each(|notice| self.report_notice(notice));
                return Err(error);
            }
        };
        // The link has ended if this fails.
        output.items.into_iter().for_each(|item| drop(locked.items.send(item)));
        output.notices.into_iter().for_each(|notice| self.report_notice(notice));
        event(value).into_iter().for_each(|event| self.reporter.report(event));
        Ok(())
    }

    /// At the annex: the result of [`Mirror::events_left_in_log`].
    pub(super) fn events_left_in_log(&self) -> BTreeMap<TeamName, u64> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner).mirror.events_left_in_log()
    }

    fn report_notice(&self, notice: MirrorNotice) {
        self.reporter.report(HostEvent::Notice(notice));
    }

    /// The teams that are mirrored.
    pub(super) fn team_states(&self) -> BTreeMap<TeamName, MirroredTeamState> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner).mirror.team_states()
    }

    /// The result of [`Mirror::usage_of_old_homes`].
    pub(super) fn usage_of_old_homes(&self) -> BTreeMap<TeamName, (u64, HomeUsage)> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner).mirror.usage_of_old_homes()
    }

    pub(super) fn reporter(&self) -> &LinkReporter {
        &self.reporter
    }
}
