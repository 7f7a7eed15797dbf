//! Applies tmux layouts to the windows of a team.

use crate::io::panes::run_pane_jobs::{PaneManager, to_error};
use crate::io::panes::window_space::{check_fits, team_windows};
use protocol::control_socket::Layout;
use protocol::error_kind_and_report::ErrorReport;
use tmux::{PaneTag, TmuxServer};

impl PaneManager {
    /// Applies `layout` to all windows that have a pane with one of the pane tags `owners`. Returns
    /// the number of windows.
    ///
    /// # Errors
    ///
    /// If a window is too small to show its panes in this layout. Windows before that one have been
    /// changed already.
    pub(super) fn apply_layout(&mut self, owners: &[PaneTag], layout: Layout) -> Result<usize, ErrorReport> {
        let rows = self.connect().and_then(TmuxServer::list_panes).map_err(to_error)?;
        let windows = team_windows(&rows, owners);
        for window in &windows {
            check_fits(&rows, *window, layout)?;
            self.connect()
                .and_then(|server| server.apply_layout(*window, layout.as_str()))
                .map_err(to_error)?;
        }
        Ok(windows.len())
    }

    /// Lays out the windows whose panes have changed. Failures are only logged.
    pub(super) fn apply_pending_layouts(&mut self) {
        for (window, layout) in std::mem::take(&mut self.pending_layouts) {
            if let Err(error) = self.connect().and_then(|server| server.apply_layout(window, layout.as_str()))
            {
                tracing::debug!("cannot lay out {window}: {error}");
            }
        }
    }
}
