//! Texts of single cells of the member table and of the notes.

use client::short_duration::short_duration;
use protocol::control_socket::Activity;
use store::now;

/// The maximum length of a text in the table or the notes, in characters. Longer texts are cut.
const CELL_WIDTH: usize = 40;

pub(super) fn dash() -> String {
    "-".to_owned()
}

pub(super) fn activity_name(activity: Activity) -> String {
    match activity {
        Activity::Active => "active".to_owned(),
        Activity::Idle => "idle".to_owned(),
    }
}

/// The time since `since`, which is in ms since the epoch.
pub(super) fn age(since: u64) -> String {
    short_duration(now().saturating_sub(since))
}

/// The first line of the text, cut to [`CELL_WIDTH`].
pub(super) fn clip_cell(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace('\t', " ");
    match line.char_indices().nth(CELL_WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
