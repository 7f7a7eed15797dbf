//! Checks whether panes show a dialog. The screens stay in this thread; only the result leaves it.

use crate::core::id::SpawnId;
use crate::core::jobs::pane_jobs::DialogPane;
use crate::io::panes::thread::PaneManager;
use protocol::dialog_match;
use protocol::terminal_prompts::find_terminal_prompt;
use std::collections::BTreeMap;
use tmux::TaggedPane;

/// The question of the dialog on the screen, or else its first line. If there is no dialog, the
/// prompt of a common program such as git or ssh. `None` if there is neither.
fn dialog_text(screen: &str, patterns: &[String]) -> Option<String> {
    let Some(dialog) = dialog_match::find_dialog(screen, patterns) else {
        return find_terminal_prompt(screen);
    };
    let first_line = || dialog.lines().next().unwrap_or_default().to_owned();
    Some(dialog_match::dialog_question(screen, dialog).unwrap_or_else(first_line))
}

impl PaneManager {
    /// The dialog that each pane shows, as text. Panes whose screen could not be captured are left
    /// out.
    pub(super) fn find_dialogs(&mut self, panes: &[DialogPane]) -> BTreeMap<SpawnId, Option<String>> {
        let tagged = panes.iter().map(|pane| TaggedPane { pane: pane.pane, tag: pane.spawn.pane_tag() });
        let tagged: Vec<TaggedPane> = tagged.collect();
        let screens =
            self.connect().and_then(|server| server.capture_panes(&tagged)).unwrap_or_else(|error| {
                tracing::debug!("cannot check for dialogs: {error}");
                Vec::new()
            });
        let has_dialog = |(pane, screen): (&DialogPane, Option<String>)| {
            Some((pane.spawn.clone(), dialog_text(&screen?, &pane.patterns)))
        };
        panes.iter().zip(screens).filter_map(has_dialog).collect()
    }
}
