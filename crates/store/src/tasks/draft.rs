//! A change of the list before it is in place: texts edited in memory, checked against the list as the edits
//! leave it. The files go in one by one, the one that counts last, so that a crash between two leaves half a
//! link and never a claim by halves.

use super::LOCK;
use super::listed::{Listed, MARK, file_name, mark, read_one};
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{Change, Shape, Snapshot, Way, settle};
use crate::lock::Lock;
use crate::team::Team;
use protocol::id::TaskId;
use protocol::task::{Task, find_cycle, with_fields};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The list with the changes so far.
pub(super) struct Draft<'t> {
    team: &'t Team,
    dir: &'t Directory,
    listed: Arc<Vec<Listed>>,
    tasks: Vec<Arc<Task>>,
    texts: BTreeMap<TaskId, Text>,
    last: Option<TaskId>,
    removed: Option<TaskId>,
    stale: bool,
}

/// A file that this change edits: as it is, and as it will be.
struct Text {
    before: Snapshot,
    after: String,
}

impl<'t> Draft<'t> {
    /// Starts from what is `listed` in `dir`.
    pub(super) fn new(team: &'t Team, dir: &'t Directory, listed: Arc<Vec<Listed>>) -> Draft<'t> {
        let tasks = listed.iter().map(|listed| Arc::clone(&listed.task)).collect();
        Draft { team, dir, listed, tasks, texts: BTreeMap::new(), last: None, removed: None, stale: false }
    }

    /// True if a file had changed since the list was read: what was drafted, or refused, is worth nothing.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// The list as it will be.
    pub(super) fn tasks(&self) -> &[Arc<Task>] {
        &self.tasks
    }

    /// The task `id` as it will be.
    pub(super) fn task(&self, id: TaskId) -> Result<&Task, Error> {
        Ok(&self.tasks[self.position(id)?])
    }

    /// Sets fields of a task; none takes a field out.
    pub(super) fn set(&mut self, id: TaskId, fields: &[(&str, Option<Value>)]) -> Result<(), Error> {
        self.rewrite(id, |text| with_fields(text, fields))
    }

    /// The task `id`, whose file must be readable and goes in last.
    pub(super) fn main(&mut self, id: TaskId) -> Result<Task, Error> {
        let at = self.opened(id)?;
        self.last = Some(id);
        Ok(Task::clone(&self.tasks[at]))
    }

    /// Reads the file of a task that is about to change. The list may have been read long before.
    fn opened(&mut self, id: TaskId) -> Result<usize, Error> {
        let at = self.position(id)?;
        if self.texts.contains_key(&id) {
            return Ok(at);
        }
        if let Some(why) = &self.listed[at].fault {
            return Err(self.malformed(id, why.clone()));
        }
        let Some((before, task)) = read_one(self.team.way(), self.dir, id)? else {
            self.stale = true;
            return Err(self.missing(id));
        };
        if *self.tasks[at] != task {
            self.stale = true;
            self.tasks[at] = Arc::new(task);
        }
        let after = before.text().to_owned();
        self.texts.insert(id, Text { before, after });
        Ok(at)
    }

    fn missing(&self, id: TaskId) -> Error {
        Error::NoSuchTask { id, team: self.team.name().clone() }
    }

    fn malformed(&self, id: TaskId, why: String) -> Error {
        Error::Malformed { path: self.dir.join(&file_name(id)), why }
    }

    /// Edits a task's text.
    pub(super) fn rewrite<E: ToString>(
        &mut self,
        id: TaskId,
        edit: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<(), Error> {
        let at = self.opened(id)?;
        let before = self.texts.get(&id).map_or("", |text| &text.after);
        let after = edit(before).map_err(|error| self.malformed(id, error.to_string()))?;
        let task = Task::parse(&after).map_err(|error| self.malformed(id, error.to_string()))?;
        self.tasks[at] = Arc::new(task);
        self.texts.entry(id).and_modify(|text| text.after = after);
        Ok(())
    }

    /// Lets `blocked` wait for `blocker`, at both ends.
    pub(super) fn link(&mut self, blocker: TaskId, blocked: TaskId) -> Result<(), Error> {
        let (mut blocks, mut blocked_by) =
            (self.task(blocker)?.blocks.clone(), self.task(blocked)?.blocked_by.clone());
        if let Some(way) = find_cycle(&self.tasks, blocker, blocked) {
            return Err(Error::Cycle { way });
        }
        if !blocks.contains(&blocked) {
            blocks.push(blocked);
            self.set(blocker, &[("blocks", Some(ids(&blocks)))])?;
        }
        if !blocked_by.contains(&blocker) {
            blocked_by.push(blocker);
            self.set(blocked, &[("blockedBy", Some(ids(&blocked_by)))])?;
        }
        Ok(())
    }

    /// Removes a task and all links to it.
    pub(super) fn remove(&mut self, id: TaskId) -> Result<(), Error> {
        self.opened(id)?;
        let linked =
            |task: &&Arc<Task>| task.id != id && (task.blocks.contains(&id) || task.blocked_by.contains(&id));
        let linked: Vec<Arc<Task>> = self.tasks.iter().filter(linked).cloned().collect();
        for mut task in linked.iter().map(|task| Task::clone(task)) {
            task.blocks.retain(|other| *other != id);
            task.blocked_by.retain(|other| *other != id);
            let fields = [("blocks", Some(ids(&task.blocks))), ("blockedBy", Some(ids(&task.blocked_by)))];
            self.set(task.id, &fields)?;
        }
        self.removed = Some(id);
        Ok(())
    }

    fn position(&self, id: TaskId) -> Result<usize, Error> {
        self.tasks.binary_search_by_key(&id, |task| task.id).map_err(|_| self.missing(id))
    }

    /// Puts everything in place; false where others were faster, and the caller drafts again. `early` is the
    /// list's lock, if it was taken before reading.
    pub(super) fn commit(self, early: Option<Lock>) -> Result<bool, Error> {
        let (way, dir) = (self.team.way(), self.dir);
        let changes = self.changes()?;
        if changes.is_empty() {
            return Ok(true);
        }
        let list = early.map_or_else(|| Lock::acquire(dir, LOCK), Ok)?;
        for (name, change) in changes {
            let done = if name == MARK {
                change.commit(&list)?
            } else {
                let own = Lock::acquire(dir, &name)?;
                list.is_ours()? && change.commit(&own)?
            };
            if !done {
                return Ok(false);
            }
        }
        drop(list);
        settle(dir, way.durability)?;
        Ok(true)
    }

    /// The prepared changes in the order in which they go in: the mark before the file it stands for.
    fn changes(self) -> Result<Vec<(String, Change<'t>)>, Error> {
        let (way, dir) = (self.team.way(), self.dir);
        let mut changes = Vec::new();
        let mut last = Vec::new();
        for (id, Text { before, after }) in self.texts {
            let name = file_name(id);
            if Some(id) == self.removed {
                changes.extend(raised(way, dir, id)?);
                last.push((name.clone(), Change::removal(dir, &name, before)));
                continue;
            }
            if after == before.text() {
                continue;
            }
            let change = Change::prepare(way, dir, &name, Some(before), &after, Shape::Object)?;
            let order = if Some(id) == self.last { &mut last } else { &mut changes };
            order.push((name, change));
        }
        changes.extend(last);
        Ok(changes)
    }
}

/// The change of the high-water mark to `id`, unless it is there already.
pub(super) fn raised<'d>(
    way: &Way,
    dir: &'d Directory,
    id: TaskId,
) -> Result<Option<(String, Change<'d>)>, Error> {
    let (highest, before) = mark(dir)?;
    if highest >= id.number() {
        return Ok(None);
    }
    let change = Change::prepare(way, dir, MARK, before, &id.to_string(), Shape::Object)?;
    Ok(Some((MARK.to_owned(), change)))
}

fn ids(ids: &[TaskId]) -> Value {
    ids.iter().map(TaskId::to_string).collect()
}
