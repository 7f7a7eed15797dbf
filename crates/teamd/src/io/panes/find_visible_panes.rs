//! Finds which panes of a list are visible.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use tmux::{PaneId, PaneRow, PaneTag};

/// The spawns of those `panes` that still have their tag and are not hidden.
pub(crate) fn find_visible_panes(rows: &[PaneRow], panes: Vec<(SpawnId, PaneId, PaneTag)>) -> Vec<SpawnId> {
    let is_visible = |pane: &PaneId, owner: &PaneTag| {
        let row = rows.iter().find(|row| row.pane == *pane);
        row.is_some_and(|row| !row.is_hidden && row.tag.as_deref() == Some(owner.as_str()))
    };
    panes.into_iter().filter(|(_, pane, owner)| is_visible(pane, owner)).map(|(spawn, ..)| spawn).collect()
}
