//! A receiver that keeps all items in a file, for tests and measurements.

use crate::event_and_effect::ReceivedPosition;
use crate::spool_file::OpenError;
use crate::spool_lines::{DamagedSpool, json_line};
use crate::trait_to_store_received_items::ItemReceiver;
use protocol::annex_link::LinkItem;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{AppendOnlyFile, Durability, StateDir};

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceivedLine {
    /// An item, which also is the new position.
    Item { epoch: u64, item: Arc<LinkItem> },
    /// A position without an item: a new epoch, or dropped items.
    Position(ReceivedPosition),
}

/// The contents of a log.
#[derive(Debug, Default)]
pub struct ReceivedItems {
    /// The items in the order of their arrival.
    pub items: Vec<Arc<LinkItem>>,
    /// The last position.
    pub position: ReceivedPosition,
}

impl ReceivedItems {
    /// Parses the complete lines of a log.
    ///
    /// # Errors
    /// [`DamagedSpool`] if a line is invalid.
    pub fn parse(lines: &[u8]) -> Result<ReceivedItems, DamagedSpool> {
        let mut received = ReceivedItems::default();
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (index, line) in lines.enumerate() {
            let line = serde_json::from_slice(line);
            received.add(line.map_err(|error| DamagedSpool::new(index + 1, &error))?);
        }
        Ok(received)
    }

    fn add(&mut self, line: ReceivedLine) {
        match line {
            ReceivedLine::Item { epoch, item } => {
                self.position = ReceivedPosition { epoch, number: item.number };
                self.items.push(item);
            }
            ReceivedLine::Position(position) => self.position = position,
        }
    }
}

/// The lines that record items and a position.
pub(crate) fn received_lines(items: &[Arc<LinkItem>], position: ReceivedPosition) -> Vec<u8> {
    let epoch = position.epoch;
    let item_lines = items.iter().map(|item| ReceivedLine::Item { epoch, item: Arc::clone(item) });
    let mut lines: Vec<u8> = item_lines.flat_map(|line| json_line(&line)).collect();
    if items.last().is_none_or(|item| item.number != position.number) {
        lines.extend(json_line(&ReceivedLine::Position(position)));
    }
    lines
}

/// An open log, which contains the received items with their numbers. A crash leaves at most one
/// incomplete line, which is removed at the next start. So the log always shows which item was
/// stored last.
#[derive(Debug)]
pub struct ReceivedLog {
    file: AppendOnlyFile,
    position: ReceivedPosition,
}

impl ReceivedLog {
    /// Opens the log `name` in `dir`, or creates an empty one.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: StateDir, name: &str, durability: Durability) -> Result<ReceivedLog, OpenError> {
        let (file, lines) = AppendOnlyFile::open(dir, name, durability)?;
        let position = ReceivedItems::parse(&lines)?.position;
        Ok(ReceivedLog { file, position })
    }
}

impl ItemReceiver for ReceivedLog {
    fn position(&self) -> ReceivedPosition {
        self.position
    }

    fn apply(&mut self, items: &[Arc<LinkItem>], position: ReceivedPosition) -> Result<(), String> {
        self.file.append(&received_lines(items, position)).map_err(|error| error.to_string())
    }
}
