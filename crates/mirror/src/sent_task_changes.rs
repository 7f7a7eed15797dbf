//! The changes of one task that were proposed to the home, and that it has not answered yet.

use crate::json_fields::Fields;
use protocol::annex_link::TaskChange;
use std::collections::VecDeque;

/// The changes, oldest first. Each one continues the one before.
#[derive(Debug, Default, Clone)]
pub(crate) struct SentTaskChanges {
    /// With the numbers of their items. `None`: the link may lose the item in a crash.
    changes: VecDeque<(Option<u64>, TaskChange)>,
}

impl SentTaskChanges {
    /// The changes of the file.
    pub(crate) fn new(changes: Vec<(Option<u64>, TaskChange)>) -> SentTaskChanges {
        SentTaskChanges { changes: changes.into() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds a change that is sent now.
    pub(crate) fn push(&mut self, change: TaskChange) {
        self.changes.push_back((None, change));
    }

    /// Whether the task was created by one of the changes.
    pub(crate) fn has_creation(&self) -> bool {
        self.changes.iter().any(|(_, change)| matches!(change, TaskChange::Create { .. }))
    }

    /// Adds a change that the link keeps, unless it is known.
    pub(crate) fn add_kept(&mut self, number: u64, change: &TaskChange) {
        if self.changes.iter().any(|(known, _)| known.is_some_and(|known| known >= number)) {
            return;
        }
        let is_same = |(kept, known): &&mut (Option<u64>, TaskChange)| kept.is_none() && known == change;
        match self.changes.iter_mut().find(is_same) {
            Some((kept, _)) => *kept = Some(number),
            None => self.changes.push_back((Some(number), change.clone())),
        }
    }

    /// Notes that the link keeps the oldest change that it did not keep before.
    pub(crate) fn note_kept(&mut self, number: u64) {
        if let Some((kept, _)) = self.changes.iter_mut().find(|(kept, _)| kept.is_none()) {
            *kept = Some(number);
        }
    }

    /// All changes, for the file.
    pub(crate) fn all(&self) -> Vec<(Option<u64>, TaskChange)> {
        self.changes.iter().cloned().collect()
    }

    /// The changes that the link may have lost in a crash.
    pub(crate) fn not_kept(&self) -> impl Iterator<Item = &TaskChange> {
        self.changes.iter().filter(|(kept, _)| kept.is_none()).map(|(_, change)| change)
    }

    /// Removes the oldest change that equals this one, which the home has answered.
    pub(crate) fn remove(&mut self, answered: &TaskChange) {
        if let Some(index) = self.changes.iter().position(|(_, change)| change == answered) {
            self.changes.remove(index);
        }
    }

    /// The task with the changes on top, without what the home will refuse.
    pub(crate) fn apply(&self, at_home: Option<&Fields>) -> Option<Fields> {
        let mut task = at_home.cloned();
        for (_, change) in &self.changes {
            task = change.apply(task.as_ref()).task;
        }
        task
    }
}
