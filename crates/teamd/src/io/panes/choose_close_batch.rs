//! Chooses the panes that are closed in one round trip to tmux, at most one in each window: tmux up
//! to 3.6 crashes if two panes of a window close at the same time.

#[cfg(test)]
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::jobs::pane_jobs::PaneJob;
use std::collections::{BTreeSet, VecDeque};
use tmux::PaneToKill;

/// Maximum number of panes per round trip. It is small, because the callers get their results only
/// when all of these panes are closed.
const MAX_BATCH: usize = 4;

/// Selects the panes to close in one round trip: the first pane of each window among the
/// `ClosePane` jobs at the head of the queue. Returns each pane with the position of its job in the
/// queue.
pub(super) fn choose_close_batch(waiting: &VecDeque<PaneJob>) -> Vec<(usize, PaneToKill)> {
    let mut windows = BTreeSet::new();
    let close_jobs = waiting.iter().map_while(|job| match job {
        PaneJob::ClosePane { pane, owner, window, .. } => {
            Some(window.map(|window| PaneToKill { pane: *pane, tag: owner.clone(), window }))
        }
        _ => None,
    });
    let known_windows = close_jobs.enumerate().filter_map(|(index, pane)| Some((index, pane?)));
    known_windows.filter(|(_, pane)| windows.insert(pane.window)).take(MAX_BATCH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close_job(pane: u32, window: Option<u32>) -> PaneJob {
        let spawn = SpawnId::generate();
        let owner = spawn.pane_tag();
        let window = window.map(|window| format!("@{window}").parse().unwrap());
        PaneJob::ClosePane { spawn, pane: format!("%{pane}").parse().unwrap(), owner, window }
    }

    #[test]
    fn a_batch_has_one_pane_per_window_and_ends_at_another_kind_of_job() {
        let panes =
            [(1, Some(1)), (2, Some(1)), (3, None), (4, Some(2)), (5, Some(3)), (6, Some(4)), (7, Some(5))];
        let mut waiting: VecDeque<PaneJob> =
            panes.into_iter().map(|(pane, window)| close_job(pane, window)).collect();
        let positions = |waiting: &VecDeque<PaneJob>| {
            choose_close_batch(waiting).into_iter().map(|(index, _)| index).collect::<Vec<_>>()
        };
        assert_eq!(positions(&waiting), [0, 3, 4, 5]);
        waiting.insert(4, PaneJob::CheckHiddenPanes { panes: Vec::new() });
        assert_eq!(positions(&waiting), [0, 3]);
    }
}
