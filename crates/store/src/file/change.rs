//! Changing a file that others change too: prepare, lock, still the same?, rename, unlock; else start over.

use super::end::Known;
use super::snapshot::{PATIENCE, Snapshot, read_as, unchanged, within};
use super::temporary::{Temporary, settle};
use super::{Shape, Way};
use crate::directory::Directory;
use crate::error::Error;
use crate::lock::Lock;
use protocol::json;

/// How often a change is built before the lock is taken; then it is built under the lock.
pub(crate) const OPTIMISTIC: usize = 3;
/// How often in all: beyond it others must be rewriting the file without the lock, without end.
pub(crate) const ATTEMPTS: usize = 40;

/// A new state of a file, prepared and not yet in place.
#[derive(Debug)]
pub(crate) struct Change<'d> {
    dir: &'d Directory,
    name: String,
    before: Option<Snapshot>,
    /// None removes the file.
    after: Option<Temporary<'d>>,
}

impl<'d> Change<'d> {
    /// Prepares the replacement of what `before` says by `text`.
    pub(crate) fn prepare(
        way: &Way,
        dir: &'d Directory,
        name: &str,
        before: Option<Snapshot>,
        text: &str,
        shape: Shape,
    ) -> Result<Change<'d>, Error> {
        within(dir, name, text.len() as u64, shape.limit())?;
        if let Some(before) = &before {
            before.writable(dir, name)?;
        }
        let mode = before.as_ref().map_or(0o600, Snapshot::mode);
        let after = Temporary::write(dir, name, text.as_bytes(), mode, way.durability)?;
        Ok(Change { dir, name: name.to_owned(), before, after: Some(after) })
    }

    /// Prepares the removal of what `before` says.
    pub(crate) fn removal(dir: &'d Directory, name: &str, before: Snapshot) -> Change<'d> {
        Change { dir, name: name.to_owned(), before: Some(before), after: None }
    }

    /// Puts it in place if the file is unchanged and `lock` still ours; false if not.
    pub(crate) fn commit(self, lock: &Lock) -> Result<bool, Error> {
        Ok(self.put(lock)?.is_some())
    }

    /// As [`Change::commit`], with what is there then, unless it was a removal.
    fn put(self, lock: &Lock) -> Result<Option<Option<Known>>, Error> {
        if !unchanged(self.dir, &self.name, self.before.as_ref())? || !lock.is_ours()? {
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
pub(crate) fn change(
    way: &Way,
    dir: &Directory,
    name: &str,
    mut before: Option<Snapshot>,
    shape: Shape,
    mut edit: impl FnMut(Option<&str>) -> Result<Result<Option<String>, Error>, json::JsonError>,
    placed: impl Fn(Known),
) -> Result<(), Error> {
    for attempt in 0..ATTEMPTS {
        let early = (attempt >= OPTIMISTIC).then(|| Lock::acquire(dir, name)).transpose()?;
        let found = match before.take() {
            Some(before) => {
                let text = edit(Some(before.text())).map_err(|error| malformed(dir, name, &error))?;
                Some((before, text))
            }
            None => read_as(way, dir, name, shape.limit(), PATIENCE, |text| edit(Some(text)))?,
        };
        let (before, text) = match found {
            Some((before, text)) => (Some(before), text?),
            None => (None, edit(None).map_err(|error| malformed(dir, name, &error))??),
        };
        let Some(text) = text else { return Ok(()) };
        let change = Change::prepare(way, dir, name, before, &text, shape)?;
        let lock = early.map_or_else(|| Lock::acquire(dir, name), Ok)?;
        if let Some(known) = change.put(&lock)? {
            known.into_iter().for_each(placed);
            drop(lock);
            return settle(dir, way.durability);
        }
    }
    Err(Error::Contended(dir.join(name)))
}

fn malformed(dir: &Directory, name: &str, error: &json::JsonError) -> Error {
    Error::Malformed { path: dir.join(name), why: error.to_string() }
}
