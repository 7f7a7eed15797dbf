//! Panes opened one after another: what of tmux is known between two of them.

use crate::core::id::SpawnId;
use crate::core::jobs::panes::PaneSpec;
use crate::io::panes::window_space::window_with_space;
use protocol::name::TeamName;
use tmux::{CreatedPane, Error, PaneRow, PaneTag, WindowId};

/// Panes of one team that are opened at once behind one another, and what is known of its windows from the last.
pub(crate) struct OpenBatch {
    pub(super) team: TeamName,
    /// The window that the next one goes to if it has room, with the panes in it.
    pub(super) window: Option<(WindowId, Vec<PaneRow>)>,
    /// Nor had any other window of the team room when all were looked at.
    pub(super) others_are_full: bool,
    /// The pane of the one that comes next.
    pub(super) next_pane: Option<(SpawnId, Result<CreatedPane, Error>)>,
}

impl OpenBatch {
    /// The window that it goes to, as far as that is known without a look.
    pub(super) fn window_for(&self, next: &PaneSpec) -> Option<WindowId> {
        window_with_space(&self.window.as_ref()?.1, &next.neighbors, next.layout)
    }

    /// What the windows are like, but not what is made.
    pub(super) fn clear_rows(&mut self) {
        (self.window, self.others_are_full) = (None, false);
    }

    /// The one that was just made: where it is beside those that are known, it is as they are.
    pub(super) fn add_pane(&mut self, created: &CreatedPane, owner: &PaneTag) {
        let owner = Some(owner.as_str().to_owned());
        match &mut self.window {
            _ if created.is_first_in_window => {
                self.window = Some((created.window, vec![only_row(created, owner)]));
            }
            Some((window, rows)) if *window == created.window => {
                let beside = rows.first().cloned();
                let row =
                    |it| PaneRow { pane: created.pane, pid: created.pid, tag: owner, is_dead: false, ..it };
                rows.extend(beside.map(row));
            }
            _ => {}
        }
    }
}

/// The row of a pane that is alone in a new window of teamd.
pub(super) fn only_row(created: &CreatedPane, owner: Option<String>) -> PaneRow {
    let CreatedPane { pane, window, session, pid, size: (width, height), .. } = *created;
    let (dead, zoomed, hidden, home) = (false, false, false, true);
    PaneRow {
        pane,
        window,
        session,
        pid,
        is_dead: dead,
        tag: owner,
        is_zoomed: zoomed,
        is_hidden: hidden,
        is_teamd_window: home,
        width,
        height,
    }
}
