//! The state of the screen: what it shows, and what the next key acts on.

use crate::film::film_commands_and_status::FilmStatus;
use crate::team_snapshot_for_screen::{ListItem, Panel, ScreenSnapshot};
use crate::terminal_capabilities::TerminalCapabilities;
use crate::ui_events_and_effects::{ActionResult, MemberOutput, MouseMode, UiEffect};
use client::suggested_commands::SuggestedCommands;
use protocol::team_and_member_names::TeamName;
use std::sync::Arc;

/// The state of the screen, owned by the event loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UiState {
    pub(crate) team: TeamName,
    /// How a person types a command about the team.
    pub(crate) suggested_commands: SuggestedCommands,
    pub(crate) capabilities: TerminalCapabilities,
    /// The newest snapshot.
    pub(crate) snapshot: Arc<ScreenSnapshot>,
    /// The film that is shown. `None` for a running team.
    pub(crate) film: Option<FilmStatus>,
    /// The size of the terminal, in columns and lines.
    pub(crate) size: (u16, u16),
    /// The active panel.
    pub(crate) panel: Panel,
    /// The selected item of each panel. In the message panel `None` selects the last message, in
    /// the other panels the first item.
    selected: [Option<Selection>; 4],
    /// The filter: only items that contain this text are listed, whatever the case of the letters.
    /// An empty filter lists all items.
    pub(crate) filter: String,
    /// The text that was searched last.
    pub(crate) search: String,
    pub(crate) mouse: MouseMode,
    pub(crate) view: ActiveView,
    /// The page of the selected item, or of the item that the keys act on.
    pub(crate) page: Option<DetailPage>,
    pub(crate) bottom_line: BottomLine,
    /// The result of the last action. It is shown until the next key.
    pub(crate) result: Option<ActionResult>,
}

/// The selected item of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Selection {
    key: String,
    /// The item's index. If the item is removed, the item that is then at this index is selected.
    index: usize,
}

/// What the keys act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActiveView {
    /// The four panels.
    Lists,
    /// The page of an item.
    Details,
    Help,
}

/// The page of one item. Its text follows the item as long as the item exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetailPage {
    /// The panel of the item.
    pub(crate) panel: Panel,
    /// The item's [`ListItem::key`].
    pub(crate) key: String,
    pub(crate) text: String,
    /// For a member: why it makes no progress. Empty until that is known.
    pub(crate) diagnosis: String,
    /// For a member: its output. `None` until that is known.
    pub(crate) output: Option<MemberOutput>,
    /// The member that the keys act on.
    pub(crate) member: Option<String>,
    /// The index of the first line on the screen.
    pub(crate) first_line: usize,
    pub(crate) progress: ReadProgress,
}

/// How much of a page was on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadProgress {
    /// The first lines of the page were on the screen; this is their number.
    UpToLine(usize),
    Complete,
}

/// What the bottom line of the screen is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BottomLine {
    /// It lists the keys.
    KeyHelp,
    /// A person types a text.
    Prompt(InputPrompt),
    /// It asks for the key that confirms the kill of this member.
    ConfirmKill(String),
}

/// A text that a person types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputPrompt {
    pub(crate) purpose: PromptPurpose,
    pub(crate) text: String,
}

/// What a typed text is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptPurpose {
    /// A message to this member.
    Message(String),
    /// Why this member is asked to shut down.
    ShutdownReason(String),
    /// Why the request with this id is denied.
    DenyReason(String),
    Filter,
    Search,
}

impl UiState {
    /// The state before the first snapshot.
    pub(crate) fn new(
        team: TeamName,
        suggested_commands: SuggestedCommands,
        capabilities: TerminalCapabilities,
        size: (u16, u16),
    ) -> UiState {
        UiState {
            team,
            suggested_commands,
            capabilities,
            snapshot: Arc::default(),
            film: None,
            size,
            panel: Panel::Members,
            selected: [None, None, None, None],
            filter: String::new(),
            search: String::new(),
            mouse: MouseMode::On,
            view: ActiveView::Lists,
            page: None,
            bottom_line: BottomLine::KeyHelp,
            result: None,
        }
    }

    /// The items of a panel that match the filter.
    pub(crate) fn items(&self, panel: Panel) -> Vec<&dyn ListItem> {
        let filter = self.filter.to_lowercase();
        let mut items = self.snapshot.items(panel);
        items.retain(|item| filter.is_empty() || item.filter_text().to_lowercase().contains(&filter));
        items
    }

    /// The index of the selected item of a panel. If the selected item was removed, the item that
    /// has taken its place is selected, or the last item. `None` if the list is empty.
    pub(crate) fn selected_index(&self, panel: Panel) -> Option<usize> {
        let items = self.items(panel);
        let last = items.len().checked_sub(1)?;
        Some(match &self.selected[panel as usize] {
            Some(Selection { key, index }) => {
                items.iter().position(|item| item.key() == *key).unwrap_or((*index).min(last))
            }
            None if panel == Panel::Messages => last,
            None => 0,
        })
    }

    /// The selected item of the active panel.
    pub(crate) fn selected_item(&self) -> Option<&dyn ListItem> {
        self.selected_index(self.panel).map(|at| self.items(self.panel)[at])
    }

    /// Selects the item with the index `at` in the active panel. If this is the last message, the
    /// selection follows the list: each new message becomes the selected one.
    pub(crate) fn select(&mut self, at: usize) {
        let items = self.items(self.panel);
        let last = items.len().saturating_sub(1);
        let index = at.min(last);
        let follows = self.panel == Panel::Messages && index == last;
        let selected = items.get(index).map(|item| Selection { key: item.key(), index });
        let selected = selected.filter(|_| !follows);
        self.selected[self.panel as usize] = selected;
    }

    /// Stores the identity and the index of the selected item of each panel, so that the selection
    /// stays on this item when other items are added or removed. In a panel where the user has
    /// selected nothing, the first item is stored, because the screen shows that item as selected.
    ///
    /// The message panel is an exception: nothing is stored until the user selects a message. Until
    /// then the newest message is the selected one.
    pub(crate) fn pin_selection(&mut self) {
        for panel in Panel::ALL {
            let follows = panel == Panel::Messages && self.selected[panel as usize].is_none();
            if let Some(index) = self.selected_index(panel).filter(|_| !follows) {
                let key = self.items(panel)[index].key();
                self.selected[panel as usize] = Some(Selection { key, index });
            }
        }
    }

    /// The member that the keys act on: that of the open page or of the selected item.
    pub(crate) fn selected_member(&self) -> Option<String> {
        match self.view {
            ActiveView::Details => self.page.as_ref()?.member.clone(),
            _ => self.selected_item()?.member_name().map(str::to_owned),
        }
    }

    /// Asks for a text.
    pub(crate) fn start_prompt(&mut self, purpose: PromptPurpose) {
        let text = if purpose == PromptPurpose::Filter { self.filter.clone() } else { String::new() };
        self.bottom_line = BottomLine::Prompt(InputPrompt { purpose, text });
    }

    /// Shows why a key does nothing. Returns no effects.
    pub(crate) fn refuse(&mut self, reason: &str) -> Vec<UiEffect> {
        self.result = Some(ActionResult::failure(reason));
        Vec::new()
    }
}
