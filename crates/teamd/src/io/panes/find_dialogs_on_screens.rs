//! Captures the screens of panes and finds the dialogs on them. Only the dialogs are sent to the
//! event loop, not the screens.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::jobs::pane_jobs::DialogPane;
use crate::core::state::agent::ScreenDialog;
use crate::io::panes::run_pane_jobs::PaneManager;
use protocol::find_git_ssh_or_sudo_prompt_on_screen::find_terminal_prompt;
use protocol::match_dialog_on_screen;
use std::collections::BTreeMap;
use tmux::TaggedPane;

/// Returns the dialog on the screen of a pane, or `None` if there is no dialog. If the dialog is
/// about a usage limit, the result contains that limit.
fn screen_dialog(screen: &str, pane: &DialogPane) -> Option<ScreenDialog> {
    let text = dialog_text(screen, &pane.patterns)?;
    Some(ScreenDialog { text, limit: store::read_usage_limit(screen, &pane.limit_patterns) })
}

/// Returns what a program asks on its screen: the question of a dialog, or the dialog's first line
/// if no question is found. If there is no dialog, returns the prompt of a common program such as
/// git or ssh, or `None` if there is no prompt either.
fn dialog_text(screen: &str, patterns: &[String]) -> Option<String> {
    let Some(dialog) = match_dialog_on_screen::find_dialog(screen, patterns) else {
        return find_terminal_prompt(screen);
    };
    let first_line = || dialog.lines().next().unwrap_or_default().to_owned();
    Some(match_dialog_on_screen::dialog_question(screen, dialog).unwrap_or_else(first_line))
}

impl PaneManager {
    /// Returns for each pane the dialog that it shows, or `None` if it shows none. Panes whose
    /// screen could not be captured are left out.
    pub(super) fn find_dialogs(&mut self, panes: &[DialogPane]) -> BTreeMap<SpawnId, Option<ScreenDialog>> {
        let tagged = panes.iter().map(|pane| TaggedPane { pane: pane.pane, tag: pane.spawn.pane_tag() });
        let tagged: Vec<TaggedPane> = tagged.collect();
        let screens =
            self.connect().and_then(|server| server.capture_panes(&tagged)).unwrap_or_else(|error| {
                tracing::debug!("cannot check for dialogs: {error}");
                Vec::new()
            });
        let has_dialog = |(pane, screen): (&DialogPane, Option<String>)| {
            Some((pane.spawn.clone(), screen_dialog(&screen?, pane)))
        };
        panes.iter().zip(screens).filter_map(has_dialog).collect()
    }
}
