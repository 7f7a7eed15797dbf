//! The task files as they are now, each with the snapshot that a change of it starts from.

use super::unreadable;
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{Shape, Snapshot, Way, read_for};
use crate::pause::Pause;
use protocol::id::TaskId;
use protocol::task::Task;
use std::time::Duration;

/// The highest id ever used, as far as deletions go.
pub(super) const MARK: &str = ".highwatermark";

const PATIENCE: Duration = Duration::from_secs(2);

/// A task and its file.
#[derive(Debug)]
pub(super) struct TaskFile {
    /// What it says.
    pub(super) task: Task,
    /// How it was read, or why it can't be; `task` then only stands for it.
    pub(super) snapshot: Result<Snapshot, String>,
}

/// All of them, by number.
#[derive(Debug)]
pub(super) struct Listed(pub(super) Vec<TaskFile>);

impl Listed {
    /// Reads the list. Half-written files are waited for, two seconds for the first that stays so.
    pub(super) fn read(way: &Way, dir: &Directory) -> Result<Listed, Error> {
        let mut files = Vec::new();
        let mut patience = PATIENCE;
        for id in ids(dir)? {
            match read_file(way, dir, id, patience) {
                Ok(Some(file)) => files.push(file),
                // Deleted since the directory was listed.
                Ok(None) => {}
                Err(why) => {
                    patience = Duration::ZERO;
                    files.push(TaskFile { task: unreadable(id, &why), snapshot: Err(reason(why)) });
                }
            }
        }
        Ok(Listed(files))
    }

    /// What they say.
    pub(super) fn tasks(&self) -> Vec<Task> {
        self.0.iter().map(|file| file.task.clone()).collect()
    }
}

/// The file of a task in its directory.
pub(super) fn file_name(id: TaskId) -> String {
    format!("{id}.json")
}

/// The ids of all files, in order.
pub(super) fn ids(dir: &Directory) -> Result<Vec<TaskId>, Error> {
    let names = dir.names()?;
    let ids = names.iter().filter_map(|name| TaskId::parse(name.strip_suffix(".json")?).ok());
    let mut ids: Vec<TaskId> = ids.collect();
    ids.sort();
    Ok(ids)
}

/// The task `id`; none if there is no such file.
pub(super) fn read_one(way: &Way, dir: &Directory, id: TaskId) -> Result<Option<TaskFile>, Error> {
    read_file(way, dir, id, PATIENCE)
}

fn read_file(way: &Way, dir: &Directory, id: TaskId, patience: Duration) -> Result<Option<TaskFile>, Error> {
    let name = file_name(id);
    let Some(snapshot) = read_for(way, dir, &name, Shape::Object, patience)? else { return Ok(None) };
    let malformed = |why: String| Error::Malformed { path: dir.join(&name), why };
    let task = Task::parse(snapshot.text()).map_err(|error| malformed(error.to_string()))?;
    if task.id != id {
        return Err(malformed(format!("field id should be \"{id}\", but is \"{}\"", task.id)));
    }
    Ok(Some(TaskFile { task, snapshot: Ok(snapshot) }))
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
