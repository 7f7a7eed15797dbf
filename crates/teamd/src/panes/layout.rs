//! The shape of the windows.

use super::room::{fits, windows_of};
use super::{Panes, fault};
use protocol::control::Layout;
use protocol::error::ErrorReport;
use tmux::{PaneTag, TmuxServer};

impl Panes {
    pub(super) fn lay_out(&mut self, owners: &[PaneTag], layout: Layout) -> Result<usize, ErrorReport> {
        let rows = self.server().and_then(TmuxServer::list_panes).map_err(fault)?;
        let windows = windows_of(&rows, owners);
        for window in &windows {
            fits(&rows, *window, layout)?;
            self.server().and_then(|server| server.apply_layout(*window, layout.as_str())).map_err(fault)?;
        }
        Ok(windows.len())
    }

    pub(super) fn tidy(&mut self) {
        for (window, layout) in std::mem::take(&mut self.untidy) {
            if let Err(error) = self.server().and_then(|server| server.apply_layout(window, layout.as_str()))
            {
                tracing::debug!("cannot lay out {window}: {error}");
            }
        }
    }
}
