//! Which panes are closed in one round trip.

#[cfg(test)]
use crate::core::id::SpawnId;
use crate::core::jobs::panes::PaneJob;
use std::collections::{BTreeSet, VecDeque};
use tmux::{PaneId, PaneTag, WindowId};

/// So many at once: the first is not told before the last.
const MAX_BATCH: usize = 4;

/// Of the jobs at the head of the queue that close something, the first of each window, with its place.
pub(super) fn first_of_each_window(waiting: &VecDeque<PaneJob>) -> Vec<(usize, (PaneId, PaneTag, WindowId))> {
    let mut windows = BTreeSet::new();
    let closing = waiting.iter().map_while(|job| match job {
        PaneJob::ClosePane { pane, owner, window, .. } => {
            Some(window.map(|window| (*pane, owner.clone(), window)))
        }
        _ => None,
    });
    let known = closing.enumerate().filter_map(|(at, pane)| Some((at, pane?)));
    known.filter(|(_, (.., window))| windows.insert(*window)).take(MAX_BATCH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(pane: u32, window: Option<u32>) -> PaneJob {
        let spawn = SpawnId::generate();
        let owner = spawn.pane_tag();
        let window = window.map(|window| format!("@{window}").parse().unwrap());
        PaneJob::ClosePane { spawn, pane: format!("%{pane}").parse().unwrap(), owner, window }
    }

    #[test]
    fn no_two_are_of_one_window_and_none_overtakes_a_job_of_another_kind() {
        let ends =
            [(1, Some(1)), (2, Some(1)), (3, None), (4, Some(2)), (5, Some(3)), (6, Some(4)), (7, Some(5))];
        let mut waiting: VecDeque<PaneJob> =
            ends.into_iter().map(|(pane, window)| close(pane, window)).collect();
        let places = |waiting: &VecDeque<PaneJob>| {
            first_of_each_window(waiting).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(places(&waiting), [0, 3, 4, 5]);
        waiting.insert(4, PaneJob::CheckHiddenPanes { panes: Vec::new() });
        assert_eq!(places(&waiting), [0, 3]);
    }
}
