//! The task files as they are now. What was parsed of a file is kept by the file's identity, so a look at the
//! list is one look at the directory, one `stat` for each file, and a read of those that have changed.
//!
//! An entry is trusted only if it was read long enough after the file's last change that another change would
//! show in the time stamps; until then it is read again each time. Texts are not kept: a change reads its file.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::{FILE_LIMIT, FileSnapshot, FileVersion, HALF_WRITTEN_TIMEOUT, IoContext, read_and_parse};
use crate::layout::task_file_name;
use protocol::id::TaskId;
use protocol::json;
use protocol::task::{Task, TaskError, TaskStatus};
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this many files on it pays to share the looking among threads.
const MIN_PARALLEL_FILES: usize = 4000;
const MAX_THREADS: usize = 4;

/// A task, and what is known of its file.
#[derive(Debug, Clone)]
pub(super) struct CachedTask {
    /// Its number, as the file is named.
    pub(super) id: TaskId,
    /// What the file says.
    pub(super) task: Arc<Task>,
    /// Why it can't be read; `task` then only stands for it.
    pub(super) error: Option<String>,
    /// What the file was when it said that; none where that can't tell whether it still does.
    identity: Option<FileVersion>,
}

/// The list as one handle on the team saw it last; none before the first look. Nothing in it is believed without a
/// look at the file.
#[derive(Debug, Default)]
pub(crate) struct TaskCache(Mutex<Option<CachedList>>);

/// The list, by number.
#[derive(Debug)]
struct CachedList {
    listed: Arc<Vec<CachedTask>>,
    /// The tasks of those alone, at the same places, for whoever is given all of them.
    tasks: Arc<Vec<Arc<Task>>>,
}

impl TaskCache {
    /// The list as it is now, by number. Half-written files are waited for, two seconds for all that stay so.
    pub(super) fn refresh(&self, way: &IoContext, dir: &DirHandle) -> Result<Arc<Vec<CachedTask>>, Error> {
        // Not held while files are read: of two threads each has its own list, and either may be kept.
        let before = self.cached_tasks().unwrap_or_default();
        let listed = Arc::new(read_list(way, dir, &before)?);
        *self.lock() = Some(CachedList::new(Arc::clone(&listed)));
        Ok(listed)
    }

    /// The tasks as they were at the last look, with these files as they are now; without an earlier look all of them.
    pub(super) fn refresh_some(
        &self,
        way: &IoContext,
        dir: &DirHandle,
        changed: &[TaskId],
    ) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let Some(before) = self.cached_tasks() else {
            return Ok(CachedList::new(self.refresh(way, dir)?).tasks);
        };
        let mut fresh: BTreeMap<TaskId, CachedTask> =
            read_some(way, dir, &before, changed)?.into_iter().map(|listed| (listed.id, listed)).collect();
        let mut held = self.lock();
        let kept = held.get_or_insert_with(|| CachedList::new(Arc::clone(&before)));
        // Where nobody else has the list it is changed in its place, and costs what has changed.
        drop(before);
        changed.iter().for_each(|id| kept.update(*id, fresh.remove(id)));
        Ok(Arc::clone(&kept.tasks))
    }

    /// Reads the list if it was never read, before a turn at it: most of it will not have changed by then, and
    /// the others need not wait for us to read it.
    pub(super) fn load_if_empty(&self, way: &IoContext, dir: &DirHandle) -> Result<(), Error> {
        if self.cached_tasks().is_some() { Ok(()) } else { self.refresh(way, dir).map(drop) }
    }

    /// Forgets all, so that each file is read again.
    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    fn cached_tasks(&self) -> Option<Arc<Vec<CachedTask>>> {
        self.lock().as_ref().map(|kept| Arc::clone(&kept.listed))
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedList {
    fn new(listed: Arc<Vec<CachedTask>>) -> CachedList {
        let tasks = Arc::new(listed.iter().map(|listed| Arc::clone(&listed.task)).collect());
        CachedList { listed, tasks }
    }

    /// What is known of that task now; none where it is gone.
    fn update(&mut self, id: TaskId, now: Option<CachedTask>) {
        let (listed, tasks) = (Arc::make_mut(&mut self.listed), Arc::make_mut(&mut self.tasks));
        match (listed.binary_search_by_key(&id, |listed| listed.id), now) {
            (Ok(at), Some(now)) => {
                tasks[at] = Arc::clone(&now.task);
                listed[at] = now;
            }
            (Ok(at), None) => {
                tasks.remove(at);
                listed.remove(at);
            }
            (Err(at), Some(now)) => {
                tasks.insert(at, Arc::clone(&now.task));
                listed.insert(at, now);
            }
            (Err(_), None) => {}
        }
    }
}

fn read_list(way: &IoContext, dir: &DirHandle, before: &[CachedTask]) -> Result<Vec<CachedTask>, Error> {
    let ids = list_ids(dir)?;
    let mut all = if ids.len() < MIN_PARALLEL_FILES {
        read_some(way, dir, before, &ids)?
    } else {
        read_parallel(way, dir, before, &ids)?
    };
    add_missing_blockers(way, dir, before, &mut all)?;
    Ok(all)
}

/// As `part`, in several threads.
fn read_parallel(
    way: &IoContext,
    dir: &DirHandle,
    before: &[CachedTask],
    ids: &[TaskId],
) -> Result<Vec<CachedTask>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let parts = ids.chunks(ids.len().div_ceil(threads));
        let running: Vec<_> =
            parts.map(|ids| scope.spawn(move || read_some(way, dir, before, ids))).collect();
        let mut all = Vec::with_capacity(ids.len());
        for part in running {
            all.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Looks for blockers that are not among `all`. A directory that is being written to may be listed with a file
/// and without an older one, and a missing blocker would count as over.
fn add_missing_blockers(
    way: &IoContext,
    dir: &DirHandle,
    before: &[CachedTask],
    all: &mut Vec<CachedTask>,
) -> Result<(), Error> {
    let mut looked = BTreeSet::new();
    loop {
        let listed = |id: &TaskId| all.binary_search_by_key(id, |listed| listed.id).is_ok();
        let blockers = all.iter().flat_map(|listed| listed.task.blocked_by.iter().copied());
        let missing: Vec<TaskId> = blockers.filter(|id| !listed(id) && looked.insert(*id)).collect();
        let found = read_some(way, dir, before, &missing)?;
        if found.is_empty() {
            return Ok(());
        }
        all.extend(found);
        all.sort_unstable_by_key(|listed| listed.id);
    }
}

fn read_some(
    way: &IoContext,
    dir: &DirHandle,
    before: &[CachedTask],
    ids: &[TaskId],
) -> Result<Vec<CachedTask>, Error> {
    let mut all = Vec::with_capacity(ids.len());
    let mut patience = HALF_WRITTEN_TIMEOUT;
    for id in ids {
        let listed = match before.binary_search_by_key(id, |listed| listed.id) {
            Ok(at) if before[at].is_current(dir)? => Some(before[at].clone()),
            _ => CachedTask::read_within(way, dir, *id, &mut patience),
        };
        all.extend(listed);
    }
    Ok(all)
}

impl CachedTask {
    /// None if it was deleted since the directory was listed.
    fn read(way: &IoContext, dir: &DirHandle, id: TaskId, patience: Duration) -> Option<CachedTask> {
        match read_task(way, dir, id, patience).transpose()? {
            Ok((snapshot, task)) => Some(CachedTask {
                id,
                task: Arc::new(task),
                error: None,
                identity: snapshot.stable_version(),
            }),
            Err(why) => {
                let task = Arc::new(placeholder_task(id, &why));
                Some(CachedTask { id, task, error: Some(reason_without_path(why)), identity: None })
            }
        }
    }

    /// The same, and takes off what a file that can't be read has cost of the patience for all of them. One that has been
    /// damaged for long costs nothing, and its neighbour may be in the middle of being written.
    fn read_within(
        way: &IoContext,
        dir: &DirHandle,
        id: TaskId,
        patience: &mut Duration,
    ) -> Option<CachedTask> {
        let begun = Instant::now();
        let listed = CachedTask::read(way, dir, id, *patience)?;
        if listed.error.is_some() {
            *patience = patience.saturating_sub(begun.elapsed());
        }
        Some(listed)
    }

    /// True if the file is known to say the same as when it was read.
    fn is_current(&self, dir: &DirHandle) -> Result<bool, Error> {
        match self.identity {
            Some(identity) => Ok(FileVersion::stat_file(dir, &task_file_name(self.id))? == Some(identity)),
            None => Ok(false),
        }
    }
}

/// A list of the task `id` alone; of none if there is no such file.
pub(super) fn read_single(way: &IoContext, dir: &DirHandle, id: TaskId) -> Vec<CachedTask> {
    CachedTask::read(way, dir, id, HALF_WRITTEN_TIMEOUT).into_iter().collect()
}

/// A list of the task `id` and what it waits for, by number.
pub(super) fn with_blockers(way: &IoContext, dir: &DirHandle, id: TaskId) -> Vec<CachedTask> {
    let mut all = read_single(way, dir, id);
    let blockers = all.first().map(|listed| listed.task.blocked_by.clone()).unwrap_or_default();
    all.extend(
        blockers.iter().filter_map(|blocker| CachedTask::read(way, dir, *blocker, HALF_WRITTEN_TIMEOUT)),
    );
    all.sort_unstable_by_key(|listed| listed.id);
    all.dedup_by_key(|listed| listed.id);
    all
}

/// The ids of all files, in order.
pub(super) fn list_ids(dir: &DirHandle) -> Result<Vec<TaskId>, Error> {
    let mut ids = Vec::new();
    dir.for_each_name(|name| ids.extend(name.strip_suffix(".json").and_then(|id| TaskId::parse(id).ok())))?;
    ids.sort_unstable();
    Ok(ids)
}

/// The task `id` with its file as it is now; none if there is no such file.
pub(super) fn read_one(
    way: &IoContext,
    dir: &DirHandle,
    id: TaskId,
) -> Result<Option<(FileSnapshot, Task)>, Error> {
    read_task(way, dir, id, HALF_WRITTEN_TIMEOUT)
}

fn read_task(
    way: &IoContext,
    dir: &DirHandle,
    id: TaskId,
    patience: Duration,
) -> Result<Option<(FileSnapshot, Task)>, Error> {
    let name = task_file_name(id);
    let Some((snapshot, task)) = read_and_parse(way, dir, &name, FILE_LIMIT, patience, parse)? else {
        return Ok(None);
    };
    let malformed = |why: String| Error::Malformed { path: dir.join(&name), reason: why };
    let task = task.map_err(|error| malformed(error.to_string()))?;
    if task.id != id {
        return Err(malformed(format!("field id should be \"{id}\", but is \"{}\"", task.id)));
    }
    Ok(Some((snapshot, task)))
}

/// What is no JSON may be half a file and is worth another look; a wrong field is not.
fn parse(text: &str) -> Result<Result<Task, TaskError>, json::JsonError> {
    match Task::parse(text) {
        Err(TaskError::Json(error)) => Err(error),
        parsed => Ok(parsed),
    }
}

/// The part of an error that does not name the file again.
fn reason_without_path(error: Error) -> String {
    match error {
        Error::Corrupt { reason: why, .. } | Error::Malformed { reason: why, .. } => why,
        other => other.to_string(),
    }
}

/// The status of a task that stands for a file which can't be read: damaged, or half written by somebody who is held up.
pub const UNREADABLE_STATUS: &str = "unreadable";

/// The task that stands for a file which can't be read.
fn placeholder_task(id: TaskId, why: &Error) -> Task {
    Task {
        id,
        subject: why.to_string(),
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
