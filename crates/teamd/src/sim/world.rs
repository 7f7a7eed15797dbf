//! All there is: a clock, a disk, tmux, processes, clients, and a daemon for as long as it lives. Everything that can
//! happen is a method; who decides which is next is [`super::story`].

use super::disk::Disk;
use super::join::{Join, PATIENCE, Stage};
use super::tmux::{Outcome, Tmux, Whose};
use crate::event::{ConnId, Event, Now};
use crate::files::FileJob;
use crate::panes::PaneJob;
use crate::roster::{Process, SpawnId};
use crate::state::{Setting, State};
use crate::step::{next_deadline, restart, step};
use crate::tale::Tale;
use protocol::control::{Call, Ended, FromJoin, Hello, Request, ToJoin, VERSION};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Milliseconds.
const DAY: u64 = 86_400_000;
/// What goes on all the time, and says nothing.
const ROUTINE: [&str; 6] =
    ["Deadline", "files: Rescan", "files: Sessions", "files: Tasks", "Filed(Sessions", "Filed(Tasks"];
/// How much of a story is kept.
const LINES: usize = 120;

/// A daemon that lives: what it knows, and what is under way in its threads. All of it goes with it.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) state: State,
    pub(super) events: VecDeque<Event>,
    pub(super) files: VecDeque<FileJob>,
    pub(super) panes: VecDeque<PaneJob>,
    /// Done by the threads, and not told yet.
    pub(super) done: VecDeque<Event>,
    /// Whose death it will be told of.
    pub(super) watched: BTreeMap<SpawnId, u32>,
}

/// See the head of this file.
pub(super) struct World {
    pub(super) rng: fastrand::Rng,
    pub(super) now: Now,
    pub(super) disk: Disk,
    pub(super) tmux: Tmux,
    pub(super) joins: BTreeMap<u32, Join>,
    pub(super) daemon: Option<Daemon>,
    /// Who waits for an answer, and to what.
    pub(super) clients: BTreeMap<ConnId, &'static str>,
    /// Clients that have hung up: an answer to them goes nowhere.
    pub(super) gone: BTreeSet<ConnId>,
    conns: ConnId,
    pids: u32,
    tale: VecDeque<String>,
    aloud: Aloud,
    pub(super) seed: u64,
}

/// What of a story is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aloud {
    /// Nothing: that takes most of the time.
    No,
    End,
    All,
}

impl World {
    pub(super) fn new(seed: u64, aloud: Aloud) -> World {
        World {
            rng: fastrand::Rng::with_seed(seed),
            now: Now { mono: 1_000, wall: 1_795_000_000_000 },
            disk: Disk::default(),
            tmux: Tmux::new(),
            joins: BTreeMap::new(),
            daemon: None,
            clients: BTreeMap::new(),
            gone: BTreeSet::new(),
            conns: 0,
            pids: 1_000,
            tale: VecDeque::new(),
            aloud,
            seed,
        }
    }

    /// For whoever reads the story of a seed.
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.aloud == Aloud::No {
            return;
        }
        let line = format!("{:>8} {}", self.now.mono, line());
        if ROUTINE.iter().any(|routine| line.contains(routine)) {
            return;
        }
        self.tale.push_back(line);
        if self.tale.len() > LINES && self.aloud == Aloud::End {
            self.tale.pop_front();
        }
    }

    pub(super) fn tale(&self) -> String {
        Vec::from_iter(self.tale.iter().cloned()).join("\n")
    }

    pub(super) fn next_conn(&mut self) -> ConnId {
        self.conns += 1;
        self.conns
    }

    pub(super) fn next_pid(&mut self) -> u32 {
        self.pids += 1;
        self.pids
    }

    /// Time goes by.
    pub(super) fn pass(&mut self, ms: u64) {
        self.now = Now { mono: self.now.mono + ms, wall: self.now.wall + ms };
    }

    /// Somebody sets the clock, up to a day to or fro; what measures time does not notice.
    pub(super) fn set_clock(&mut self) {
        self.now.wall = self.now.wall + self.rng.u64(0..DAY) - DAY / 2;
        self.note(|| "the clock is set".to_owned());
    }

    /// When something is due by itself.
    pub(super) fn next_due(&self) -> u64 {
        let daemon = self.daemon.as_ref().map_or(u64::MAX, |daemon| next_deadline(&daemon.state));
        let waiting = self.joins.values().filter(|join| join.stage == Stage::Waits);
        waiting.map(|join| join.born + PATIENCE).fold(daemon, u64::min)
    }

    // The daemon.

    /// A daemon starts, with what lies on the disk.
    pub(super) fn start(&mut self) {
        self.note(|| "a daemon starts".to_owned());
        let mut roster = self.disk.roster();
        for (team, files) in &self.disk.teams {
            roster.teams.entry(team.clone()).or_insert(files.members.len() as u64);
        }
        let mut state = State::new(Setting::made_up(), roster, Tale::default());
        let effects = restart(&mut state, self.now);
        self.daemon = Some(Daemon {
            state,
            events: VecDeque::new(),
            files: VecDeque::new(),
            panes: VecDeque::new(),
            done: VecDeque::new(),
            watched: BTreeMap::new(),
        });
        self.act(effects);
    }

    /// kill -9: what its threads have not done is not done, and everybody who is connected sees it.
    pub(super) fn crash(&mut self) {
        self.note(|| "the daemon is killed".to_owned());
        self.daemon = None;
        self.clients.clear();
        for join in self.joins.values_mut() {
            join.conn = None;
            join.heard.clear();
        }
    }

    /// It ends by itself: its threads finish what they have been given.
    pub(super) fn stop(&mut self) {
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.files.is_empty()) {
            self.files();
        }
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.panes.is_empty()) {
            self.panes();
        }
        self.crash();
    }

    /// The loop takes the next event, or sees that a deadline has passed.
    pub(super) fn turn(&mut self) {
        let now = self.now;
        let Some(daemon) = &mut self.daemon else { return };
        let event = daemon.events.pop_front().unwrap_or(Event::Deadline);
        let line = if self.aloud == Aloud::No { String::new() } else { format!("{event:?}") };
        let effects = step(&mut daemon.state, event, now);
        self.note(|| line);
        self.act(effects);
    }

    /// Whether the loop has something to take.
    pub(super) fn has_turn(&self) -> bool {
        let due = |daemon: &Daemon| next_deadline(&daemon.state) <= self.now.mono;
        self.daemon.as_ref().is_some_and(|daemon| !daemon.events.is_empty() || due(daemon))
    }

    /// The files thread does its next job.
    pub(super) fn files(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = daemon.files.pop_front() else { return };
        let line = if self.aloud == Aloud::No { String::new() } else { format!("files: {job:?}") };
        daemon.done.extend(self.disk.job(job));
        self.note(|| line);
    }

    /// The panes thread does.
    pub(super) fn panes(&mut self) {
        let (pid, mono) = (self.next_pid(), self.now.mono);
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = daemon.panes.pop_front() else { return };
        let line = if self.aloud == Aloud::No { String::new() } else { format!("panes: {job:?}") };
        let (done, outcome) = self.tmux.job(job, pid);
        daemon.done.extend(done);
        match outcome {
            Outcome::Nothing => {}
            Outcome::Started { spawn, pid, pane } => {
                let pane = Some((self.tmux.server, pane));
                self.joins.insert(pid, Join::new(spawn, pane, mono));
            }
            Outcome::Closed(pid) => self.hang_up(pid),
        }
        self.note(|| line);
    }

    /// A thread tells the loop what it has done.
    pub(super) fn tell_done(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.extend(daemon.done.pop_front());
        }
    }

    /// The kernel tells of a death.
    pub(super) fn reap(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let dead = |pid: &u32| !self.joins.get(pid).is_some_and(Join::lives);
        let Some(spawn) = daemon.watched.iter().find(|(_, pid)| dead(pid)).map(|(spawn, _)| spawn.clone())
        else {
            return;
        };
        daemon.watched.remove(&spawn);
        daemon.events.push_back(Event::Died { spawn });
    }

    pub(super) fn has_dead(&self) -> bool {
        let dead = |pid: &u32| !self.joins.get(pid).is_some_and(Join::lives);
        self.daemon.as_ref().is_some_and(|daemon| daemon.watched.values().any(dead))
    }

    // Processes.

    pub(super) fn tell(&mut self, event: Event) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.push_back(event);
        }
    }

    /// A join does what is next for it.
    pub(super) fn join(&mut self, pid: u32) {
        let daemon = self.daemon.is_some();
        let Some(join) = self.joins.get_mut(&pid) else { return };
        if let Some(word) = join.heard.pop_front() {
            return self.heard(pid, word);
        }
        match join.stage.clone() {
            Stage::Waits if self.now.mono >= join.born + PATIENCE => self.close_and_die(pid),
            Stage::Reports(how) if join.conn.is_none() => self.leave_word(pid, how),
            Stage::Waits | Stage::Runs { .. } if daemon && join.conn.is_none() => self.hello(pid),
            _ => {}
        }
    }

    fn hello(&mut self, pid: u32) {
        let conn = self.next_conn();
        let Some(join) = self.joins.get_mut(&pid) else { return };
        join.conn = Some(conn);
        let hello = Hello { spawn: join.spawn.as_str().to_owned(), agent: join.agent(), turn: None };
        self.tell(Event::Joined { conn, hello, process: Process { pid, start: 1 } });
    }

    fn heard(&mut self, pid: u32, word: ToJoin) {
        self.note(|| format!("join {pid} hears {word:?}"));
        let agent = self.next_pid();
        let cannot = self.rng.u8(..) < 12;
        let Some(join) = self.joins.get_mut(&pid) else { return };
        match (word, &join.stage) {
            (ToJoin::Go(_), Stage::Waits) => {
                let conn = join.conn;
                if cannot {
                    self.report(conn, FromJoin::Failed { message: "no such program".to_owned() });
                    return self.die(pid);
                }
                join.stage = Stage::Runs { agent };
                self.agent_starts(pid);
                self.report(conn, FromJoin::Started { pid: agent });
            }
            (ToJoin::Refused | ToJoin::End { .. }, Stage::Waits) => self.close_and_die(pid),
            (ToJoin::Refused, Stage::Runs { .. }) => join.disowned = true,
            (ToJoin::End { .. }, Stage::Runs { .. }) => self.agent_ends(pid, Ended::Signal(15)),
            (ToJoin::Interrupt, Stage::Runs { .. }) => {
                let conn = join.conn;
                self.report(conn, FromJoin::Interrupted { turn: false });
            }
            (ToJoin::Noted, Stage::Reports(_)) => self.die(pid),
            _ => {}
        }
    }

    fn report(&mut self, conn: Option<ConnId>, said: FromJoin) {
        if let Some(conn) = conn {
            self.tell(Event::JoinSaid { conn, said });
        }
    }

    /// Its agent ends, by itself or not; told to the daemon, or left in writing.
    pub(super) fn agent_ends(&mut self, pid: u32, how: Ended) {
        self.note(|| format!("the agent of join {pid} ends: {how}"));
        let Some(join) = self.joins.get_mut(&pid) else { return };
        join.stage = Stage::Reports(how.clone());
        match join.conn {
            Some(_) => {
                let conn = join.conn;
                self.report(conn, FromJoin::Ended(how));
            }
            None => self.leave_word(pid, how),
        }
    }

    fn leave_word(&mut self, pid: u32, how: Ended) {
        let Some(join) = self.joins.get(&pid) else { return };
        if !self.disk.full {
            self.disk.words.insert(join.spawn.clone(), how.clone());
        }
        match how {
            Ended::Hangup => self.die(pid),
            _ => self.close_and_die(pid),
        }
    }

    /// Where nobody may know of its pane, that goes with it.
    fn close_and_die(&mut self, pid: u32) {
        if let Some(pane) = self.joins.get(&pid).and_then(|join| join.pane)
            && pane.0 == self.tmux.server
        {
            self.tmux.panes.remove(&pane.1);
        }
        self.die(pid);
    }

    /// Its terminal is gone.
    pub(super) fn hang_up(&mut self, pid: u32) {
        match self.joins.get(&pid).map(|join| join.stage.clone()) {
            Some(Stage::Waits) => self.die(pid),
            Some(Stage::Runs { .. }) => self.agent_ends(pid, Ended::Hangup),
            _ => {}
        }
    }

    /// kill -9.
    pub(super) fn kill(&mut self, pid: u32) {
        if let Some(join) = self.joins.get_mut(&pid) {
            join.killed_early = join.stage == Stage::Waits;
        }
        self.die(pid);
    }

    /// Its process is no more.
    pub(super) fn die(&mut self, pid: u32) {
        self.note(|| format!("join {pid} is dead"));
        let Some(join) = self.joins.get_mut(&pid) else { return };
        join.stage = Stage::Dead;
        let conn = join.conn.take();
        if let Some(conn) = conn {
            self.tell(Event::Closed { conn });
        }
    }

    /// The server dies with all in it.
    pub(super) fn restart_tmux(&mut self, strangers: u32) {
        self.note(|| "another tmux server".to_owned());
        let joins: Vec<u32> = self
            .tmux
            .panes
            .values()
            .filter_map(|whose| match whose {
                Whose::Ours(_, pid) => Some(*pid),
                Whose::Stranger => None,
            })
            .collect();
        self.tmux.restart(strangers);
        joins.into_iter().for_each(|pid| self.hang_up(pid));
    }

    // Clients.

    /// Somebody asks; what they ask is for the audit.
    pub(super) fn ask(&mut self, what: &'static str, request: Request) {
        let client = self.next_conn();
        if self.daemon.is_some() {
            self.clients.insert(client, what);
            let call = Call { v: VERSION, token: None, once: None, request };
            self.tell(Event::Request { client, call: Box::new(call) });
        }
    }

    /// A client does not wait any longer.
    pub(super) fn leave(&mut self) {
        let Some((client, _)) = self.clients.pop_first() else { return };
        self.gone.insert(client);
        self.tell(Event::Closed { conn: client });
    }
}
