//! A change of the list before it is in place: texts edited in memory, checked against the list as the edits
//! leave it. The files go in one by one, the one that counts last, so that a crash between two leaves half a
//! link and never a claim by halves.

use super::LOCK;
use super::listed::{Listed, MARK, TaskFile, file_name, mark};
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{Change, Shape, Snapshot, Way, settle};
use crate::lock::Lock;
use protocol::id::TaskId;
use protocol::name::TeamName;
use protocol::task::{Task, cycle, edited};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The list with the changes so far.
pub(super) struct Draft<'t> {
    team: &'t TeamName,
    path: PathBuf,
    files: Vec<TaskFile>,
    tasks: Vec<Task>,
    texts: BTreeMap<TaskId, String>,
    last: Option<TaskId>,
    removed: Option<TaskId>,
}

impl<'t> Draft<'t> {
    /// Starts from what is `listed` in the directory `path`.
    pub(super) fn new(team: &'t TeamName, path: PathBuf, listed: Listed) -> Draft<'t> {
        let tasks = listed.tasks();
        Draft { team, path, files: listed.0, tasks, texts: BTreeMap::new(), last: None, removed: None }
    }

    /// The list as it will be.
    pub(super) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The task `id` as it will be.
    pub(super) fn task(&self, id: TaskId) -> Result<&Task, Error> {
        let found = self.tasks.iter().find(|task| task.id == id);
        found.ok_or_else(|| Error::NoSuchTask { id, team: self.team.clone() })
    }

    /// Sets fields of a task; none takes a field out.
    pub(super) fn set(&mut self, id: TaskId, fields: &[(&str, Option<Value>)]) -> Result<(), Error> {
        self.rewrite(id, |text| edited(text, fields))
    }

    /// The task `id`, whose file must be readable and goes in last.
    pub(super) fn main(&mut self, id: TaskId) -> Result<Task, Error> {
        let at = self.position(id)?;
        self.snapshot(at)?;
        self.last = Some(id);
        Ok(self.tasks[at].clone())
    }

    fn snapshot(&self, at: usize) -> Result<&Snapshot, Error> {
        let file = &self.files[at];
        file.snapshot.as_ref().map_err(|why| self.malformed(file.task.id, why.clone()))
    }

    fn malformed(&self, id: TaskId, why: String) -> Error {
        Error::Malformed { path: self.path.join(file_name(id)), why }
    }

    /// Edits a task's text.
    pub(super) fn rewrite<E: ToString>(
        &mut self,
        id: TaskId,
        edit: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<(), Error> {
        let at = self.position(id)?;
        let before = self.snapshot(at)?.text();
        let before = self.texts.get(&id).map_or(before, String::as_str);
        let text = edit(before).map_err(|error| self.malformed(id, error.to_string()))?;
        self.tasks[at] = Task::parse(&text).map_err(|error| self.malformed(id, error.to_string()))?;
        self.texts.insert(id, text);
        Ok(())
    }

    /// Lets `blocked` wait for `blocker`, at both ends.
    pub(super) fn link(&mut self, blocker: TaskId, blocked: TaskId) -> Result<(), Error> {
        let (mut blocks, mut blocked_by) =
            (self.task(blocker)?.blocks.clone(), self.task(blocked)?.blocked_by.clone());
        if let Some(way) = cycle(&self.tasks, blocker, blocked) {
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
        let at = self.position(id)?;
        self.snapshot(at)?;
        let linked =
            |task: &&Task| task.id != id && (task.blocks.contains(&id) || task.blocked_by.contains(&id));
        let linked: Vec<Task> = self.tasks.iter().filter(linked).cloned().collect();
        for mut task in linked {
            task.blocks.retain(|other| *other != id);
            task.blocked_by.retain(|other| *other != id);
            let fields = [("blocks", Some(ids(&task.blocks))), ("blockedBy", Some(ids(&task.blocked_by)))];
            self.set(task.id, &fields)?;
        }
        self.removed = Some(id);
        Ok(())
    }

    fn position(&self, id: TaskId) -> Result<usize, Error> {
        let found = self.files.iter().position(|file| file.task.id == id);
        found.ok_or_else(|| Error::NoSuchTask { id, team: self.team.clone() })
    }

    /// Puts everything in place; false where others were faster, and the caller drafts again. `early` is the
    /// list's lock, if it was taken before reading.
    pub(super) fn commit(self, way: &Way, dir: &Directory, early: Option<Lock>) -> Result<bool, Error> {
        let changes = self.changes(way, dir)?;
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
    fn changes<'d>(self, way: &Way, dir: &'d Directory) -> Result<Vec<(String, Change<'d>)>, Error> {
        let mut changes = Vec::new();
        let mut last = Vec::new();
        for file in self.files {
            let (id, name) = (file.task.id, file_name(file.task.id));
            let Ok(snapshot) = file.snapshot else { continue };
            if Some(id) == self.removed {
                changes.extend(raised(way, dir, id)?);
                last.push((name.clone(), Change::removal(dir, &name, snapshot)));
                continue;
            }
            let Some(text) = self.texts.get(&id).filter(|text| *text != snapshot.text()) else { continue };
            let change = Change::prepare(way, dir, &name, Some(snapshot), text, Shape::Object)?;
            let order = if Some(id) == self.last { &mut last } else { &mut changes };
            order.push((name, change));
        }
        changes.extend(last);
        Ok(changes)
    }
}

/// The change of the high-water mark to `id`, unless it is there already.
fn raised<'d>(way: &Way, dir: &'d Directory, id: TaskId) -> Result<Option<(String, Change<'d>)>, Error> {
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
