//! A transaction on the task list. It first makes all edits in memory, so that a check, for example
//! for cycles, sees the list as it will be. A commit then replaces the files one by one. The file
//! of the main task, which the caller wants to change, comes last.
//!
//! A dependency is stored in the files of both tasks. A crash during the commit can leave the
//! dependency in only one of the files. A claim changes a single file, so it is never half done.

use super::cache::{CachedTask, read_one};
use super::high_water_mark::raise_high_water_mark;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{FileSnapshot, JsonShape, PreparedChange, sync_dir};
use crate::mkdir_lock::Lock;
use crate::team_file_names::{HIGH_WATER_MARK_FILE, LOCK_FILE, task_file_name};
use crate::team_handle::Team;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, find_cycle, with_fields};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The list with the edits so far.
pub(super) struct TaskTransaction<'t> {
    team: &'t Team,
    dir: &'t DirHandle,
    cached_tasks: Arc<Vec<CachedTask>>,
    tasks: Vec<Arc<Task>>,
    edits: BTreeMap<TaskId, FileEdit>,
    committed_last: Option<TaskId>,
    removed: Option<TaskId>,
    is_stale: bool,
}

/// The old and the new content of a file.
struct FileEdit {
    before: FileSnapshot,
    after: String,
}

impl<'t> TaskTransaction<'t> {
    /// Starts a transaction on the list `cached_tasks` in `dir`.
    pub(super) fn new(
        team: &'t Team,
        dir: &'t DirHandle,
        cached_tasks: Arc<Vec<CachedTask>>,
    ) -> TaskTransaction<'t> {
        let tasks = cached_tasks.iter().map(|cached_tasks| Arc::clone(&cached_tasks.task)).collect();
        TaskTransaction {
            team,
            dir,
            cached_tasks,
            tasks,
            edits: BTreeMap::new(),
            committed_last: None,
            removed: None,
            is_stale: false,
        }
    }

    /// Whether a file has changed since the list was read. If so, results and errors of the
    /// transaction are not valid.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// The list with the edits applied.
    pub(super) fn tasks(&self) -> &[Arc<Task>] {
        &self.tasks
    }

    /// The task `id` with the edits applied.
    pub(super) fn task(&self, id: TaskId) -> Result<&Task, Error> {
        Ok(&self.tasks[self.task_index(id)?])
    }

    /// Sets fields of a task. `None` removes a field.
    pub(super) fn set(&mut self, id: TaskId, fields: &[(&str, Option<Value>)]) -> Result<(), Error> {
        self.edit_text(id, |text| with_fields(text, fields))
    }

    /// Opens the task `id` for editing and makes it the main task, whose file is replaced last.
    /// Fails if the file can't be read.
    pub(super) fn open_main_task(&mut self, id: TaskId) -> Result<Task, Error> {
        let index = self.open_task(id)?;
        self.committed_last = Some(id);
        Ok(Task::clone(&self.tasks[index]))
    }

    /// Reads the task's file again before the task is edited, because the cached list may be old.
    /// Returns the task's index in `tasks`.
    fn open_task(&mut self, id: TaskId) -> Result<usize, Error> {
        let index = self.task_index(id)?;
        if self.edits.contains_key(&id) {
            return Ok(index);
        }
        if let Some(reason) = &self.cached_tasks[index].error {
            return Err(self.malformed_error(id, reason.clone()));
        }
        let Some((before, task)) = read_one(self.team.io(), self.dir, id)? else {
            self.is_stale = true;
            return Err(self.no_such_task(id));
        };
        if *self.tasks[index] != task {
            self.is_stale = true;
            self.tasks[index] = Arc::new(task);
        }
        let after = before.text().to_owned();
        self.edits.insert(id, FileEdit { before, after });
        Ok(index)
    }

    fn no_such_task(&self, id: TaskId) -> Error {
        Error::NoSuchTask { id, team: self.team.name().clone() }
    }

    fn malformed_error(&self, id: TaskId, reason: String) -> Error {
        Error::Malformed { path: self.dir.join(&task_file_name(id)), reason }
    }

    pub(super) fn edit_text<E: ToString>(
        &mut self,
        id: TaskId,
        edit: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<(), Error> {
        let index = self.open_task(id)?;
        let before = self.edits.get(&id).map_or("", |text| &text.after);
        let after = edit(before).map_err(|error| self.malformed_error(id, error.to_string()))?;
        let task = Task::parse(&after).map_err(|error| self.malformed_error(id, error.to_string()))?;
        self.tasks[index] = Arc::new(task);
        self.edits.entry(id).and_modify(|text| text.after = after);
        Ok(())
    }

    /// Makes `blocker` block `blocked`, in the files of both.
    pub(super) fn link(&mut self, blocker: TaskId, blocked: TaskId) -> Result<(), Error> {
        let (mut blocks, mut blocked_by) =
            (self.task(blocker)?.blocks.clone(), self.task(blocked)?.blocked_by.clone());
        if let Some(cycle) = find_cycle(&self.tasks, blocker, blocked) {
            return Err(Error::DependencyCycle { path: cycle });
        }
        if !blocks.contains(&blocked) {
            blocks.push(blocked);
            self.set(blocker, &[("blocks", Some(ids_json(&blocks)))])?;
        }
        if !blocked_by.contains(&blocker) {
            blocked_by.push(blocker);
            self.set(blocked, &[("blockedBy", Some(ids_json(&blocked_by)))])?;
        }
        Ok(())
    }

    /// Removes the dependency of `blocked` on `blocker` from the files of both. `blocker` need not
    /// exist.
    pub(super) fn unlink(&mut self, blocker: TaskId, blocked: TaskId) -> Result<(), Error> {
        let mut blocked_by = self.task(blocked)?.blocked_by.clone();
        if blocked_by.contains(&blocker) {
            blocked_by.retain(|id| *id != blocker);
            self.set(blocked, &[("blockedBy", Some(ids_json(&blocked_by)))])?;
        }
        let Ok(blocking_task) = self.task(blocker) else { return Ok(()) };
        let mut blocks = blocking_task.blocks.clone();
        if blocks.contains(&blocked) {
            blocks.retain(|id| *id != blocked);
            self.set(blocker, &[("blocks", Some(ids_json(&blocks)))])?;
        }
        Ok(())
    }

    /// Deletes a task and all dependencies on it.
    pub(super) fn remove(&mut self, id: TaskId) -> Result<(), Error> {
        self.open_task(id)?;
        let linked_tasks =
            |task: &&Arc<Task>| task.id != id && (task.blocks.contains(&id) || task.blocked_by.contains(&id));
        let linked_tasks: Vec<Arc<Task>> = self.tasks.iter().filter(linked_tasks).cloned().collect();
        for mut task in linked_tasks.iter().map(|task| Task::clone(task)) {
            task.blocks.retain(|linked_id| *linked_id != id);
            task.blocked_by.retain(|linked_id| *linked_id != id);
            let fields =
                [("blocks", Some(ids_json(&task.blocks))), ("blockedBy", Some(ids_json(&task.blocked_by)))];
            self.set(task.id, &fields)?;
        }
        self.removed = Some(id);
        Ok(())
    }

    fn task_index(&self, id: TaskId) -> Result<usize, Error> {
        self.tasks.binary_search_by_key(&id, |task| task.id).map_err(|_| self.no_such_task(id))
    }

    /// Writes all edits to the files. Returns false if another program has changed a file; the
    /// caller then starts again. `early_lock` is the lock of the list, if the caller has taken it
    /// already.
    pub(super) fn commit(self, early_lock: Option<Lock>) -> Result<bool, Error> {
        let (io, dir) = (self.team.io(), self.dir);
        let changes = self.prepare_changes()?;
        if changes.is_empty() {
            return Ok(true);
        }
        let list_lock = early_lock.map_or_else(|| Lock::acquire(dir, LOCK_FILE), Ok)?;
        for (name, change) in changes {
            let is_committed = if name == HIGH_WATER_MARK_FILE {
                change.commit(&list_lock)?
            } else {
                let file_lock = Lock::acquire(dir, &name)?;
                list_lock.is_ours()? && change.commit(&file_lock)?
            };
            if !is_committed {
                return Ok(false);
            }
        }
        drop(list_lock);
        sync_dir(dir, io.durability)?;
        Ok(true)
    }

    /// The prepared changes, in the order of the commit. The removal of a task's file comes after a
    /// change of the high-water mark, so that no new task gets the id of the deleted task.
    fn prepare_changes(self) -> Result<Vec<(String, PreparedChange<'t>)>, Error> {
        let (io, dir) = (self.team.io(), self.dir);
        let mut changes = Vec::new();
        let mut last_changes = Vec::new();
        for (id, FileEdit { before, after }) in self.edits {
            let name = task_file_name(id);
            if Some(id) == self.removed {
                changes.extend(raise_high_water_mark(io, dir, id)?);
                last_changes.push((name.clone(), PreparedChange::prepare_removal(dir, &name, before)));
                continue;
            }
            if after == before.text() {
                continue;
            }
            let change = PreparedChange::prepare(io, dir, &name, Some(before), &after, JsonShape::Object)?;
            let list = if Some(id) == self.committed_last { &mut last_changes } else { &mut changes };
            list.push((name, change));
        }
        changes.extend(last_changes);
        Ok(changes)
    }
}

fn ids_json(ids: &[TaskId]) -> Value {
    ids.iter().map(TaskId::to_string).collect()
}
