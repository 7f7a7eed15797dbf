//! The text of the spool file: JSON lines. The first line has the number of the last acknowledged
//! item that was removed. So the next item gets the right number, even if the spool has no items.
//! Each other line is an item.

use protocol::annex_link::LinkItem;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A write to the spool.
#[derive(Debug, Clone)]
pub enum SpoolWrite {
    /// Append these items.
    Append(Vec<Arc<LinkItem>>),
    /// Replace the file in one step, so that it has only the items that are not acknowledged.
    Replace(SpoolContents),
}

/// The items that are not acknowledged.
#[derive(Debug, Clone, Default)]
pub struct SpoolContents {
    /// Sequence number of the last item that was removed. The first item has the next number.
    pub acknowledged: u64,
    /// The items in order.
    pub items: Vec<Arc<LinkItem>>,
}

/// The spool is damaged. Nothing is sent then, because items could be lost or have wrong numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read line {line} of the spool: {reason}")]
pub struct DamagedSpool {
    line: usize,
    reason: String,
}

impl DamagedSpool {
    pub(crate) fn new(line: usize, reason: &impl ToString) -> DamagedSpool {
        DamagedSpool { line, reason: reason.to_string() }
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct SpoolHeader {
    acknowledged: u64,
}

impl SpoolContents {
    /// Parses the complete lines of a spool file. The result for an empty file is a new spool
    /// without items.
    ///
    /// # Errors
    /// [`DamagedSpool`] if a line is invalid, or the numbers are not consecutive.
    pub fn parse(lines: &[u8]) -> Result<SpoolContents, DamagedSpool> {
        let mut contents = SpoolContents::default();
        let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (index, line) in lines.enumerate() {
            let added = contents.add_line(index, line);
            added.map_err(|reason| DamagedSpool::new(index + 1, &reason))?;
        }
        Ok(contents)
    }

    fn add_line(&mut self, index: usize, line: &[u8]) -> Result<(), String> {
        if index == 0 {
            let header: SpoolHeader = serde_json::from_slice(line).map_err(|error| error.to_string())?;
            self.acknowledged = header.acknowledged;
            return Ok(());
        }
        let item: LinkItem = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let expected = self.last_number() + 1;
        if item.number != expected {
            return Err(format!("it has number {}, and {expected} is expected", item.number));
        }
        self.items.push(Arc::new(item));
        Ok(())
    }

    /// Sequence number of the last item that was ever in the spool.
    pub fn last_number(&self) -> u64 {
        self.acknowledged + self.items.len() as u64
    }

    /// The whole text of a file with these contents.
    pub(crate) fn to_lines(&self) -> Vec<u8> {
        let mut lines = json_line(&SpoolHeader { acknowledged: self.acknowledged });
        lines.extend(item_lines(&self.items));
        lines
    }
}

/// The lines of items.
pub(crate) fn item_lines(items: &[Arc<LinkItem>]) -> Vec<u8> {
    let mut lines = Vec::new();
    items.iter().for_each(|item| write_json_line(&mut lines, item));
    lines
}

/// A value as a line of JSON.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut line = Vec::new();
    write_json_line(&mut line, value);
    line
}

fn write_json_line<T: Serialize>(lines: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(&mut *lines, value).expect("the value has string keys and no failing impl");
    lines.push(b'\n');
}
