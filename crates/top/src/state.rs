//! What is on the screen, and what the next key means.

use crate::event::Told;
use crate::manner::Manner;
use crate::page;
use crate::sight::{Item, Part, Sight};
use protocol::name::TeamName;
use std::sync::Arc;
use view::suggested_commands::SuggestedCommands;

/// The whole of it; one loop owns it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) team: TeamName,
    /// How a command about the team is typed.
    pub(crate) typed: SuggestedCommands,
    pub(crate) manner: Manner,
    /// What was seen last.
    pub(crate) sight: Arc<Sight>,
    /// Columns and lines of the terminal.
    pub(crate) size: (u16, u16),
    pub(crate) part: Part,
    /// What is chosen in each part, and where it was; none: the first one, of messages the last one.
    chosen: [Option<(String, usize)>; 4],
    /// What is shown must have this in it, in any case.
    pub(crate) filter: String,
    pub(crate) view: View,
    pub(crate) line: Line,
    /// The sentence at the bottom.
    pub(crate) told: Option<Told>,
}

/// What fills the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// The four parts.
    Lists,
    /// One thing, whole.
    Whole(Whole),
    Help,
}

/// One thing, as it was when it was opened or has become since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) part: Part,
    pub(crate) key: String,
    pub(crate) text: String,
    /// Of a member why it is not moving, once that is known.
    pub(crate) why: String,
    /// Of a member what its pane shows, once that is known.
    pub(crate) screen: String,
    /// Whose it is.
    pub(crate) whose: Option<String>,
    /// The first of its lines that is shown.
    pub(crate) top: usize,
    pub(crate) read: Read,
}

/// How much of it was on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// So many lines, from the first on.
    To(usize),
    ToItsEnd,
}

/// What the last line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// It says the keys.
    Keys,
    /// Something is typed.
    Prompt(Prompt),
    /// The kill of that member, which one more key does.
    Sure(String),
}

/// Something that is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) what: Asks,
    pub(crate) text: String,
}

/// What it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A message to that member.
    Send(String),
    /// Why that member is asked to end.
    Shutdown(String),
    /// Why that request has a no.
    Deny(String),
    Filter,
}

impl State {
    /// Nothing seen yet.
    pub(crate) fn new(team: TeamName, typed: SuggestedCommands, manner: Manner, size: (u16, u16)) -> State {
        State {
            team,
            typed,
            manner,
            sight: Arc::default(),
            size,
            part: Part::Members,
            chosen: [None, None, None, None],
            filter: String::new(),
            view: View::Lists,
            line: Line::Keys,
            told: None,
        }
    }

    /// What of a part the filter lets through.
    pub(crate) fn items(&self, part: Part) -> Vec<&dyn Item> {
        let wanted = self.filter.to_lowercase();
        let mut items = self.sight.items(part);
        items.retain(|item| wanted.is_empty() || item.words().to_lowercase().contains(&wanted));
        items
    }

    /// Which of them is chosen; one that is gone is followed by what stands in its place.
    pub(crate) fn at(&self, part: Part) -> Option<usize> {
        let items = self.items(part);
        let last = items.len().checked_sub(1)?;
        Some(match &self.chosen[part as usize] {
            Some((key, at)) => items.iter().position(|item| item.key() == *key).unwrap_or((*at).min(last)),
            None if part == Part::Messages => last,
            None => 0,
        })
    }

    /// The chosen one of the part that has the keys.
    pub(crate) fn item(&self) -> Option<&dyn Item> {
        self.at(self.part).map(|at| self.items(self.part)[at])
    }

    /// Chooses; of messages the last one is whichever comes last.
    pub(crate) fn choose(&mut self, at: usize) {
        let items = self.items(self.part);
        let last = items.len().saturating_sub(1);
        let at = at.min(last);
        let follows = self.part == Part::Messages && at == last;
        let chosen = items.get(at).map(|item| (item.key(), at)).filter(|_| !follows);
        self.chosen[self.part as usize] = chosen;
    }

    /// Notes where the chosen things are now, for when they go: also those that nobody has chosen yet, since they are shown
    /// as chosen. Only the stream of messages is followed until somebody does.
    pub(crate) fn settle(&mut self) {
        for part in Part::ALL {
            let chosen = self.at(part).map(|at| (self.items(part)[at].key(), at));
            let follows = part == Part::Messages && self.chosen[part as usize].is_none();
            if let Some(chosen) = chosen.filter(|_| !follows) {
                self.chosen[part as usize] = Some(chosen);
            }
        }
    }

    /// Whose the chosen thing is, or the one that is shown whole.
    pub(crate) fn whose(&self) -> Option<String> {
        match &self.view {
            View::Whole(whole) => whole.whose.clone(),
            _ => self.item()?.whose().map(str::to_owned),
        }
    }

    /// How far a page has been on the screen once this is drawn.
    pub(crate) fn read(&self, whole: &Whole) -> Read {
        page::read(whole, self.told.as_ref().map(|told| told.text.as_str()), self.size, self.manner)
    }

    /// It was drawn: what has been on the screen has been read.
    pub(crate) fn drawn(&mut self) {
        let View::Whole(whole) = &self.view else { return };
        let read = self.read(whole);
        if let View::Whole(whole) = &mut self.view {
            whole.read = read;
        }
    }
}
