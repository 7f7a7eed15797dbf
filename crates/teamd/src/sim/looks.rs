//! What the files thread of one daemon remembers of its looks, and the watcher's words on the way.

use super::disk::Disk;
use super::letters::Letter;
use super::world::World;
use crate::event::Event;
use crate::files::{self, Mail};
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

/// A file of a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Config,
    Inbox(AgentName),
    Task(TaskId),
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
    /// The teams whose directories are watched.
    pub(super) watched: BTreeSet<TeamName>,
}

impl Looks {
    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget(&mut self, team: &TeamName) {
        self.told.retain(|(of, _), _| of != team);
        self.marks.retain(|(of, _), _| of != team);
    }

    pub(super) fn mail(&mut self, team: &TeamName, name: &AgentName, letters: &[Letter]) -> Mail {
        let key = (team.clone(), name.clone());
        let unread = letters.iter().filter(|letter| !letter.read).count();
        let before = self.marks.insert(key.clone(), (letters.len(), unread));
        let told = self.told.get(&key).copied().unwrap_or(0).min(letters.len());
        match before {
            None => Mail { new: seen(letters, told), earlier: seen(&letters[..told], 0), ..Mail::default() },
            // Somebody has emptied it.
            Some((count, _)) if count > letters.len() => {
                Mail { unread: Some(unread), earlier: seen(letters, 0), ..Mail::default() }
            }
            Some((count, was)) => {
                let new = letters[count..].iter().filter(|letter| !letter.read).count();
                let unread = (unread < was + new).then_some(unread);
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
        let key = (team.clone(), part);
        if self.news.back() != Some(&key) {
            self.news.push_back(key.clone());
        }
        self.versions.insert(key, self.writes);
    }
}

impl World {
    /// The watcher tells the loop of a change, and rings for mail.
    pub(super) fn watch(&mut self) {
        let Some(news) = self.disk.news.pop_front() else { return };
        let Some(daemon) = &mut self.daemon else { return };
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
