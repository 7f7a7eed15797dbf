//! What the files thread remembers between scans, and the events of the file watcher.

use crate::core::core_event::CoreEvent;
use crate::core::effect::Wake;
use crate::core::jobs::file_jobs::{MessageContent, TaskSelection};
use crate::core::jobs::file_results::{InboxScanResult, MessageHeader};
use crate::simulator::team_files::SimulatedMessage;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file of a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TeamFile {
    Config,
    Inbox(MemberName),
    Task(TaskId),
}

/// A file event that the watcher has not reported yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatcherEvent {
    Changed(TeamName, TeamFile),
    Barrier(u64),
}

/// The scan state of one daemon. A killed daemon loses it.
#[derive(Debug, Default)]
pub(super) struct ScanMemory {
    /// How many entries of each inbox earlier daemons wrote to the event log.
    pub(super) logged_counts: BTreeMap<(TeamName, MemberName), usize>,
    /// The number of entries and of unread entries at the last scan of each inbox.
    pub(super) cursors: BTreeMap<(TeamName, MemberName), (usize, usize)>,
    /// The version of each file at the last rescan.
    pub(super) files: BTreeMap<(TeamName, TeamFile), u64>,
    /// The tasks of each team at their last scan.
    pub(super) tasks: BTreeMap<TeamName, BTreeMap<TaskId, Arc<Task>>>,
    /// The teams whose directories are watched.
    pub(super) watched: BTreeSet<TeamName>,
}

/// A scan that finds at least this many new messages counts as incomplete, so another scan follows.
const LONG_SCAN: usize = 2;

impl ScanMemory {
    /// Forgets a team. A later team of the same name begins with empty inboxes.
    pub(super) fn forget_team(&mut self, team: &TeamName) {
        self.logged_counts.retain(|(owner, _), _| owner != team);
        self.cursors.retain(|(owner, _), _| owner != team);
        self.tasks.remove(team);
    }

    /// Scans the selected tasks, or all tasks at the first scan of a team. Returns all known tasks.
    pub(super) fn scan_tasks(
        &mut self,
        team: &TeamName,
        selection: TaskSelection,
        current: &[Arc<Task>],
    ) -> Arc<Vec<Arc<Task>>> {
        let current = || current.iter().map(|task| (task.id, task.clone()));
        let tasks = self.tasks.entry(team.clone()).or_insert_with(|| current().collect());
        match selection {
            TaskSelection::All => *tasks = current().collect(),
            TaskSelection::Only(changed) => {
                tasks.retain(|id, _| !changed.contains(id));
                tasks.extend(current().filter(|(id, _)| changed.contains(id)));
            }
        }
        Arc::new(tasks.values().cloned().collect())
    }

    pub(super) fn scan_inbox(
        &mut self,
        team: &TeamName,
        name: &MemberName,
        messages: &[SimulatedMessage],
        content: MessageContent,
    ) -> InboxScanResult {
        let key = (team.clone(), name.clone());
        let unread = messages.iter().filter(|message| !message.is_read).count();
        let before = self.cursors.insert(key.clone(), (messages.len(), unread));
        let logged = self.logged_counts.get(&key).copied().unwrap_or(0).min(messages.len());
        // For this comparison a new message counts as unread, even if it was read before this scan.
        let has_read_messages =
            |new_from: usize, unread_before: usize| unread < unread_before + messages[new_from..].len();
        let result = match before {
            None => {
                let earlier = messages[..logged].iter().filter(|message| !message.is_read).count();
                let unread = has_read_messages(logged, earlier).then_some(unread);
                InboxScanResult {
                    new: headers(messages, logged),
                    logged: headers(&messages[..logged], 0),
                    unread,
                    ..InboxScanResult::default()
                }
            }
            // Entries were removed, so all remaining ones are known.
            Some((count, _)) if count > messages.len() => InboxScanResult {
                unread: Some(unread),
                logged: headers(messages, 0),
                ..InboxScanResult::default()
            },
            Some((count, unread_before)) => {
                let unread = has_read_messages(count, unread_before).then_some(unread);
                InboxScanResult { new: headers(messages, count), unread, ..InboxScanResult::default() }
            }
        };
        let whole_messages = match content {
            MessageContent::HeaderOnly => Vec::new(),
            MessageContent::Whole => result.new.iter().chain(&result.logged).map(to_message).collect(),
        };
        // Another scan follows and finds no new messages.
        InboxScanResult { messages: whole_messages, has_more: result.new.len() >= LONG_SCAN, ..result }
    }

    /// The events for all files that changed since the last rescan.
    pub(super) fn diff(
        &mut self,
        teams: &[TeamName],
        current: &BTreeMap<(TeamName, TeamFile), u64>,
    ) -> Vec<CoreEvent> {
        let is_in_teams = |key: &&(TeamName, TeamFile)| teams.contains(&key.0);
        let changed =
            current.keys().filter(is_in_teams).filter(|key| self.files.get(*key) != current.get(*key));
        let removed = self.files.keys().filter(is_in_teams).filter(|key| !current.contains_key(*key));
        let events = changed.chain(removed).map(change_event).collect();
        self.files.clone_from(current);
        events
    }
}

fn headers(messages: &[SimulatedMessage], from: usize) -> Vec<MessageHeader> {
    let to_header = |(index, message): (usize, &SimulatedMessage)| MessageHeader {
        index,
        from: message.from.clone(),
        summary: None,
        payload: message.payload.clone(),
    };
    messages.iter().enumerate().skip(from).map(to_header).collect()
}

fn to_message(header: &MessageHeader) -> (usize, Message) {
    let text = header.payload.as_ref().map_or_else(|| "hello".to_owned(), Payload::to_text);
    (header.index, Message::new(&header.from, text, 0))
}

pub(super) fn change_event((team, part): &(TeamName, TeamFile)) -> CoreEvent {
    let team = team.clone();
    match part {
        TeamFile::Config => CoreEvent::ConfigChanged { team },
        TeamFile::Inbox(name) => {
            CoreEvent::InboxChanged { team, inbox: name.to_string(), owner_wake: Wake::Needed }
        }
        TeamFile::Task(task) => CoreEvent::TaskChanged { team, task: *task },
    }
}
