//! The changes of one task that were proposed to the home and have no answer yet.

use crate::json_fields::Fields;
use protocol::annex_link::TaskChange;
use std::collections::VecDeque;

/// The changes, oldest first. Each change starts from the task that the change before it leaves.
#[derive(Debug, Default, Clone)]
pub(crate) struct UnansweredTaskChanges {
    /// Each change with the number of its item. `None` if the link may lose the item in a crash.
    changes: VecDeque<(Option<u64>, TaskChange)>,
    /// The number of the last item of this task that has reached the link's spool, as far as this
    /// end knows.
    last_kept: u64,
}

impl UnansweredTaskChanges {
    /// The changes as the file of the task has them.
    pub(crate) fn new(changes: Vec<(Option<u64>, TaskChange)>, last_kept: u64) -> UnansweredTaskChanges {
        UnansweredTaskChanges { changes: changes.into(), last_kept }
    }

    pub(crate) fn last_kept(&self) -> u64 {
        self.last_kept
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds a change that is sent now.
    pub(crate) fn push(&mut self, change: TaskChange) {
        self.changes.push_back((None, change));
    }

    /// Removes the change that was added last, because it is not sent after all.
    pub(crate) fn remove_last(&mut self) {
        self.changes.pop_back();
    }

    /// The task that one of the changes creates.
    pub(crate) fn created(&self) -> Option<&Fields> {
        self.changes.iter().find_map(|(_, change)| match change {
            TaskChange::Create { task } => Some(task),
            TaskChange::Edit { .. } | TaskChange::Delete => None,
        })
    }

    /// After a crash: notes that the item `number`, which carries `change`, is in the link's spool.
    /// Does nothing if `number` is not higher than the last number that was noted. The home may
    /// then have answered this change already.
    pub(crate) fn add_kept(&mut self, number: u64, change: &TaskChange) {
        if number > self.last_kept && !self.note_kept(number, change) {
            self.changes.push_back((Some(number), change.clone()));
        }
    }

    /// Notes that a change has reached the link's spool. Returns false if there is no such change.
    pub(crate) fn note_kept(&mut self, number: u64, change: &TaskChange) -> bool {
        self.last_kept = self.last_kept.max(number);
        let is_same = |(kept, known): &&mut (Option<u64>, TaskChange)| kept.is_none() && known == change;
        let found = self.changes.iter_mut().find(is_same);
        found.map(|(kept, _)| *kept = Some(number)).is_some()
    }

    /// All changes, for the file.
    pub(crate) fn all(&self) -> Vec<(Option<u64>, TaskChange)> {
        self.changes.iter().cloned().collect()
    }

    /// The changes that the link may have lost in a crash.
    pub(crate) fn not_kept(&self) -> impl Iterator<Item = &TaskChange> {
        self.changes.iter().filter(|(kept, _)| kept.is_none()).map(|(_, change)| change)
    }

    /// Removes the oldest change if the home has answered it. Answers come in the order of the
    /// changes. After a crash of the home, an answer can come twice.
    pub(crate) fn remove_if_oldest(&mut self, answered: &TaskChange) {
        if self.changes.front().is_some_and(|(_, change)| change == answered) {
            self.changes.pop_front();
        }
    }

    /// The home's task after all changes, without the parts that the home will refuse.
    pub(crate) fn apply(&self, at_home: Option<&Fields>) -> Option<Fields> {
        let mut task = at_home.cloned();
        for (_, change) in &self.changes {
            task = change.apply(task.as_ref()).task;
        }
        task
    }
}
