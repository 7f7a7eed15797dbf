//! Cache of parsed task files. To read the list again costs one read of the directory, one `stat`
//! for each file, and a read of each changed file.
//!
//! A `stat` shows by the timestamp that a file was changed. But two changes in quick succession can
//! have the same timestamp. So a file that was read right after a change is read again next time.
//!
//! The cache does not have the text of the files. So a program that changes a task first reads the
//! task's file.

use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{
    FILE_LIMIT, FileSnapshot, FileVersion, HALF_WRITTEN_TIMEOUT, IoOptions, read_and_parse,
};
use crate::team_file_names::task_file_name;
use protocol::format_preserving_json;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskError, TaskStatus};
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this number of files on, several threads read the list.
const MIN_PARALLEL_FILES: usize = 4000;
const MAX_THREADS: usize = 4;

/// A task, and the version of its file.
#[derive(Debug, Clone)]
pub(super) struct CachedTask {
    /// The id, from the file's name.
    pub(super) id: TaskId,
    pub(super) task: Arc<Task>,
    /// Why the file can't be read. `task` is a placeholder then.
    pub(super) error: Option<String>,
    /// The file's version (inode, size and timestamps) when the task was read. A different version
    /// means that the file was changed. `None` if the file must be read again in any case: its last
    /// change was so recent that a further change might get the same timestamps.
    version: Option<FileVersion>,
}

/// The task list as a team handle or one of its clones last read it. `None` before the first read.
#[derive(Debug, Default)]
pub(crate) struct TaskCache(Mutex<Option<CachedList>>);

/// The cached tasks, sorted by id.
#[derive(Debug)]
struct CachedList {
    entries: Arc<Vec<CachedTask>>,
    /// The tasks of `entries`, in the same order, in a vector that callers share.
    tasks: Arc<Vec<Arc<Task>>>,
}

impl TaskCache {
    /// Reads the current task list, sorted by id. If files are half-written, reads them again for
    /// up to two seconds in total.
    pub(super) fn refresh(&self, io: &IoOptions, dir: &DirHandle) -> Result<Arc<Vec<CachedTask>>, Error> {
        // The mutex is not locked while files are read. If two threads read at the same time, the
        // cache keeps the list of the thread that ends last.
        let cached = self.cached_tasks().unwrap_or_default();
        let tasks = Arc::new(read_list(io, dir, &cached)?);
        *self.lock() = Some(CachedList::new(Arc::clone(&tasks)));
        Ok(tasks)
    }

    /// Returns the cached list, after reading the files of the tasks in `changed` again. If nothing
    /// is cached, reads the whole list.
    pub(super) fn refresh_some(
        &self,
        io: &IoOptions,
        dir: &DirHandle,
        changed: &[TaskId],
    ) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let Some(cached) = self.cached_tasks() else {
            return Ok(CachedList::new(self.refresh(io, dir)?).tasks);
        };
        let mut changed_tasks: BTreeMap<TaskId, CachedTask> =
            read_some(io, dir, &cached, changed)?.into_iter().map(|task| (task.id, task)).collect();
        let mut guard = self.lock();
        let list = guard.get_or_insert_with(|| CachedList::new(Arc::clone(&cached)));
        // If `cached` still referred to the list, `update` would copy the whole list.
        drop(cached);
        changed.iter().for_each(|id| list.update(*id, changed_tasks.remove(id)));
        Ok(Arc::clone(&list.tasks))
    }

    /// Reads the list if nothing is cached. Called before the ticket (the flock on the list) is
    /// taken, so that other programs need not wait for the ticket while the whole list is read.
    /// With the ticket, only files that have changed since are read again.
    pub(super) fn load_if_empty(&self, io: &IoOptions, dir: &DirHandle) -> Result<(), Error> {
        if self.cached_tasks().is_some() { Ok(()) } else { self.refresh(io, dir).map(drop) }
    }

    /// Empties the cache, so that each file is read again.
    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    fn cached_tasks(&self) -> Option<Arc<Vec<CachedTask>>> {
        self.lock().as_ref().map(|list| Arc::clone(&list.entries))
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedList {
    fn new(entries: Arc<Vec<CachedTask>>) -> CachedList {
        let tasks = Arc::new(entries.iter().map(|entry| Arc::clone(&entry.task)).collect());
        CachedList { entries, tasks }
    }

    /// Replaces, inserts or removes the task `id`. `None` removes it.
    fn update(&mut self, id: TaskId, new_entry: Option<CachedTask>) {
        let (entries, tasks) = (Arc::make_mut(&mut self.entries), Arc::make_mut(&mut self.tasks));
        match (entries.binary_search_by_key(&id, |entry| entry.id), new_entry) {
            (Ok(index), Some(new_entry)) => {
                tasks[index] = Arc::clone(&new_entry.task);
                entries[index] = new_entry;
            }
            (Ok(index), None) => {
                tasks.remove(index);
                entries.remove(index);
            }
            (Err(index), Some(new_entry)) => {
                tasks.insert(index, Arc::clone(&new_entry.task));
                entries.insert(index, new_entry);
            }
            (Err(_), None) => {}
        }
    }
}

fn read_list(io: &IoOptions, dir: &DirHandle, cached: &[CachedTask]) -> Result<Vec<CachedTask>, Error> {
    let ids = list_ids(dir)?;
    let mut tasks = if ids.len() < MIN_PARALLEL_FILES {
        read_some(io, dir, cached, &ids)?
    } else {
        read_parallel(io, dir, cached, &ids)?
    };
    add_missing_blockers(io, dir, cached, &mut tasks)?;
    Ok(tasks)
}

/// Reads tasks like [`read_some`], with several threads.
fn read_parallel(
    io: &IoOptions,
    dir: &DirHandle,
    cached: &[CachedTask],
    ids: &[TaskId],
) -> Result<Vec<CachedTask>, Error> {
    let thread_count = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let chunks = ids.chunks(ids.len().div_ceil(thread_count));
        let threads: Vec<_> =
            chunks.map(|ids| scope.spawn(move || read_some(io, dir, cached, ids))).collect();
        let mut tasks = Vec::with_capacity(ids.len());
        for thread in threads {
            tasks.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(tasks)
    })
}

/// Reads the blockers that are missing from `tasks`, and adds them. Otherwise they would wrongly
/// count as completed. Blockers can be missing because the directory was listed while another
/// program created files: the listing may contain a new file and lack an older one.
fn add_missing_blockers(
    io: &IoOptions,
    dir: &DirHandle,
    cached: &[CachedTask],
    tasks: &mut Vec<CachedTask>,
) -> Result<(), Error> {
    let mut checked = BTreeSet::new();
    loop {
        let is_listed = |id: &TaskId| tasks.binary_search_by_key(id, |is_listed| is_listed.id).is_ok();
        let blockers = tasks.iter().flat_map(|is_listed| is_listed.task.blocked_by.iter().copied());
        let missing: Vec<TaskId> = blockers.filter(|id| !is_listed(id) && checked.insert(*id)).collect();
        let blocking_tasks = read_some(io, dir, cached, &missing)?;
        if blocking_tasks.is_empty() {
            return Ok(());
        }
        tasks.extend(blocking_tasks);
        tasks.sort_unstable_by_key(|is_listed| is_listed.id);
    }
}

fn read_some(
    io: &IoOptions,
    dir: &DirHandle,
    cached: &[CachedTask],
    ids: &[TaskId],
) -> Result<Vec<CachedTask>, Error> {
    let mut tasks = Vec::with_capacity(ids.len());
    let mut timeout = HALF_WRITTEN_TIMEOUT;
    for id in ids {
        let task = match cached.binary_search_by_key(id, |task| task.id) {
            Ok(index) if cached[index].is_current(dir)? => Some(cached[index].clone()),
            _ => CachedTask::read_within(io, dir, *id, &mut timeout),
        };
        tasks.extend(task);
    }
    Ok(tasks)
}

impl CachedTask {
    /// Reads one task. `None` if the file was deleted since the directory was listed.
    fn read(io: &IoOptions, dir: &DirHandle, id: TaskId, timeout: Duration) -> Option<CachedTask> {
        match read_task(io, dir, id, timeout).transpose()? {
            Ok((snapshot, task)) => {
                Some(CachedTask { id, task: Arc::new(task), error: None, version: snapshot.stable_version() })
            }
            Err(reason) => {
                let task = Arc::new(placeholder_task(id, &reason));
                Some(CachedTask { id, task, error: Some(reason_without_path(reason)), version: None })
            }
        }
    }

    /// Reads one task. A file that can't be parsed may be half-written, so it is read again until
    /// it has been unchanged for `timeout`. `timeout` is the time for all files of the list
    /// together: each file that still can't be parsed at the end reduces `timeout` by the time of
    /// its wait.
    fn read_within(
        io: &IoOptions,
        dir: &DirHandle,
        id: TaskId,
        timeout: &mut Duration,
    ) -> Option<CachedTask> {
        let started_at = Instant::now();
        let task = CachedTask::read(io, dir, id, *timeout)?;
        if task.error.is_some() {
            *timeout = timeout.saturating_sub(started_at.elapsed());
        }
        Some(task)
    }

    /// Whether the file is known to be unchanged since it was read.
    fn is_current(&self, dir: &DirHandle) -> Result<bool, Error> {
        match self.version {
            Some(version) => Ok(FileVersion::stat_file(dir, &task_file_name(self.id))? == Some(version)),
            None => Ok(false),
        }
    }
}

/// A list with the task `id` alone. Empty if there is no such file.
pub(super) fn read_single(io: &IoOptions, dir: &DirHandle, id: TaskId) -> Vec<CachedTask> {
    CachedTask::read(io, dir, id, HALF_WRITTEN_TIMEOUT).into_iter().collect()
}

/// A list with the task `id` and its blockers, sorted by id.
pub(super) fn with_blockers(io: &IoOptions, dir: &DirHandle, id: TaskId) -> Vec<CachedTask> {
    let mut tasks = read_single(io, dir, id);
    let blockers = tasks.first().map(|task| task.task.blocked_by.clone()).unwrap_or_default();
    tasks.extend(
        blockers.iter().filter_map(|blocker| CachedTask::read(io, dir, *blocker, HALF_WRITTEN_TIMEOUT)),
    );
    tasks.sort_unstable_by_key(|task| task.id);
    tasks.dedup_by_key(|task| task.id);
    tasks
}

/// The ids of all task files, sorted.
pub(super) fn list_ids(dir: &DirHandle) -> Result<Vec<TaskId>, Error> {
    let mut ids = Vec::new();
    dir.for_each_name(|name| ids.extend(name.strip_suffix(".json").and_then(|id| TaskId::parse(id).ok())))?;
    ids.sort_unstable();
    Ok(ids)
}

/// Reads the task `id` and its file. `None` if there is no such file.
pub(super) fn read_one(
    io: &IoOptions,
    dir: &DirHandle,
    id: TaskId,
) -> Result<Option<(FileSnapshot, Task)>, Error> {
    read_task(io, dir, id, HALF_WRITTEN_TIMEOUT)
}

fn read_task(
    io: &IoOptions,
    dir: &DirHandle,
    id: TaskId,
    timeout: Duration,
) -> Result<Option<(FileSnapshot, Task)>, Error> {
    let name = task_file_name(id);
    let Some((snapshot, task)) = read_and_parse(io, dir, &name, FILE_LIMIT, timeout, parse)? else {
        return Ok(None);
    };
    let malformed = |reason: String| Error::Malformed { path: dir.join(&name), reason };
    let task = task.map_err(|error| malformed(error.to_string()))?;
    if task.id != id {
        return Err(malformed(format!("field id should be \"{id}\", but is \"{}\"", task.id)));
    }
    Ok(Some((snapshot, task)))
}

/// Parses a task. The outer error is invalid JSON: the file may be half-written, so the caller
/// reads it again. The inner error is valid JSON that is no valid task.
fn parse(text: &str) -> Result<Result<Task, TaskError>, format_preserving_json::JsonError> {
    match Task::parse(text) {
        Err(TaskError::Json(error)) => Err(error),
        parsed => Ok(parsed),
    }
}

/// The reason of an error, without the file's path.
fn reason_without_path(error: Error) -> String {
    match error {
        Error::Corrupt { reason, .. } | Error::Malformed { reason, .. } => reason,
        other => other.to_string(),
    }
}

/// The status of a placeholder, which stands in the list for a task whose file is damaged or
/// half-written.
pub const UNREADABLE_STATUS: &str = "unreadable";

/// A placeholder for a task whose file can't be read. Its subject is the error.
fn placeholder_task(id: TaskId, reason: &Error) -> Task {
    Task {
        id,
        subject: reason.to_string(),
        description: String::new(),
        active_form: None,
        status: TaskStatus::Other(UNREADABLE_STATUS.to_owned()),
        owner: None,
        blocks: Vec::new(),
        blocked_by: Vec::new(),
        metadata: None,
        unknown_fields: Map::new(),
    }
}
