//! Carries out effects, in order, but that the files thread has the jobs of one event once the rest is done. Holds every descriptor of the daemon: the state holds none.

use crate::connection::Connections;
use crate::effect::Effect;
use crate::event::Event;
use crate::files::{FileJob, Jobs};
use crate::headless::Headless;
use crate::life::{Lives, Watched};
use crate::lines::{Line, Lines};
use crate::panes::PaneJob;
use crate::roster::SpawnId;
use crate::screen::Screen;
use crate::watch::{Ask, Missed};
use protocol::timestamp::iso8601;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::mpsc::Sender;
use tokio::sync::mpsc::UnboundedSender;

/// The daemon's hands.
#[derive(Debug)]
pub(crate) struct Hands {
    pub(crate) connections: Connections,
    pub(crate) files: Jobs,
    pub(crate) panes: Sender<PaneJob>,
    pub(crate) watch: Sender<Ask>,
    pub(crate) missed: Missed,
    pub(crate) events: UnboundedSender<Event>,
    pub(crate) lines: Lines,
    pub(crate) lives: Lives,
    pub(crate) headless: Headless,
    /// Joins whose life could not be looked at.
    pub(crate) unwatched: HashMap<SpawnId, crate::roster::Process>,
    /// To the pane that the daemon runs in.
    pub(crate) screen: Screen,
}

impl Hands {
    /// Break: the daemon is to end.
    pub(crate) fn act(&mut self, effect: Effect, wall: u64) -> ControlFlow<()> {
        failpoint::hit(effect.point());
        match effect {
            Effect::Reply { client, response } => {
                self.connections.send(client, &response);
                self.connections.close(client);
            }
            Effect::Tell { conn, word } => self.connections.send(conn, &word),
            Effect::HangUp { conn } => self.connections.close(conn),
            Effect::Adopt { conn, spawn, team, name, process } => {
                if let Some(end) = self.connections.take_line(conn) {
                    self.lines.put(spawn.clone(), Line { team, name, end });
                }
                self.watch_life(spawn, process);
            }
            Effect::Watch { spawn, process } => self.watch_life(spawn, process),
            Effect::WatchLives => {
                self.headless.reap();
                let again: Vec<_> = self.unwatched.drain().collect();
                again.into_iter().for_each(|(spawn, process)| self.watch_life(spawn, process));
            }
            Effect::Wake { spawn, rung: false } => self.lines.ring(&spawn),
            Effect::Wake { rung: true, .. } => {}
            Effect::KillJoin { spawn } => self.lives.kill(&spawn),
            Effect::Forget { spawn } => {
                self.lines.remove(&spawn);
                self.lives.forget(&spawn);
                self.unwatched.remove(&spawn);
                self.headless.reap();
            }
            // A thread ends only with the daemon.
            Effect::WatchRoot => drop(self.watch.send(Ask::Root)),
            Effect::WatchTeam { team } => drop(self.watch.send(Ask::Team(team))),
            Effect::UnwatchTeam { team } => drop(self.watch.send(Ask::Leave(team))),
            Effect::SayWatched { probe } => drop(self.watch.send(Ask::Say { probe })),
            Effect::Mark { mark } => drop(self.watch.send(Ask::Mark(mark))),
            Effect::File(job) => self.files.give(job),
            Effect::Pane(job) => drop(self.panes.send(job)),
            Effect::Worktree(job) => crate::worktrees::begin(job, self.events.clone()),
            Effect::Launch { spawn, argv, log } => {
                let result = self.headless.launch(&argv, &log);
                self.events.send(Event::Launched { spawn, result }).ok();
            }
            Effect::Ring { text, argv } => {
                self.screen.ring(&text);
                self.headless.tell(&argv);
            }
            Effect::Log(event) => self.log(protocol::event::Event { time: iso8601(wall), ..event }),
            Effect::Exit => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn watch_life(&mut self, spawn: SpawnId, process: crate::roster::Process) {
        if self.lives.knows(&spawn) {
            return;
        }
        match self.lives.watch(&spawn, process) {
            Watched::Alive => drop(self.unwatched.remove(&spawn)),
            Watched::Dead => {
                self.unwatched.remove(&spawn);
                self.events.send(Event::Died { spawn }).ok();
            }
            Watched::Unknown(error) => {
                tracing::warn!("cannot watch process {}, and try again later: {error}", process.pid);
                self.unwatched.insert(spawn, process);
            }
        }
    }

    /// Into the log file, the event log and the pane that the daemon runs in. That pane may be closed: what
    /// can't be shown there is no error.
    fn log(&mut self, event: protocol::event::Event) {
        let line = event.to_text();
        tracing::info!("{line}");
        let clock = event.time.get(11..19).unwrap_or_default();
        self.screen.show(format!("{clock} {line}"));
        let json = serde_json::to_string(&event).expect("an event has nothing that JSON cannot hold");
        self.files.give(FileJob::Log(json));
    }
}
