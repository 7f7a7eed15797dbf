//! A task list as a whole: reading it, and changing it in one step.

use super::cache;
use super::high_water_mark::read_high_water_mark;
use super::ticket::Ticket;
use super::transaction::TaskTransaction;
use crate::error::Error;
use crate::file::{MAX_ATTEMPTS, UNLOCKED_ATTEMPTS};
use crate::layout::LOCK_FILE;
use crate::lock::Lock;
use crate::team::Team;
use protocol::id::TaskId;
use protocol::task::Task;
use std::path::PathBuf;
use std::sync::Arc;

/// What of the list a change is drafted from.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadScope {
    List,
    Task(TaskId),
    /// And what it waits for.
    TaskAndBlockers(TaskId),
}

/// The task list of a team.
#[derive(Debug, Clone)]
pub struct Tasks {
    pub(super) team: Team,
}

impl Team {
    /// The task list.
    pub fn tasks(&self) -> Tasks {
        Tasks::new(self.clone())
    }
}

impl Tasks {
    pub(super) fn new(team: Team) -> Tasks {
        Tasks { team }
    }

    /// Makes the directory and the file that the lock is taken on.
    pub(crate) fn create_list(&self) -> Result<(), Error> {
        Ticket::acquire(self.team.create_tasks_dir()?).map(drop)
    }

    /// The highest id that deletions left behind; 0 for none.
    ///
    /// # Errors
    /// Where it can't be read, or is no number: then no task can be made.
    pub fn high_water_mark(&self) -> Result<u32, Error> {
        Ok(self.team.tasks_dir()?.map(read_high_water_mark).transpose()?.map_or(0, |(mark, _)| mark))
    }

    /// Where the task files are.
    pub fn path(&self) -> PathBuf {
        self.team.all_tasks_dir().join(self.team.name().as_str())
    }

    /// All tasks by number, internal ones too.
    ///
    /// One whose file can't be read is listed all the same, with a subject that says why and the status
    /// `unreadable`: it may well be open, so what waits for it stays blocked.
    pub fn list(&self) -> Result<Vec<Task>, Error> {
        Ok(self.list_cached()?.iter().map(|task| Task::clone(task)).collect())
    }

    /// The same without copies of what the handle keeps; for whoever looks often. A second look through the
    /// same handle, or a copy of it, reads only the files that have changed.
    pub fn list_cached(&self) -> Result<Vec<Arc<Task>>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Vec::new()) };
        let listed = self.team.task_cache().refresh(self.team.io(), dir)?;
        Ok(listed.iter().map(|listed| Arc::clone(&listed.task)).collect())
    }

    /// The list as this handle saw it last, with a look at these files alone: for whoever is told which files
    /// change, and looks at all of them now and then.
    pub fn list_after_changes(&self, changed: &[TaskId]) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Arc::default()) };
        self.team.task_cache().refresh_some(self.team.io(), dir, changed)
    }

    /// One task.
    pub fn get(&self, id: &TaskId) -> Result<Task, Error> {
        let found = self.team.tasks_dir()?.map(|dir| cache::read_one(self.team.io(), dir, *id));
        let found = found.transpose()?.flatten();
        found.map(|(_, task)| task).ok_or_else(|| self.no_such_task(*id))
    }

    /// One task and those that it waits for, as their files are now: all that says whether it can be taken.
    pub fn get_with_blockers(&self, id: &TaskId) -> Result<(Task, Vec<Arc<Task>>), Error> {
        let task = self.get(id)?;
        Ok((task, self.read_with_blockers(*id)?))
    }

    pub(super) fn read_with_blockers(&self, id: TaskId) -> Result<Vec<Arc<Task>>, Error> {
        let Some(dir) = self.team.tasks_dir()? else { return Ok(Vec::new()) };
        let listed = cache::with_blockers(self.team.io(), dir, id);
        Ok(listed.into_iter().map(|listed| listed.task).collect())
    }

    pub(super) fn no_such_task(&self, id: TaskId) -> Error {
        Error::NoSuchTask { id, team: self.team.name().clone() }
    }

    /// Drafts a change of the list as it is, and puts it in place; again where others were faster. It asks for nothing
    /// beyond its scope.
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
        turn: &Ticket,
        scope: ReadScope,
        plan: &mut impl FnMut(&mut TaskTransaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (way, dir) = (self.team.io(), turn.dir());
        for attempt in 0..MAX_ATTEMPTS {
            let early = (attempt >= UNLOCKED_ATTEMPTS).then(|| Lock::acquire(dir, LOCK_FILE)).transpose()?;
            let listed = match scope {
                ReadScope::List => self.team.task_cache().refresh(way, dir)?,
                ReadScope::Task(id) => Arc::new(cache::read_single(way, dir, id)),
                ReadScope::TaskAndBlockers(id) => Arc::new(cache::with_blockers(way, dir, id)),
            };
            let mut draft = TaskTransaction::new(&self.team, dir, listed);
            let result = plan(&mut draft);
            if draft.is_stale() {
                self.team.task_cache().clear();
                continue;
            }
            let result = result?;
            if draft.commit(early)? {
                return Ok(result);
            }
        }
        Err(Error::Contended(self.path()))
    }
}
