//! The task files as they are now. What was parsed of a file is kept by the file's identity, so a look at the
//! list is one look at the directory, one `stat` for each file, and a read of those that have changed.
//!
//! An entry is trusted only if it was read long enough after the file's last change that another change would
//! show in the time stamps; until then it is read again each time. Texts are not kept: a change reads its file.

use super::unreadable;
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{FILE_LIMIT, Identity, PATIENCE, Snapshot, Way, read_as};
use crate::pause::Pause;
use protocol::id::TaskId;
use protocol::json;
use protocol::task::{Task, TaskError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The highest id ever used, as far as deletions go.
pub(crate) const MARK: &str = ".highwatermark";

/// From this many files on it pays to share the looking among threads.
const MANY: usize = 4000;
const THREADS: usize = 4;

/// A task, and what is known of its file.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// Its number, as the file is named.
    pub(super) id: TaskId,
    /// What the file says.
    pub(super) task: Arc<Task>,
    /// Why it can't be read; `task` then only stands for it.
    pub(super) fault: Option<String>,
    /// What the file was when it said that; none where that can't tell whether it still does.
    identity: Option<Identity>,
}

/// The list as one handle on the team saw it last; none before the first look. Nothing in it is believed without a
/// look at the file.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Option<Kept>>);

/// The list, by number.
#[derive(Debug)]
struct Kept {
    listed: Arc<Vec<Listed>>,
    /// The tasks of those alone, at the same places, for whoever is given all of them.
    tasks: Arc<Vec<Arc<Task>>>,
}

impl Seen {
    /// The list as it is now, by number. Half-written files are waited for, two seconds for all that stay so.
    pub(super) fn look(&self, way: &Way, dir: &Directory) -> Result<Arc<Vec<Listed>>, Error> {
        // Not held while files are read: of two threads each has its own list, and either may be kept.
        let before = self.last().unwrap_or_default();
        let listed = Arc::new(look(way, dir, &before)?);
        *self.held() = Some(Kept::of(Arc::clone(&listed)));
        Ok(listed)
    }

    /// The tasks as they were at the last look, with these files as they are now; without an earlier look all of them.
    pub(super) fn look_at(
        &self,
        way: &Way,
        dir: &Directory,
        changed: &[TaskId],
    ) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let Some(before) = self.last() else { return Ok(Kept::of(self.look(way, dir)?).tasks) };
        let mut fresh: BTreeMap<TaskId, Listed> =
            part(way, dir, &before, changed)?.into_iter().map(|listed| (listed.id, listed)).collect();
        let mut held = self.held();
        let kept = held.get_or_insert_with(|| Kept::of(Arc::clone(&before)));
        // Where nobody else has the list it is changed in its place, and costs what has changed.
        drop(before);
        changed.iter().for_each(|id| kept.put(*id, fresh.remove(id)));
        Ok(Arc::clone(&kept.tasks))
    }

    /// Reads the list if it was never read, before a turn at it: most of it will not have changed by then, and
    /// the others need not wait for us to read it.
    pub(super) fn look_first(&self, way: &Way, dir: &Directory) -> Result<(), Error> {
        if self.last().is_some() { Ok(()) } else { self.look(way, dir).map(drop) }
    }

    /// Forgets all, so that each file is read again.
    pub(super) fn forget(&self) {
        *self.held() = None;
    }

    fn last(&self) -> Option<Arc<Vec<Listed>>> {
        self.held().as_ref().map(|kept| Arc::clone(&kept.listed))
    }

    fn held(&self) -> MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn of(listed: Arc<Vec<Listed>>) -> Kept {
        let tasks = Arc::new(listed.iter().map(|listed| Arc::clone(&listed.task)).collect());
        Kept { listed, tasks }
    }

    /// What is known of that task now; none where it is gone.
    fn put(&mut self, id: TaskId, now: Option<Listed>) {
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

fn look(way: &Way, dir: &Directory, before: &[Listed]) -> Result<Vec<Listed>, Error> {
    let ids = ids(dir)?;
    let mut all =
        if ids.len() < MANY { part(way, dir, before, &ids)? } else { shared(way, dir, before, &ids)? };
    add_missed(way, dir, before, &mut all)?;
    Ok(all)
}

/// As [`part`], in several threads.
fn shared(way: &Way, dir: &Directory, before: &[Listed], ids: &[TaskId]) -> Result<Vec<Listed>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    std::thread::scope(|scope| {
        let parts = ids.chunks(ids.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|ids| scope.spawn(move || part(way, dir, before, ids))).collect();
        let mut all = Vec::with_capacity(ids.len());
        for part in running {
            all.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Looks for blockers that are not among `all`. A directory that is being written to may be listed with a file
/// and without an older one, and a missing blocker would count as over.
fn add_missed(way: &Way, dir: &Directory, before: &[Listed], all: &mut Vec<Listed>) -> Result<(), Error> {
    let mut looked = BTreeSet::new();
    loop {
        let listed = |id: &TaskId| all.binary_search_by_key(id, |listed| listed.id).is_ok();
        let blockers = all.iter().flat_map(|listed| listed.task.blocked_by.iter().copied());
        let missing: Vec<TaskId> = blockers.filter(|id| !listed(id) && looked.insert(*id)).collect();
        let found = part(way, dir, before, &missing)?;
        if found.is_empty() {
            return Ok(());
        }
        all.extend(found);
        all.sort_unstable_by_key(|listed| listed.id);
    }
}

fn part(way: &Way, dir: &Directory, before: &[Listed], ids: &[TaskId]) -> Result<Vec<Listed>, Error> {
    let mut all = Vec::with_capacity(ids.len());
    let mut patience = PATIENCE;
    for id in ids {
        let listed = match before.binary_search_by_key(id, |listed| listed.id) {
            Ok(at) if before[at].still(dir)? => Some(before[at].clone()),
            _ => Listed::read_within(way, dir, *id, &mut patience),
        };
        all.extend(listed);
    }
    Ok(all)
}

impl Listed {
    /// None if it was deleted since the directory was listed.
    fn read(way: &Way, dir: &Directory, id: TaskId, patience: Duration) -> Option<Listed> {
        match read_for(way, dir, id, patience).transpose()? {
            Ok((snapshot, task)) => {
                Some(Listed { id, task: Arc::new(task), fault: None, identity: snapshot.settled() })
            }
            Err(why) => {
                let task = Arc::new(unreadable(id, &why));
                Some(Listed { id, task, fault: Some(reason(why)), identity: None })
            }
        }
    }

    /// The same, and takes off what a file that can't be read has cost of the patience for all of them. One that has been
    /// damaged for long costs nothing, and its neighbour may be in the middle of being written.
    fn read_within(way: &Way, dir: &Directory, id: TaskId, patience: &mut Duration) -> Option<Listed> {
        let begun = Instant::now();
        let listed = Listed::read(way, dir, id, *patience)?;
        if listed.fault.is_some() {
            *patience = patience.saturating_sub(begun.elapsed());
        }
        Some(listed)
    }

    /// True if the file is known to say the same as when it was read.
    fn still(&self, dir: &Directory) -> Result<bool, Error> {
        match self.identity {
            Some(identity) => Ok(Identity::at(dir, &file_name(self.id))? == Some(identity)),
            None => Ok(false),
        }
    }
}

/// A list of the task `id` alone; of none if there is no such file.
pub(super) fn only(way: &Way, dir: &Directory, id: TaskId) -> Vec<Listed> {
    Listed::read(way, dir, id, PATIENCE).into_iter().collect()
}

/// A list of the task `id` and what it waits for, by number.
pub(super) fn with_blockers(way: &Way, dir: &Directory, id: TaskId) -> Vec<Listed> {
    let mut all = only(way, dir, id);
    let blockers = all.first().map(|listed| listed.task.blocked_by.clone()).unwrap_or_default();
    all.extend(blockers.iter().filter_map(|blocker| Listed::read(way, dir, *blocker, PATIENCE)));
    all.sort_unstable_by_key(|listed| listed.id);
    all.dedup_by_key(|listed| listed.id);
    all
}

/// The file of a task in its directory.
pub(super) fn file_name(id: TaskId) -> String {
    format!("{id}.json")
}

/// The ids of all files, in order.
pub(super) fn ids(dir: &Directory) -> Result<Vec<TaskId>, Error> {
    let mut ids = Vec::new();
    dir.each_name(|name| ids.extend(name.strip_suffix(".json").and_then(|id| TaskId::parse(id).ok())))?;
    ids.sort_unstable();
    Ok(ids)
}

/// The task `id` with its file as it is now; none if there is no such file.
pub(super) fn read_one(way: &Way, dir: &Directory, id: TaskId) -> Result<Option<(Snapshot, Task)>, Error> {
    read_for(way, dir, id, PATIENCE)
}

fn read_for(
    way: &Way,
    dir: &Directory,
    id: TaskId,
    patience: Duration,
) -> Result<Option<(Snapshot, Task)>, Error> {
    let name = file_name(id);
    let Some((snapshot, task)) = read_as(way, dir, &name, FILE_LIMIT, patience, parse)? else {
        return Ok(None);
    };
    let malformed = |why: String| Error::Malformed { path: dir.join(&name), why };
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
fn reason(error: Error) -> String {
    match error {
        Error::Corrupt { why, .. } | Error::Malformed { why, .. } => why,
        other => other.to_string(),
    }
}

/// The highest id that a deletion left behind, 0 for none, and the file that says so.
pub(super) fn mark(dir: &Directory) -> Result<(u32, Option<Snapshot>), Error> {
    let mut pause = Pause::new(PATIENCE, Duration::from_millis(10), Duration::from_millis(300));
    loop {
        let Some(snapshot) = crate::file::read_raw(dir, MARK, 4096)? else { return Ok((0, None)) };
        if let Ok(number) = snapshot.text().trim().parse() {
            return Ok((number, Some(snapshot)));
        }
        if !pause.wait() {
            // Going on without it could hand out an id a second time.
            let why = "it should hold one number, the highest task id ever used".to_owned();
            return Err(Error::Malformed { path: dir.join(MARK), why });
        }
    }
}
