//! Changes a file that other programs change too. A change prepares the new content, takes the
//! lock, checks that the file is unchanged, and renames the new file into place. If the file has
//! changed, the steps are repeated.

use super::durability_and_backup_options::IoOptions;
use super::json_type_and_size_limit::JsonShape;
use super::last_written_version_and_shadow_copy::KnownFile;
use super::read_with_version::{
    FileSnapshot, HALF_WRITTEN_TIMEOUT, check_size, is_unchanged, read_and_parse,
};
use super::write_via_temp_file::{TempFile, sync_dir};
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::mkdir_lock::Lock;
use protocol::format_preserving_json::JsonError;

/// Number of attempts to build a change without the lock. Later attempts build it under the lock.
pub(crate) const UNLOCKED_ATTEMPTS: usize = 3;
/// Number of attempts in total. If all fail, other programs keep writing the file without the lock.
pub(crate) const MAX_ATTEMPTS: usize = 40;

/// New content of a file, prepared but not yet in place.
#[derive(Debug)]
pub(crate) struct PreparedChange<'d> {
    dir: &'d DirHandle,
    name: String,
    current: Option<FileSnapshot>,
    /// The new content. `None` deletes the file.
    new_file: Option<TempFile<'d>>,
}

impl<'d> PreparedChange<'d> {
    /// Prepares a change that replaces the content `current` by `text`.
    pub(crate) fn prepare(
        io: &IoOptions,
        dir: &'d DirHandle,
        name: &str,
        current: Option<FileSnapshot>,
        text: &str,
        shape: JsonShape,
    ) -> Result<PreparedChange<'d>, Error> {
        check_size(dir, name, text.len() as u64, shape.limit())?;
        if let Some(current) = &current {
            current.check_replaceable(dir, name)?;
        }
        let mode = current.as_ref().map_or(0o600, FileSnapshot::mode);
        let new_file = TempFile::write(dir, name, text.as_bytes(), mode, io.durability)?;
        Ok(PreparedChange { dir, name: name.to_owned(), current, new_file: Some(new_file) })
    }

    /// Prepares a change that deletes the file whose content is `current`.
    pub(crate) fn prepare_removal(
        dir: &'d DirHandle,
        name: &str,
        current: FileSnapshot,
    ) -> PreparedChange<'d> {
        PreparedChange { dir, name: name.to_owned(), current: Some(current), new_file: None }
    }

    /// Replaces or deletes the file, if the file is unchanged and the caller still holds `lock`.
    /// Returns whether the change was made.
    pub(crate) fn commit(self, lock: &Lock) -> Result<bool, Error> {
        Ok(self.put_if_unchanged(lock)?.is_some())
    }

    /// Makes the change like [`PreparedChange::commit`], but returns the version of the new file.
    /// `None` if nothing was changed. `Some(None)` if the file was deleted or if the new version is
    /// unknown.
    fn put_if_unchanged(self, lock: &Lock) -> Result<Option<Option<KnownFile>>, Error> {
        if !is_unchanged(self.dir, &self.name, self.current.as_ref())? || !lock.is_ours()? {
            return Ok(None);
        }
        let Some(new_file) = self.new_file else {
            self.dir.unlink(&self.name)?;
            return Ok(Some(None));
        };
        new_file.replace(&self.name).map(Some)
    }
}

/// Changes the text of the file `name`.
///
/// `edit` parses the current text and returns the new text. It gets `None` if there is no file. To
/// leave the file unchanged, it returns `Ok(Ok(None))`.
///
/// If the text can't be parsed, `edit` returns a [`JsonError`]. Another program may then be in the
/// middle of a write, so the file is read again. After a timeout the call fails with
/// [`Error::Corrupt`].
///
/// A caller that has already read the file passes the content as `current`. The file is then read
/// again only if another program has changed it.
///
/// When the new file is in place, `on_placed` is called with its version, while the lock is still
/// held.
pub(crate) fn modify_file(
    io: &IoOptions,
    dir: &DirHandle,
    name: &str,
    mut current: Option<FileSnapshot>,
    shape: JsonShape,
    mut edit: impl FnMut(Option<&str>) -> Result<Result<Option<String>, Error>, JsonError>,
    on_placed: impl Fn(KnownFile),
) -> Result<(), Error> {
    for attempt in 0..MAX_ATTEMPTS {
        let early_lock = (attempt >= UNLOCKED_ATTEMPTS).then(|| Lock::acquire(dir, name)).transpose()?;
        let current_and_text = match current.take() {
            Some(current) => {
                let text = edit(Some(current.text())).map_err(|error| malformed_error(dir, name, &error))?;
                Some((current, text))
            }
            None => {
                read_and_parse(io, dir, name, shape.limit(), HALF_WRITTEN_TIMEOUT, |text| edit(Some(text)))?
            }
        };
        let (current, text) = match current_and_text {
            Some((current, text)) => (Some(current), text?),
            None => (None, edit(None).map_err(|error| malformed_error(dir, name, &error))??),
        };
        let Some(text) = text else { return Ok(()) };
        let change = PreparedChange::prepare(io, dir, name, current, &text, shape)?;
        let lock = early_lock.map_or_else(|| Lock::acquire(dir, name), Ok)?;
        if let Some(file) = change.put_if_unchanged(&lock)? {
            file.into_iter().for_each(on_placed);
            drop(lock);
            return sync_dir(dir, io.durability);
        }
    }
    Err(Error::Contended(dir.join(name)))
}

fn malformed_error(dir: &DirHandle, name: &str, error: &JsonError) -> Error {
    Error::Malformed { path: dir.join(name), reason: error.to_string() }
}
