//! What the step function wants done, done in the made-up world.

use super::join::{Join, Stage};
use super::world::World;
use crate::effect::Effect;
use crate::event::Event;
use crate::files::{FileJob, gather};
use crate::watch::Ask;
use std::collections::VecDeque;

impl World {
    /// Carries out effects, in order.
    pub(super) fn act(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.seen.effect(&effect);
            if matches!(effect, Effect::Exit) {
                return self.stop();
            }
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { client, response } => self.replied(client, &response),
            Effect::Tell { conn, word } => {
                let join = self.joins.values_mut().find(|join| join.conn == Some(conn) && join.lives());
                join.into_iter().for_each(|join| join.heard.push_back(word.clone()));
            }
            Effect::HangUp { conn } => {
                self.joins
                    .values_mut()
                    .filter(|join| join.conn == Some(conn))
                    .for_each(|join| join.conn = None);
            }
            Effect::Adopt { spawn, process, .. } => {
                self.daemon.iter_mut().for_each(|daemon| {
                    daemon.lines.insert(spawn.clone());
                });
                self.effect(Effect::Watch { spawn, process });
            }
            Effect::Watch { spawn, process } => {
                let join = self.joins.get(&process.pid).is_some_and(Join::lives);
                let lives = join || self.leaders.contains(&process.pid);
                let Some(daemon) = &mut self.daemon else { return };
                match lives {
                    true => drop(daemon.watched.insert(spawn, process.pid)),
                    false => daemon.events.push_back(Event::Died { spawn }),
                }
            }
            Effect::KillJoin { spawn } => {
                let lives = |join: &Join| join.spawn == spawn && join.lives();
                let pid = self.joins.iter().find(|(_, join)| lives(join)).map(|(pid, _)| *pid);
                pid.into_iter().for_each(|pid| self.die(pid));
            }
            Effect::Forget { spawn } => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.watched.remove(&spawn);
                    daemon.lines.remove(&spawn);
                }
            }
            Effect::Mark { mark } => self.ask_the_watcher(Ask::Mark(mark)),
            Effect::File(job) => {
                if let Some(daemon) = &mut self.daemon {
                    queue(&mut daemon.files, job);
                }
            }
            Effect::Pane(job) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.panes.push_back(job);
                }
            }
            Effect::Worktree(job) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.trees.push_back(job);
                }
            }
            Effect::Launch { spawn, .. } => {
                let (pid, mono) = (self.next_pid(), self.now.mono);
                self.joins.insert(pid, Join::new(spawn.clone(), None, mono));
                self.tell(Event::Launched { spawn, result: Ok(pid) });
            }
            Effect::Ring { .. } => {}
            Effect::WatchRoot => self.ask_the_watcher(Ask::Root),
            Effect::WatchTeam { team } => self.ask_the_watcher(Ask::Team(team)),
            Effect::SayWatched { probe } => self.ask_the_watcher(Ask::Say { probe }),
            Effect::UnwatchTeam { team } => self.ask_the_watcher(Ask::Leave(team)),
            Effect::Log(event) if self.disk.log.is_some() => {
                let line = serde_json::to_string(&event).expect("it can be written");
                self.effect(Effect::File(FileJob::Log(line)));
            }
            Effect::Wake { spawn, rung: false } => {
                let line = self.daemon.as_ref().is_some_and(|daemon| daemon.lines.contains(&spawn));
                let hers = self.joins.values_mut().filter(|join| line && join.spawn == spawn);
                hers.filter_map(|join| join.turner.as_mut()).for_each(|turner| turner.awake = true);
            }
            Effect::Wake { rung: true, .. } | Effect::WatchLives | Effect::Log(_) | Effect::Exit => {}
        }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = (&u32, &Join)> {
        self.joins.iter().filter(|(_, join)| matches!(join.stage, Stage::Runs { .. }))
    }
}

/// As the thread takes them: what it does in one change stands together, and ahead of it what is aside of that.
pub(super) fn gathered(files: &mut VecDeque<FileJob>) {
    let Some(first) = files.pop_front() else { return };
    let mut ahead = Vec::new();
    let next_if = |is_wanted: &dyn Fn(&FileJob) -> bool| match files.front() {
        Some(job) if is_wanted(job) => files.pop_front(),
        _ => None,
    };
    let together = gather(first, next_if, |aside| ahead.push(aside));
    ahead.into_iter().chain(together).rev().for_each(|job| files.push_front(job));
}

/// As [`crate::files::Jobs`] does: of rosters that wait the newest, in the place of the oldest.
fn queue(files: &mut VecDeque<FileJob>, job: FileJob) {
    let waiting = files.iter_mut().find(|waiting| matches!(waiting, FileJob::Roster(_)));
    match (waiting, job) {
        (Some(waiting), newest @ FileJob::Roster(_)) => *waiting = newest,
        (_, job) => files.push_back(job),
    }
}
