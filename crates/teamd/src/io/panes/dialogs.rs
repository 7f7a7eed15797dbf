//! Looking for dialogs: the screens leave this thread as a yes or a no.

use crate::core::id::SpawnId;
use crate::core::jobs::panes::DialogPane;
use crate::io::panes::manager::PaneManager;
use protocol::dialog_match;
use std::collections::BTreeMap;
use tmux::{PaneId, PaneTag};

impl PaneManager {
    /// Who could not be looked at is left out.
    pub(super) fn find_dialogs(&mut self, panes: &[DialogPane]) -> BTreeMap<SpawnId, bool> {
        let ours: Vec<(PaneId, PaneTag)> = panes.iter().map(|it| (it.pane, it.spawn.pane_tag())).collect();
        let screens = self.connect().and_then(|server| server.capture_panes(&ours)).unwrap_or_else(|error| {
            tracing::debug!("cannot look for dialogs: {error}");
            Vec::new()
        });
        let open = |(pane, screen): (&DialogPane, Option<String>)| {
            Some((pane.spawn.clone(), dialog_match::find_dialog(&screen?, &pane.patterns).is_some()))
        };
        panes.iter().zip(screens).filter_map(open).collect()
    }
}
