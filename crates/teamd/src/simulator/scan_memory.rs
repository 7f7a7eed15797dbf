//! What the files thread of one daemon remembers of its looks, and the watcher's words on the way.

use crate::core::event::CoreEvent;
use crate::core::jobs::files::{InboxScanResult, MessageHeader, TaskSelection};
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::simulation::Simulation;
use crate::simulator::team_files::SimulatedMessage;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file of a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TeamFile {
    Config,
    Inbox(AgentName),
    Task(TaskId),
}

/// What the watcher is to tell, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatcherEvent {
    Changed(TeamName, TeamFile),
    Barrier(u64),
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct ScanMemory {
    /// How many entries an earlier daemon told of each inbox.
    pub(super) logged_counts: BTreeMap<(TeamName, AgentName), usize>,
    /// How many there were at the last look, and how many of them were unread.
    pub(super) cursors: BTreeMap<(TeamName, AgentName), (usize, usize)>,
    /// How each file was at the last rescan.
    pub(super) files: BTreeMap<(TeamName, TeamFile), u64>,
    /// The tasks of each team as they were at the last look.
    pub(super) tasks: BTreeMap<TeamName, BTreeMap<TaskId, Arc<Task>>>,
    /// The teams whose directories are watched.
    pub(super) watched: BTreeSet<TeamName>,
}

impl ScanMemory {
    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget_team(&mut self, team: &TeamName) {
        self.logged_counts.retain(|(of, _), _| of != team);
        self.cursors.retain(|(of, _), _| of != team);
        self.tasks.remove(team);
    }

    /// A look at these alone, and at all where there was none before.
    pub(super) fn scan_tasks(
        &mut self,
        team: &TeamName,
        which: TaskSelection,
        now: &[Arc<Task>],
    ) -> Arc<Vec<Arc<Task>>> {
        let now = || now.iter().map(|task| (task.id, task.clone()));
        let seen = self.tasks.entry(team.clone()).or_insert_with(|| now().collect());
        match which {
            TaskSelection::All => *seen = now().collect(),
            TaskSelection::Only(changed) => {
                seen.retain(|id, _| !changed.contains(id));
                seen.extend(now().filter(|(id, _)| changed.contains(id)));
            }
        }
        Arc::new(seen.values().cloned().collect())
    }

    pub(super) fn scan_inbox(
        &mut self,
        team: &TeamName,
        name: &AgentName,
        letters: &[SimulatedMessage],
    ) -> InboxScanResult {
        let key = (team.clone(), name.clone());
        let unread = letters.iter().filter(|letter| !letter.is_read).count();
        let before = self.cursors.insert(key.clone(), (letters.len(), unread));
        let told = self.logged_counts.get(&key).copied().unwrap_or(0).min(letters.len());
        // What is new was unread once.
        let is_read = |from: usize, was: usize| unread < was + letters[from..].len();
        match before {
            None => {
                let earlier = letters[..told].iter().filter(|letter| !letter.is_read).count();
                let unread = is_read(told, earlier).then_some(unread);
                InboxScanResult {
                    new: summaries(letters, told),
                    known: summaries(&letters[..told], 0),
                    unread,
                    ..InboxScanResult::default()
                }
            }
            // Somebody has emptied it.
            Some((count, _)) if count > letters.len() => InboxScanResult {
                unread: Some(unread),
                known: summaries(letters, 0),
                ..InboxScanResult::default()
            },
            Some((count, was)) => {
                let unread = is_read(count, was).then_some(unread);
                InboxScanResult { new: summaries(letters, count), unread, ..InboxScanResult::default() }
            }
        }
    }

    /// What the watcher should have told.
    pub(super) fn diff(
        &mut self,
        teams: &[TeamName],
        now: &BTreeMap<(TeamName, TeamFile), u64>,
    ) -> Vec<CoreEvent> {
        let of = |key: &&(TeamName, TeamFile)| teams.contains(&key.0);
        let changed = now.keys().filter(of).filter(|key| self.files.get(*key) != now.get(*key));
        let gone = self.files.keys().filter(of).filter(|key| !now.contains_key(*key));
        let events = changed.chain(gone).map(change_event).collect();
        self.files.clone_from(now);
        events
    }
}

fn summaries(letters: &[SimulatedMessage], from: usize) -> Vec<MessageHeader> {
    let seen = |(index, letter): (usize, &SimulatedMessage)| MessageHeader {
        index,
        from: letter.from.clone(),
        summary: None,
        payload: letter.payload.clone(),
    };
    letters.iter().enumerate().skip(from).map(seen).collect()
}

fn change_event((team, part): &(TeamName, TeamFile)) -> CoreEvent {
    let team = team.clone();
    match part {
        TeamFile::Config => CoreEvent::ConfigChanged { team },
        TeamFile::Inbox(name) => {
            CoreEvent::InboxChanged { team, inbox: name.to_string(), is_owner_woken: false }
        }
        TeamFile::Task(task) => CoreEvent::TaskChanged { team, task: *task },
    }
}

impl SimulatedDisk {
    /// Somebody has written it.
    pub(super) fn record_change(&mut self, team: &TeamName, part: TeamFile) {
        self.writes += 1;
        let news = WatcherEvent::Changed(team.clone(), part.clone());
        if self.pending_events.back() != Some(&news) {
            self.pending_events.push_back(news);
        }
        self.versions.insert((team.clone(), part), self.writes);
    }
}

impl Simulation {
    /// The watcher tells the loop of a change, and rings for mail.
    pub(super) fn run_watcher(&mut self) {
        let Some(news) = self.disk.pending_events.pop_front() else { return };
        let Some(daemon) = &mut self.daemon else { return };
        let news = match news {
            WatcherEvent::Barrier(mark) => {
                return daemon.events.push_back(CoreEvent::BarrierReached { mark });
            }
            WatcherEvent::Changed(team, part) => (team, part),
        };
        if !self.disk.is_reporting_changes || !daemon.scans.watched.contains(&news.0) {
            return;
        }
        let mut event = change_event(&news);
        if let (CoreEvent::InboxChanged { is_owner_woken: rung, .. }, (team, TeamFile::Inbox(name))) =
            (&mut event, &news)
            && let Some(agent) = daemon.state.member(team, name)
            && daemon.wake_sockets.contains(&agent.record.spawn_id)
        {
            *rung = true;
            let hers = self.shims.values_mut().filter(|join| join.spawn == agent.record.spawn_id);
            hers.filter_map(|join| join.turn_agent.as_mut()).for_each(|turner| turner.is_awake = true);
        }
        daemon.events.push_back(event);
    }
}
