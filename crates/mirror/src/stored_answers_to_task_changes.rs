//! At the home: answers to changes of tasks, until they reach the link's spool. A file stores them,
//! so that a crash loses none: the annex waits for each answer.

use crate::json_fields::json_line;
use protocol::annex_link::ItemPayload;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use store::{AppendOnlyFile, Durability, Error, StateDir};

/// The answers, oldest first.
#[derive(Debug)]
pub(crate) struct StoredTaskAnswers {
    file: AppendOnlyFile,
    answers: VecDeque<ItemPayload>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerLine {
    Answer(Box<ItemPayload>),
    /// The oldest answer of the lines before has reached the link's spool.
    Kept,
}

impl StoredTaskAnswers {
    /// Reads the answers of a team. Lines that can't be read are skipped.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn open(state: &StateDir, team: &TeamName) -> Result<StoredTaskAnswers, Error> {
        let dir = StateDir::open(state.path())?;
        let (file, lines) = AppendOnlyFile::open(dir, &answers_file(team), Durability::Process)?;
        let mut answers = VecDeque::new();
        for line in lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
            match line {
                AnswerLine::Answer(answer) => answers.push_back(*answer),
                AnswerLine::Kept => drop(answers.pop_front()),
            }
        }
        Ok(StoredTaskAnswers { file, answers })
    }

    /// All answers. They are sent again after a crash.
    pub(crate) fn all(&self) -> Vec<ItemPayload> {
        self.answers.iter().cloned().collect()
    }

    /// Adds an answer, before it is sent.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn add(&mut self, answer: &ItemPayload) -> Result<(), Error> {
        self.append(&AnswerLine::Answer(Box::new(answer.clone())))?;
        self.answers.push_back(answer.clone());
        Ok(())
    }

    /// Removes the oldest answer, because it has reached the link's spool.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn remove_oldest(&mut self) -> Result<(), Error> {
        match self.answers.len() {
            0 => return Ok(()),
            1 => self.file.replace(b"")?,
            _ => self.append(&AnswerLine::Kept)?,
        }
        self.answers.pop_front();
        Ok(())
    }

    /// Removes the oldest answer if it equals `answer`. The caller has found `answer` in the link's
    /// spool.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn remove_if_oldest(&mut self, answer: &ItemPayload) -> Result<(), Error> {
        let text = |answer| serde_json::to_string(answer).ok();
        match self.answers.front().is_some_and(|oldest| text(oldest) == text(answer)) {
            true => self.remove_oldest(),
            false => Ok(()),
        }
    }

    fn append(&mut self, line: &AnswerLine) -> Result<(), Error> {
        self.file.append(&json_line(line))
    }
}

/// The name of the file with the answers of a team.
pub(crate) fn answers_file(team: &TeamName) -> String {
    format!("{team}.answers")
}
