//! What happens once the link keeps an item, so that it arrives also after a crash.

use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use std::collections::VecDeque;

/// What happens when the link keeps an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnAcceptance {
    /// The message is recorded, so that it is not sent again.
    RecordMessage { team: TeamName, key: String },
    /// The change of the task is recorded as sent.
    RecordChange { team: TeamName, id: TaskId },
    /// The oldest answer of the team is not sent again.
    ForgetAnswer { team: TeamName },
    /// The end of the team is forgotten.
    ForgetTeam { team: TeamName },
}

/// The items that were sent since the start, and that the link may lose yet.
#[derive(Debug)]
pub(crate) struct AwaitingAcceptance {
    /// The number of the last item.
    last_number: u64,
    /// What happens, with the number of the item.
    waiting: VecDeque<(u64, OnAcceptance)>,
}

impl AwaitingAcceptance {
    /// `last_number` is the number of the last item before the start.
    pub(crate) fn new(last_number: u64) -> AwaitingAcceptance {
        AwaitingAcceptance { last_number, waiting: VecDeque::new() }
    }

    /// Adds the next item.
    pub(crate) fn add(&mut self, on_acceptance: Option<OnAcceptance>) {
        self.last_number += 1;
        self.waiting.extend(on_acceptance.map(|on_acceptance| (self.last_number, on_acceptance)));
    }

    /// What happens next, with the number of the item, if the link keeps the items up to `number`.
    pub(crate) fn next_due(&self, number: u64) -> Option<(u64, OnAcceptance)> {
        self.waiting.front().filter(|(waiting, _)| *waiting <= number).cloned()
    }

    /// Forgets what has happened.
    pub(crate) fn remove_next(&mut self) {
        self.waiting.pop_front();
    }
}
