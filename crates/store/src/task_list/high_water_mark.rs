//! The high-water mark of a task list: a number in a file. Each new task gets an id above this
//! number and above the ids of all existing tasks, so no id is used again. The mark is raised when
//! a task is deleted, when a batch of tasks is created, and when ids are reserved.

use crate::backoff::Backoff;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{FileSnapshot, HALF_WRITTEN_TIMEOUT, IoOptions, JsonShape, PreparedChange};
use crate::team_file_names::HIGH_WATER_MARK_FILE;
use protocol::member_task_and_request_ids::TaskId;
use std::time::Duration;

/// The high-water mark, 0 if there is none, and the file that holds it.
pub(super) fn read_high_water_mark(dir: &DirHandle) -> Result<(u32, Option<FileSnapshot>), Error> {
    let mut backoff =
        Backoff::new(HALF_WRITTEN_TIMEOUT, Duration::from_millis(10), Duration::from_millis(300));
    loop {
        let Some(snapshot) = crate::file_io::read_raw(dir, HIGH_WATER_MARK_FILE, 4096)? else {
            return Ok((0, None));
        };
        if let Ok(number) = snapshot.text().trim().parse() {
            return Ok((number, Some(snapshot)));
        }
        if !backoff.wait() {
            // Without the mark, an id could be used a second time.
            let reason = "it should hold one number, the highest task id ever used".to_owned();
            return Err(Error::Malformed { path: dir.join(HIGH_WATER_MARK_FILE), reason });
        }
    }
}

/// Prepares to raise the high-water mark to `id`. `None` if the mark is not lower than `id`.
pub(super) fn raise_high_water_mark<'d>(
    io: &IoOptions,
    dir: &'d DirHandle,
    id: TaskId,
) -> Result<Option<(String, PreparedChange<'d>)>, Error> {
    let (highest, before) = read_high_water_mark(dir)?;
    if highest >= id.number() {
        return Ok(None);
    }
    let change =
        PreparedChange::prepare(io, dir, HIGH_WATER_MARK_FILE, before, &id.to_string(), JsonShape::Object)?;
    Ok(Some((HIGH_WATER_MARK_FILE.to_owned(), change)))
}
