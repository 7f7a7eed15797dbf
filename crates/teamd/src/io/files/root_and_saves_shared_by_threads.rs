//! The state that the threads for file jobs share. Each of these threads runs the jobs of one lane:
//! the queue of one team, or of the daemon's own files.

use crate::core::roster::Roster;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use store::Root;

/// The state that the files threads of all lanes share.
pub(super) struct SharedThreadState {
    pub(super) root: Mutex<CurrentRoot>,
    saves: Mutex<Saves>,
    save_done: Condvar,
    /// The newest roster that waits to be written.
    newest_roster: Mutex<Option<Roster>>,
    /// Teams that are being created. The policy and the backup of config.json of such a team exist
    /// before its directory, and must not be removed as files of a deleted team.
    pub(super) creating: Mutex<BTreeSet<TeamName>>,
    /// For each inbox, how many of its entries are in the event log already. When the thread of a
    /// team starts, it takes the counts of that team out of this map.
    logged_counts: Mutex<BTreeMap<(TeamName, MemberName), usize>>,
}

/// The root as a files thread has opened it last.
pub(super) struct CurrentRoot {
    pub(super) root: Root,
    /// How many times the root was opened again because its directories were replaced.
    pub(super) generation: u64,
    /// The root was replaced and could not be opened again, so the daemon exits.
    pub(super) is_lost: bool,
}

/// Progress and errors of the saves: the jobs that write a roster or an environment.
#[derive(Default)]
pub(super) struct Saves {
    /// How many of these jobs are done.
    done: u64,
    /// The error of the last roster write. `None` if the roster on disk is current.
    pub(super) roster_error: Option<ErrorReport>,
    /// Environments of members that could not be saved: the file name and the error. The
    /// registration of such a member fails with this error.
    pub(super) failed_environments: BTreeMap<String, ErrorReport>,
}

impl SharedThreadState {
    pub(super) fn new(
        root: Root,
        logged_counts: BTreeMap<(TeamName, MemberName), usize>,
    ) -> SharedThreadState {
        SharedThreadState {
            root: Mutex::new(CurrentRoot { root, generation: 0, is_lost: false }),
            saves: Mutex::default(),
            save_done: Condvar::new(),
            newest_roster: Mutex::default(),
            creating: Mutex::default(),
            logged_counts: Mutex::new(logged_counts),
        }
    }

    /// Puts `roster` in place of the roster that waits to be written, and returns the roster that
    /// waited before. In both, `None` means no roster.
    pub(super) fn swap_roster(&self, roster: Option<Roster>) -> Option<Roster> {
        std::mem::replace(&mut *lock(&self.newest_roster), roster)
    }

    pub(super) fn saves(&self) -> MutexGuard<'_, Saves> {
        lock(&self.saves)
    }

    /// Counts a job that has saved a roster or an environment, or has failed to.
    pub(super) fn count_save(&self) {
        self.saves().done += 1;
        self.save_done.notify_all();
    }

    /// Waits until the first `count` jobs that save a roster or an environment are done.
    pub(super) fn wait_for_saves(&self, count: u64) {
        let waiting = self.save_done.wait_while(self.saves(), |saves| saves.done < count);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// Removes the counts of a team from `logged_counts`, and returns them.
    pub(super) fn take_logged_counts(&self, team: &TeamName) -> BTreeMap<(TeamName, MemberName), usize> {
        let mut counts = lock(&self.logged_counts);
        let (taken, others) =
            std::mem::take(&mut *counts).into_iter().partition(|((owner_team, _), _)| owner_team == team);
        *counts = others;
        taken
    }
}

impl Saves {
    /// Records whether an environment was saved.
    pub(super) fn record_environment(&mut self, file: String, saved: Result<(), ErrorReport>) {
        match saved {
            Ok(()) => self.failed_environments.remove(&file),
            Err(error) => self.failed_environments.insert(file, error),
        };
    }
}

/// Locks a mutex, also if a thread has panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
