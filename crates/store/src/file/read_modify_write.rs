//! Changing a file that others change too: prepare, lock, still the same?, rename, unlock; else start over.

use super::io_context::IoContext;
use super::known_file::KnownFile;
use super::shape::JsonShape;
use super::snapshot::{FileSnapshot, HALF_WRITTEN_TIMEOUT, check_size, is_unchanged, read_and_parse};
use super::temp_file::{TempFile, sync_dir};
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::lock::Lock;
use protocol::json;

/// How often a change is built before the lock is taken; then it is built under the lock.
pub(crate) const UNLOCKED_ATTEMPTS: usize = 3;
/// How often in all: beyond it others must be rewriting the file without the lock, without end.
pub(crate) const MAX_ATTEMPTS: usize = 40;

/// A new state of a file, prepared and not yet in place.
#[derive(Debug)]
pub(crate) struct PreparedChange<'d> {
    dir: &'d DirHandle,
    name: String,
    before: Option<FileSnapshot>,
    /// None removes the file.
    after: Option<TempFile<'d>>,
}

impl<'d> PreparedChange<'d> {
    /// Prepares the replacement of what `before` says by `text`.
    pub(crate) fn prepare(
        way: &IoContext,
        dir: &'d DirHandle,
        name: &str,
        before: Option<FileSnapshot>,
        text: &str,
        shape: JsonShape,
    ) -> Result<PreparedChange<'d>, Error> {
        check_size(dir, name, text.len() as u64, shape.limit())?;
        if let Some(before) = &before {
            before.check_replaceable(dir, name)?;
        }
        let mode = before.as_ref().map_or(0o600, FileSnapshot::mode);
        let after = TempFile::write(dir, name, text.as_bytes(), mode, way.durability)?;
        Ok(PreparedChange { dir, name: name.to_owned(), before, after: Some(after) })
    }

    /// Prepares the removal of what `before` says.
    pub(crate) fn prepare_removal(
        dir: &'d DirHandle,
        name: &str,
        before: FileSnapshot,
    ) -> PreparedChange<'d> {
        PreparedChange { dir, name: name.to_owned(), before: Some(before), after: None }
    }

    /// Puts it in place if the file is unchanged and `lock` still ours; false if not.
    pub(crate) fn commit(self, lock: &Lock) -> Result<bool, Error> {
        Ok(self.put_if_unchanged(lock)?.is_some())
    }

    /// As `Change::commit`, with what is there then, unless it was a removal.
    fn put_if_unchanged(self, lock: &Lock) -> Result<Option<Option<KnownFile>>, Error> {
        if !is_unchanged(self.dir, &self.name, self.before.as_ref())? || !lock.is_ours()? {
            return Ok(None);
        }
        let Some(after) = self.after else {
            self.dir.unlink(&self.name)?;
            return Ok(Some(None));
        };
        after.replace(&self.name).map(Some)
    }
}

/// Replaces the text of `name` (none: there is no file) by what `edit` makes of it (none: leave it). `placed` hears of the
/// file that was put in place, while the lock keeps others of ours from changing it. Whoever knows what stands there, and
/// that it does, hands it over as `before`: then it is read only if it is another in the end.
///
/// `edit` is what parses the text, so that a long one is looked through once: a text that it can't parse, its
/// outer error, is waited for and then [`Error::Corrupt`].
pub(crate) fn modify_file(
    way: &IoContext,
    dir: &DirHandle,
    name: &str,
    mut before: Option<FileSnapshot>,
    shape: JsonShape,
    mut edit: impl FnMut(Option<&str>) -> Result<Result<Option<String>, Error>, json::JsonError>,
    placed: impl Fn(KnownFile),
) -> Result<(), Error> {
    for attempt in 0..MAX_ATTEMPTS {
        let early = (attempt >= UNLOCKED_ATTEMPTS).then(|| Lock::acquire(dir, name)).transpose()?;
        let found = match before.take() {
            Some(before) => {
                let text = edit(Some(before.text())).map_err(|error| malformed_error(dir, name, &error))?;
                Some((before, text))
            }
            None => {
                read_and_parse(way, dir, name, shape.limit(), HALF_WRITTEN_TIMEOUT, |text| edit(Some(text)))?
            }
        };
        let (before, text) = match found {
            Some((before, text)) => (Some(before), text?),
            None => (None, edit(None).map_err(|error| malformed_error(dir, name, &error))??),
        };
        let Some(text) = text else { return Ok(()) };
        let change = PreparedChange::prepare(way, dir, name, before, &text, shape)?;
        let lock = early.map_or_else(|| Lock::acquire(dir, name), Ok)?;
        if let Some(known) = change.put_if_unchanged(&lock)? {
            known.into_iter().for_each(placed);
            drop(lock);
            return sync_dir(dir, way.durability);
        }
    }
    Err(Error::Contended(dir.join(name)))
}

fn malformed_error(dir: &DirHandle, name: &str, error: &json::JsonError) -> Error {
    Error::Malformed { path: dir.join(name), reason: error.to_string() }
}
