//! What the files thread of one daemon remembers of its looks, and the watcher's words on the way.

use super::disk::Disk;
use super::letters::Letter;
use super::world::World;
use crate::event::Event;
use crate::files::{self, Mail, Which};
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file of a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Config,
    Inbox(AgentName),
    Task(TaskId),
}

/// What the watcher is to tell, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    Changed(TeamName, Part),
    Mark(u64),
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// How many entries an earlier daemon told of each inbox.
    pub(super) told: BTreeMap<(TeamName, AgentName), usize>,
    /// How many there were at the last look, and how many of them were unread.
    pub(super) marks: BTreeMap<(TeamName, AgentName), (usize, usize)>,
    /// How each file was at the last rescan.
    pub(super) files: BTreeMap<(TeamName, Part), u64>,
    /// The tasks of each team as they were at the last look.
    pub(super) tasks: BTreeMap<TeamName, BTreeMap<TaskId, Arc<Task>>>,
    /// The teams whose directories are watched.
    pub(super) watched: BTreeSet<TeamName>,
}

impl Looks {
    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget(&mut self, team: &TeamName) {
        self.told.retain(|(of, _), _| of != team);
        self.marks.retain(|(of, _), _| of != team);
        self.tasks.remove(team);
    }

    /// A look at these alone, and at all where there was none before.
    pub(super) fn tasks(&mut self, team: &TeamName, which: Which, now: &[Arc<Task>]) -> Arc<Vec<Arc<Task>>> {
        let now = || now.iter().map(|task| (task.id, task.clone()));
        let seen = self.tasks.entry(team.clone()).or_insert_with(|| now().collect());
        match which {
            Which::All => *seen = now().collect(),
            Which::These(changed) => {
                seen.retain(|id, _| !changed.contains(id));
                seen.extend(now().filter(|(id, _)| changed.contains(id)));
            }
        }
        Arc::new(seen.values().cloned().collect())
    }

    pub(super) fn mail(&mut self, team: &TeamName, name: &AgentName, letters: &[Letter]) -> Mail {
        let key = (team.clone(), name.clone());
        let unread = letters.iter().filter(|letter| !letter.read).count();
        let before = self.marks.insert(key.clone(), (letters.len(), unread));
        let told = self.told.get(&key).copied().unwrap_or(0).min(letters.len());
        // What is new was unread once.
        let is_read = |from: usize, was: usize| unread < was + letters[from..].len();
        match before {
            None => {
                let earlier = letters[..told].iter().filter(|letter| !letter.read).count();
                let unread = is_read(told, earlier).then_some(unread);
                Mail {
                    new: seen(letters, told),
                    earlier: seen(&letters[..told], 0),
                    unread,
                    ..Mail::default()
                }
            }
            // Somebody has emptied it.
            Some((count, _)) if count > letters.len() => {
                Mail { unread: Some(unread), earlier: seen(letters, 0), ..Mail::default() }
            }
            Some((count, was)) => {
                let unread = is_read(count, was).then_some(unread);
                Mail { new: seen(letters, count), unread, ..Mail::default() }
            }
        }
    }

    /// What the watcher should have told.
    pub(super) fn rescan(&mut self, teams: &[TeamName], now: &BTreeMap<(TeamName, Part), u64>) -> Vec<Event> {
        let of = |key: &&(TeamName, Part)| teams.contains(&key.0);
        let changed = now.keys().filter(of).filter(|key| self.files.get(*key) != now.get(*key));
        let gone = self.files.keys().filter(of).filter(|key| !now.contains_key(*key));
        let events = changed.chain(gone).map(event).collect();
        self.files.clone_from(now);
        events
    }
}

fn seen(letters: &[Letter], from: usize) -> Vec<files::Letter> {
    let seen = |(index, letter): (usize, &Letter)| files::Letter {
        index,
        from: letter.from.clone(),
        summary: None,
        payload: letter.payload.clone(),
    };
    letters.iter().enumerate().skip(from).map(seen).collect()
}

fn event((team, part): &(TeamName, Part)) -> Event {
    let team = team.clone();
    match part {
        Part::Config => Event::ConfigChanged { team },
        Part::Inbox(name) => Event::InboxChanged { team, inbox: name.to_string(), rung: false },
        Part::Task(task) => Event::TasksChanged { team, task: *task },
    }
}

impl Disk {
    /// Somebody has written it.
    pub(super) fn touch(&mut self, team: &TeamName, part: Part) {
        self.writes += 1;
        let news = News::Changed(team.clone(), part.clone());
        if self.news.back() != Some(&news) {
            self.news.push_back(news);
        }
        self.versions.insert((team.clone(), part), self.writes);
    }
}

impl World {
    /// The watcher tells the loop of a change, and rings for mail.
    pub(super) fn watch(&mut self) {
        let Some(news) = self.disk.news.pop_front() else { return };
        let Some(daemon) = &mut self.daemon else { return };
        let news = match news {
            News::Mark(mark) => return daemon.events.push_back(Event::Marked { mark }),
            News::Changed(team, part) => (team, part),
        };
        if !self.disk.tells || !daemon.looks.watched.contains(&news.0) {
            return;
        }
        let mut event = event(&news);
        if let (Event::InboxChanged { rung, .. }, (team, Part::Inbox(name))) = (&mut event, &news)
            && let Some(agent) = daemon.state.member(team, name)
            && daemon.lines.contains(&agent.record.spawn)
        {
            *rung = true;
            let hers = self.joins.values_mut().filter(|join| join.spawn == agent.record.spawn);
            hers.filter_map(|join| join.turner.as_mut()).for_each(|turner| turner.awake = true);
        }
        daemon.events.push_back(event);
    }
}
