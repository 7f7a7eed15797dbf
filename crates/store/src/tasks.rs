//! A team's task list. Processes of ours (and tools that flock) queue on `.lock`; each then reads the list,
//! drafts its change, and takes the locks that others know only to put it in place: the list's, and inside it
//! that of each file. Whoever becomes an owner is told after all of them are released.

mod announce;
mod batch;
mod claim;
mod create;
mod draft;
mod listed;
mod turn;
mod update;

pub use create::{NewTask, Planned};
pub(crate) use listed::{MARK, Seen};
pub use update::TaskUpdate;

use crate::error::Error;
use crate::file::{ATTEMPTS, OPTIMISTIC};
use crate::lock::Lock;
use crate::team::Team;
use draft::Draft;
use protocol::id::TaskId;
use protocol::task::{Task, TaskStatus};
use serde_json::Map;
use std::path::PathBuf;
use std::sync::Arc;
use turn::Turn;

/// What the list's lock is taken on: 0 bytes, for ever.
const LOCK: &str = ".lock";

/// What of the list a change is drafted from.
#[derive(Debug, Clone, Copy)]
enum Scope {
    List,
    Task(TaskId),
    /// And what it waits for.
    Blocked(TaskId),
}

/// The task list of a team.
#[derive(Debug, Clone)]
pub struct Tasks {
    team: Team,
}

impl Tasks {
    pub(crate) fn new(team: Team) -> Tasks {
        Tasks { team }
    }

    /// Makes the directory and the file that the lock is taken on.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        Turn::take(self.team.task_dir_made()?).map(drop)
    }

    /// The highest id that deletions left behind; 0 for none.
    ///
    /// # Errors
    /// Where it can't be read, or is no number: then no task can be made.
    pub fn mark(&self) -> Result<u32, Error> {
        Ok(self.team.task_dir()?.map(listed::mark).transpose()?.map_or(0, |(mark, _)| mark))
    }

    /// Where the task files are.
    pub fn path(&self) -> PathBuf {
        self.team.all_tasks().join(self.team.name().as_str())
    }

    /// All tasks by number, internal ones too.
    ///
    /// One whose file can't be read is listed all the same, with a subject that says why and the status
    /// `unreadable`: it may well be open, so what waits for it stays blocked.
    pub fn list(&self) -> Result<Vec<Task>, Error> {
        Ok(self.list_shared()?.iter().map(|task| Task::clone(task)).collect())
    }

    /// The same without copies of what the handle keeps; for whoever looks often. A second look through the
    /// same handle, or a copy of it, reads only the files that have changed.
    pub fn list_shared(&self) -> Result<Vec<Arc<Task>>, Error> {
        let Some(dir) = self.team.task_dir()? else { return Ok(Vec::new()) };
        let listed = self.team.seen().look(self.team.way(), dir)?;
        Ok(listed.iter().map(|listed| Arc::clone(&listed.task)).collect())
    }

    /// The list as this handle saw it last, with a look at these files alone: for whoever is told which files
    /// change, and looks at all of them now and then.
    pub fn list_changed(&self, changed: &[TaskId]) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let Some(dir) = self.team.task_dir()? else { return Ok(Arc::default()) };
        self.team.seen().look_at(self.team.way(), dir, changed)
    }

    /// One task.
    pub fn get(&self, id: &TaskId) -> Result<Task, Error> {
        let found = self.team.task_dir()?.map(|dir| listed::read_one(self.team.way(), dir, *id));
        let found = found.transpose()?.flatten();
        found.map(|(_, task)| task).ok_or_else(|| self.no_task(*id))
    }

    /// One task and those that it waits for, as their files are now: all that says whether it can be taken.
    pub fn get_with_blockers(&self, id: &TaskId) -> Result<(Task, Vec<Arc<Task>>), Error> {
        let task = self.get(id)?;
        Ok((task, self.with_blockers(*id)?))
    }

    fn with_blockers(&self, id: TaskId) -> Result<Vec<Arc<Task>>, Error> {
        let Some(dir) = self.team.task_dir()? else { return Ok(Vec::new()) };
        let listed = listed::with_blockers(self.team.way(), dir, id);
        Ok(listed.into_iter().map(|listed| listed.task).collect())
    }

    fn no_task(&self, id: TaskId) -> Error {
        Error::NoSuchTask { id, team: self.team.name().clone() }
    }

    /// Drafts a change of the list as it is, and puts it in place; again where others were faster. It asks for nothing
    /// beyond its scope.
    fn change_of<T>(
        &self,
        scope: Scope,
        mut plan: impl FnMut(&mut Draft) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.team.writable()?;
        let dir = self.team.task_dir_made()?;
        if matches!(scope, Scope::List) {
            self.team.seen().look_first(self.team.way(), dir)?;
        }
        self.change_in(&Turn::take(dir)?, scope, &mut plan)
    }

    fn change_in<T>(
        &self,
        turn: &Turn,
        scope: Scope,
        plan: &mut impl FnMut(&mut Draft) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (way, dir) = (self.team.way(), turn.dir());
        for attempt in 0..ATTEMPTS {
            let early = (attempt >= OPTIMISTIC).then(|| Lock::acquire(dir, LOCK)).transpose()?;
            let listed = match scope {
                Scope::List => self.team.seen().look(way, dir)?,
                Scope::Task(id) => Arc::new(listed::only(way, dir, id)),
                Scope::Blocked(id) => Arc::new(listed::with_blockers(way, dir, id)),
            };
            let mut draft = Draft::new(&self.team, dir, listed);
            let result = plan(&mut draft);
            if draft.is_stale() {
                self.team.seen().forget();
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

/// The status of a task that stands for a file which can't be read: damaged, or half written by somebody who is held up.
pub const UNREADABLE: &str = "unreadable";

/// The task that stands for a file which can't be read.
fn unreadable(id: TaskId, why: &Error) -> Task {
    Task {
        id,
        subject: why.to_string(),
        description: String::new(),
        active_form: None,
        status: TaskStatus::Other(UNREADABLE.to_owned()),
        owner: None,
        blocks: Vec::new(),
        blocked_by: Vec::new(),
        metadata: None,
        unknown_fields: Map::new(),
    }
}
