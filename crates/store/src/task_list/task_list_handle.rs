//! The handle of a task list: reads the list and runs changes of it.

use super::cache;
use super::high_water_mark::read_high_water_mark;
use super::lock_queue_ticket::Ticket;
use super::transaction::TaskTransaction;
use crate::error::Error;
use crate::file_io::{MAX_ATTEMPTS, UNLOCKED_ATTEMPTS};
use crate::mkdir_lock::Lock;
use crate::team_file_names::{LOCK_FILE, task_of_file};
use crate::team_handle::Team;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use std::path::PathBuf;
use std::sync::Arc;

/// The part of the list that a change reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadScope {
    List,
    Task(TaskId),
    /// The task and its blockers.
    TaskAndBlockers(TaskId),
}

/// The task list of a team.
#[derive(Debug, Clone)]
pub struct Tasks {
    pub(super) team: Team,
}

impl Team {
    /// The task list of this team.
    pub fn tasks(&self) -> Tasks {
        Tasks::new(self.clone())
    }
}

impl Tasks {
    pub(super) fn new(team: Team) -> Tasks {
        Tasks { team }
    }

    /// Creates the directory of the list and the file whose lock covers it.
    pub(crate) fn create_list(&self) -> Result<(), Error> {
        Ticket::acquire(self.team.create_tasks_dir()?).map(drop)
    }

    /// The high-water mark of the list: new tasks get higher ids, so that no id is used again. It
    /// is raised when a task is deleted, when a batch of tasks is created, and when ids are
    /// reserved. 0 if it was never raised.
    ///
    /// # Errors
    /// Fails if the file of the high-water mark can't be read or has no number. In that case no
    /// task can be created.
    pub fn high_water_mark(&self) -> Result<u32, Error> {
        Ok(self.team.tasks_dir()?.map(read_high_water_mark).transpose()?.map_or(0, |(mark, _)| mark))
    }

    /// The directory of the task files.
    pub fn path(&self) -> PathBuf {
        self.team.all_tasks_dir().join(self.team.name().as_str())
    }

    /// All tasks, sorted by id, including internal ones.
    ///
    /// If a task's file can't be read, the list has a placeholder with the status `unreadable` and
    /// the error as its subject. The unreadable task may be open, so it keeps blocking other tasks.
    pub fn list(&self) -> Result<Vec<Task>, Error> {
        Ok(self.list_cached()?.iter().map(|task| Task::clone(task)).collect())
    }

    /// The names of JSON files in the task directory whose names are no task ids, such as
    /// `plan.json`. They are not tasks, and the list of tasks does not contain them.
    pub fn misnamed_files(&self) -> Result<Vec<String>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        let is_misnamed =
            |name: &str| name.ends_with(".json") && !name.starts_with('.') && task_of_file(name).is_none();
        dir.for_each_name(|name| names.extend(is_misnamed(name).then(|| name.to_owned())))?;
        names.sort_unstable();
        Ok(names)
    }

    /// All tasks, like [`Tasks::list`], without copying them. A second call through the same handle
    /// or a clone of it reads only the changed files.
    pub fn list_cached(&self) -> Result<Vec<Arc<Task>>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Vec::new()) };
        let cached_tasks = self.team.task_cache().refresh(self.team.io(), dir)?;
        Ok(cached_tasks.iter().map(|cached_tasks| Arc::clone(&cached_tasks.task)).collect())
    }

    /// Returns the list after reading the files of the tasks `changed` again. All other tasks are
    /// as in this handle's last read. The caller must know which files change, and must read the
    /// whole list now and then.
    pub fn list_after_changes(&self, changed: &[TaskId]) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Arc::default()) };
        self.team.task_cache().refresh_some(self.team.io(), dir, changed)
    }

    /// Reads one task.
    pub fn get(&self, id: &TaskId) -> Result<Task, Error> {
        let task = self.team.tasks_dir()?.map(|dir| cache::read_one(self.team.io(), dir, *id));
        let task = task.transpose()?.flatten();
        task.map(|(_, task)| task).ok_or_else(|| self.no_such_task(*id))
    }

    /// Reads one task and its blockers, which together show whether it can be claimed.
    pub fn get_with_blockers(&self, id: &TaskId) -> Result<(Task, Vec<Arc<Task>>), Error> {
        let task = self.get(id)?;
        Ok((task, self.read_with_blockers(*id)?))
    }

    pub(super) fn read_with_blockers(&self, id: TaskId) -> Result<Vec<Arc<Task>>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Vec::new()) };
        let cached_tasks = cache::with_blockers(self.team.io(), dir, id);
        Ok(cached_tasks.into_iter().map(|cached_tasks| cached_tasks.task).collect())
    }

    pub(super) fn no_such_task(&self, id: TaskId) -> Error {
        Error::NoSuchTask { id, team: self.team.name().clone() }
    }

    /// Runs `plan` on a transaction and commits the transaction. If another program changed a file
    /// in the meantime, both steps are repeated. `plan` may use only the tasks in `scope`.
    pub(super) fn change<T>(
        &self,
        scope: ReadScope,
        mut plan: impl FnMut(&mut TaskTransaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.team.check_writable()?;
        let dir = self.team.create_tasks_dir()?;
        if matches!(scope, ReadScope::List) {
            self.team.task_cache().load_if_empty(self.team.io(), dir)?;
        }
        self.change_with_ticket(&Ticket::acquire(dir)?, scope, &mut plan)
    }

    pub(super) fn change_with_ticket<T>(
        &self,
        ticket: &Ticket,
        scope: ReadScope,
        plan: &mut impl FnMut(&mut TaskTransaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (io, dir) = (self.team.io(), ticket.dir());
        for attempt in 0..MAX_ATTEMPTS {
            let early_lock =
                (attempt >= UNLOCKED_ATTEMPTS).then(|| Lock::acquire(dir, LOCK_FILE)).transpose()?;
            let cached_tasks = match scope {
                ReadScope::List => self.team.task_cache().refresh(io, dir)?,
                ReadScope::Task(id) => Arc::new(cache::read_single(io, dir, id)),
                ReadScope::TaskAndBlockers(id) => Arc::new(cache::with_blockers(io, dir, id)),
            };
            let mut draft = TaskTransaction::new(&self.team, dir, cached_tasks);
            let result = plan(&mut draft);
            if draft.is_stale() {
                self.team.task_cache().clear();
                continue;
            }
            let result = result?;
            if draft.commit(early_lock)? {
                return Ok(result);
            }
        }
        Err(Error::Contended(self.path()))
    }
}
