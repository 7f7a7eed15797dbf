//! A cache for opening several panes of a team in a row. It has the panes of the team's current
//! tmux window, so that the daemon need not list them before each new pane. It also has the pane
//! that was created in advance for the next agent.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::jobs::pane_jobs::PaneSpec;
use crate::io::panes::window_space::window_with_space;
use protocol::team_and_member_names::TeamName;
use tmux::{CreatedPane, Error, PaneRow, PaneTag, WindowId};

/// Panes of one team that are opened one after another, without another job between them.
pub(crate) struct PaneOpeningCache {
    pub(super) team: TeamName,
    /// The window for the next pane, if it has space, and the panes in it.
    pub(super) window: Option<(WindowId, Vec<PaneRow>)>,
    /// Whether all other windows of the team were full when they were last listed.
    pub(super) others_are_full: bool,
    /// The result of creating the next agent's pane in advance.
    pub(super) next_pane: Option<(SpawnId, Result<CreatedPane, Error>)>,
}

impl PaneOpeningCache {
    /// The window for `next`, if it is known without listing the panes and has space.
    pub(super) fn window_for(&self, next: &PaneSpec) -> Option<WindowId> {
        window_with_space(&self.window.as_ref()?.1, &next.neighbors, next.layout)
    }

    /// Forgets the windows and their panes, but keeps the pane that was created in advance.
    pub(super) fn clear_rows(&mut self) {
        (self.window, self.others_are_full) = (None, false);
    }

    /// Adds the pane `created` to the cached list of the panes in its window. The list has one row
    /// for each pane. The new row is a copy of the first row, but with the id, pid and tag of the
    /// new pane.
    pub(super) fn add_pane(&mut self, created: &CreatedPane, owner: &PaneTag) {
        let owner = Some(owner.as_str().to_owned());
        match &mut self.window {
            _ if created.is_first_in_window => {
                self.window = Some((created.window, vec![only_row(created, owner)]));
            }
            Some((window, rows)) if *window == created.window => {
                let first = rows.first().cloned();
                let to_row =
                    |row| PaneRow { pane: created.pane, pid: created.pid, tag: owner, is_dead: false, ..row };
                rows.extend(first.map(to_row));
            }
            _ => {}
        }
    }
}

/// Returns the row of a pane that is alone in a new window.
pub(super) fn only_row(created: &CreatedPane, owner: Option<String>) -> PaneRow {
    let CreatedPane { pane, window, session, pid, width, height, .. } = *created;
    PaneRow {
        pane,
        window,
        session,
        pid,
        is_dead: false,
        tag: owner,
        is_zoomed: false,
        is_hidden: false,
        is_teamd_window: true,
        width,
        height,
        pane_width: width,
        pane_height: height,
    }
}
