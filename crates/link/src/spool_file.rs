//! The spool: a file with the items of this end that are not acknowledged.

use crate::spool_lines::{DamagedSpool, SpoolContents, SpoolWrite, item_lines};
use store::{AppendOnlyFile, Durability, Error, StateDir};

/// Why a spool or a log of received items can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file can't be read or created.
    #[error(transparent)]
    Store(#[from] Error),
    /// The file is damaged.
    #[error(transparent)]
    Damaged(#[from] DamagedSpool),
}

/// An open spool file. Only one process may open it, so the daemon holds its own lock.
#[derive(Debug)]
pub struct SpoolFile(AppendOnlyFile);

impl SpoolFile {
    /// Opens the spool `name` in `dir`, or creates an empty one. An incomplete last line, which a
    /// crash has left, is removed: its item was never sent and never reported as accepted.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        dir: StateDir,
        name: &str,
        durability: Durability,
    ) -> Result<(SpoolFile, SpoolContents), OpenError> {
        let (mut file, lines) = AppendOnlyFile::open(dir, name, durability)?;
        let contents = SpoolContents::parse(&lines)?;
        if lines.is_empty() {
            file.replace(&contents.to_lines())?;
        }
        Ok((SpoolFile(file), contents))
    }

    /// Appends items to the spool, or replaces its contents.
    ///
    /// # Errors
    /// `Io`, for example if the disk is full. The write can be repeated.
    pub fn write(&mut self, write: &SpoolWrite) -> Result<(), Error> {
        match write {
            SpoolWrite::Append(items) => self.0.append(&item_lines(items)),
            SpoolWrite::Replace(contents) => self.0.replace(&contents.to_lines()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_items::message;
    use std::sync::Arc;

    fn open(dir: &tempfile::TempDir) -> Result<(SpoolFile, SpoolContents), OpenError> {
        SpoolFile::open(StateDir::open(&dir.path().join("s")).unwrap(), "spool", Durability::Process)
    }

    fn numbers(contents: &SpoolContents) -> (u64, Vec<u64>) {
        (contents.acknowledged, contents.items.iter().map(|item| item.number).collect())
    }

    #[test]
    fn items_and_numbers_survive() {
        let dir = tempfile::tempdir().unwrap();
        let items: Vec<_> = (1..=3).map(|number| message(number).with_number(number).0).collect();
        let (mut spool, contents) = open(&dir).unwrap();
        assert_eq!(numbers(&contents), (0, vec![]));
        spool.write(&SpoolWrite::Append(items.clone())).unwrap();
        assert_eq!(numbers(&open(&dir).unwrap().1), (0, vec![1, 2, 3]));
        let rest = SpoolContents { acknowledged: 2, items: vec![Arc::clone(&items[2])] };
        spool.write(&SpoolWrite::Replace(rest)).unwrap();
        assert_eq!(numbers(&open(&dir).unwrap().1), (2, vec![3]));
        spool.write(&SpoolWrite::Replace(SpoolContents { acknowledged: 3, items: vec![] })).unwrap();
        assert_eq!(numbers(&open(&dir).unwrap().1), (3, vec![]));
    }

    #[test]
    fn damaged_spool_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let (mut spool, _) = open(&dir).unwrap();
        spool.write(&SpoolWrite::Append(vec![message(9).with_number(9).0])).unwrap();
        let error = open(&dir).unwrap_err().to_string();
        assert_eq!(error, "cannot read line 2 of the spool: it has number 9, and 1 is expected");
    }
}
