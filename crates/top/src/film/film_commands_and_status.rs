//! What keys do with a film, and what the time line shows of it.

use super::film_marks::{FilmMark, JumpDirection, MarkKind};
use super::playback::Playback;
use std::sync::Arc;

/// What the time line of the screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilmStatus {
    pub(crate) playback: Playback,
    /// The time between the first and the last line, in milliseconds.
    pub(crate) length: u64,
    pub(crate) marks: Arc<Vec<FilmMark>>,
}

/// What a key does with a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilmCommand {
    TogglePause,
    Faster,
    Slower,
    /// Moves by this number of milliseconds.
    Skip(i64),
    /// Moves to a mark, and pauses there so that the person can read.
    Jump(MarkKind, JumpDirection),
    GoToStart,
    GoToEnd,
}

impl FilmStatus {
    /// Whether the last line of the record is shown.
    pub(crate) fn is_at_end(&self) -> bool {
        self.playback.position >= self.length
    }
}
