//! Checks whether panes show a dialog. The screens stay in this thread; only the result leaves it.

use crate::core::id::SpawnId;
use crate::core::jobs::pane_jobs::DialogPane;
use crate::io::panes::thread::PaneManager;
use protocol::dialog_match;
use std::collections::BTreeMap;
use tmux::TaggedPane;

impl PaneManager {
    /// Whether each pane shows a dialog. Panes whose screen could not be captured are left out.
    pub(super) fn find_dialogs(&mut self, panes: &[DialogPane]) -> BTreeMap<SpawnId, bool> {
        let tagged = panes.iter().map(|pane| TaggedPane { pane: pane.pane, tag: pane.spawn.pane_tag() });
        let tagged: Vec<TaggedPane> = tagged.collect();
        let screens =
            self.connect().and_then(|server| server.capture_panes(&tagged)).unwrap_or_else(|error| {
                tracing::debug!("cannot check for dialogs: {error}");
                Vec::new()
            });
        let has_dialog = |(pane, screen): (&DialogPane, Option<String>)| {
            Some((pane.spawn.clone(), dialog_match::find_dialog(&screen?, &pane.patterns).is_some()))
        };
        panes.iter().zip(screens).filter_map(has_dialog).collect()
    }
}
