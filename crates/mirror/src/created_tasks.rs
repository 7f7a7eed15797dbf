//! At the home: the tasks that were created at the annex, and the ids that they have here. A file
//! records them, because the annex may send a creation again after a crash of either end.

use crate::json_fields::{Fields, json_line};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use store::{AppendOnlyFile, Durability, Error, StateDir};

/// The created tasks of one team.
#[derive(Debug)]
pub(crate) struct CreatedTasks {
    file: AppendOnlyFile,
    tasks: Vec<CreatedTask>,
}

/// A task that was created at the annex. A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CreatedTask {
    /// The id that the annex gave it.
    annex_id: TaskId,
    /// The fields as the annex created them.
    task: Fields,
    progress: CreationProgress,
}

/// How far the creation here has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CreationProgress {
    /// The creation of the task has begun. If a crash follows, the task may exist or not. If it
    /// exists, its id is higher than `last_number`. Tasks with lower ids are other tasks.
    Begun { last_number: u32 },
    /// The task has this id here.
    Done { home_id: TaskId },
}

impl CreatedTasks {
    /// Reads the tasks of a team. Lines that can't be read are skipped.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn open(state: &StateDir, team: &TeamName) -> Result<CreatedTasks, Error> {
        let dir = StateDir::open(state.path())?;
        let (file, lines) = AppendOnlyFile::open(dir, &created_tasks_file(team), Durability::Process)?;
        let lines = lines.split(|byte| *byte == b'\n');
        Ok(CreatedTasks { file, tasks: lines.filter_map(|line| serde_json::from_slice(line).ok()).collect() })
    }

    /// How far the creation of a task has come. `None` if it was not begun.
    pub(crate) fn progress(&self, annex_id: TaskId, task: &Fields) -> Option<CreationProgress> {
        let is_same = |created: &&CreatedTask| created.annex_id == annex_id && created.task == *task;
        self.tasks.iter().rfind(is_same).map(|created| created.progress)
    }

    /// Notes how far the creation of a task has come.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn note(
        &mut self,
        annex_id: TaskId,
        task: &Fields,
        progress: CreationProgress,
    ) -> Result<(), Error> {
        let created = CreatedTask { annex_id, task: task.clone(), progress };
        self.file.append(&json_line(&created))?;
        self.tasks.push(created);
        Ok(())
    }
}

/// The name of the file with the created tasks of a team.
pub(crate) fn created_tasks_file(team: &TeamName) -> String {
    format!("{team}.created")
}
