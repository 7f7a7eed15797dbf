//! What is on the screen, and what the next key means.

use crate::event::ActionResult;
use crate::page_layout;
use crate::snapshot::{ListItem, Panel, ScreenSnapshot};
use crate::terminal_capabilities::TerminalCapabilities;
use client::suggested_commands::SuggestedCommands;
use protocol::name::TeamName;
use std::sync::Arc;

/// The whole of it; one loop owns it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UiState {
    pub(crate) team: TeamName,
    /// How a command about the team is typed.
    pub(crate) suggested_commands: SuggestedCommands,
    pub(crate) capabilities: TerminalCapabilities,
    /// What was seen last.
    pub(crate) snapshot: Arc<ScreenSnapshot>,
    /// Columns and lines of the terminal.
    pub(crate) size: (u16, u16),
    pub(crate) panel: Panel,
    /// What is chosen in each part, and where it was; none: the first one, of messages the last one.
    selected: [Option<(String, usize)>; 4],
    /// What is shown must have this in it, in any case.
    pub(crate) filter: String,
    pub(crate) view: ActiveView,
    pub(crate) bottom_line: BottomLine,
    /// The sentence at the bottom.
    pub(crate) result: Option<ActionResult>,
}

/// What fills the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActiveView {
    /// The four parts.
    Lists,
    /// One thing, whole.
    Details(DetailPage),
    Help,
}

/// One thing, as it was when it was opened or has become since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetailPage {
    pub(crate) part: Panel,
    pub(crate) key: String,
    pub(crate) text: String,
    /// Of a member why it is not moving, once that is known.
    pub(crate) diagnosis: String,
    /// Of a member what its pane shows, once that is known.
    pub(crate) pane_screen: String,
    /// Whose it is.
    pub(crate) member: Option<String>,
    /// The first of its lines that is shown.
    pub(crate) first_line: usize,
    pub(crate) progress: ReadProgress,
}

/// How much of it was on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadProgress {
    /// So many lines, from the first on.
    UpToLine(usize),
    Complete,
}

/// What the last line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BottomLine {
    /// It says the keys.
    KeyHelp,
    /// Something is typed.
    Prompt(InputPrompt),
    /// The kill of that member, which one more key does.
    ConfirmKill(String),
}

/// Something that is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputPrompt {
    pub(crate) purpose: PromptPurpose,
    pub(crate) text: String,
}

/// What it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptPurpose {
    /// A message to that member.
    Message(String),
    /// Why that member is asked to end.
    ShutdownReason(String),
    /// Why that request has a no.
    DenyReason(String),
    Filter,
}

impl UiState {
    /// Nothing seen yet.
    pub(crate) fn new(
        team: TeamName,
        typed: SuggestedCommands,
        manner: TerminalCapabilities,
        size: (u16, u16),
    ) -> UiState {
        UiState {
            team,
            suggested_commands: typed,
            capabilities: manner,
            snapshot: Arc::default(),
            size,
            panel: Panel::Members,
            selected: [None, None, None, None],
            filter: String::new(),
            view: ActiveView::Lists,
            bottom_line: BottomLine::KeyHelp,
            result: None,
        }
    }

    /// What of a part the filter lets through.
    pub(crate) fn items(&self, part: Panel) -> Vec<&dyn ListItem> {
        let wanted = self.filter.to_lowercase();
        let mut items = self.snapshot.items(part);
        items.retain(|item| wanted.is_empty() || item.filter_text().to_lowercase().contains(&wanted));
        items
    }

    /// Which of them is chosen; one that is gone is followed by what stands in its place.
    pub(crate) fn selected_index(&self, part: Panel) -> Option<usize> {
        let items = self.items(part);
        let last = items.len().checked_sub(1)?;
        Some(match &self.selected[part as usize] {
            Some((key, at)) => items.iter().position(|item| item.key() == *key).unwrap_or((*at).min(last)),
            None if part == Panel::Messages => last,
            None => 0,
        })
    }

    /// The chosen one of the part that has the keys.
    pub(crate) fn selected_item(&self) -> Option<&dyn ListItem> {
        self.selected_index(self.panel).map(|at| self.items(self.panel)[at])
    }

    /// Chooses; of messages the last one is whichever comes last.
    pub(crate) fn select(&mut self, at: usize) {
        let items = self.items(self.panel);
        let last = items.len().saturating_sub(1);
        let at = at.min(last);
        let follows = self.panel == Panel::Messages && at == last;
        let chosen = items.get(at).map(|item| (item.key(), at)).filter(|_| !follows);
        self.selected[self.panel as usize] = chosen;
    }

    /// Notes where the chosen things are now, for when they go: also those that nobody has chosen yet, since they are shown
    /// as chosen. Only the stream of messages is followed until somebody does.
    pub(crate) fn pin_selection(&mut self) {
        for part in Panel::ALL {
            let chosen = self.selected_index(part).map(|at| (self.items(part)[at].key(), at));
            let follows = part == Panel::Messages && self.selected[part as usize].is_none();
            if let Some(chosen) = chosen.filter(|_| !follows) {
                self.selected[part as usize] = Some(chosen);
            }
        }
    }

    /// Whose the chosen thing is, or the one that is shown whole.
    pub(crate) fn selected_member(&self) -> Option<String> {
        match &self.view {
            ActiveView::Details(whole) => whole.member.clone(),
            _ => self.selected_item()?.member_name().map(str::to_owned),
        }
    }

    /// How far a page has been on the screen once this is drawn.
    pub(crate) fn progress_after_draw(&self, whole: &DetailPage) -> ReadProgress {
        page_layout::read_progress(
            whole,
            self.result.as_ref().map(|told| told.text.as_str()),
            self.size,
            self.capabilities,
        )
    }

    /// It was drawn: what has been on the screen has been read.
    pub(crate) fn mark_drawn(&mut self) {
        let ActiveView::Details(whole) = &self.view else { return };
        let read = self.progress_after_draw(whole);
        if let ActiveView::Details(whole) = &mut self.view {
            whole.progress = read;
        }
    }
}
