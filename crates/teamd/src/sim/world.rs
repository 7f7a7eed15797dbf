//! All there is: a clock, a disk, tmux, processes, clients, and a daemon for as long as it lives. Everything that can
//! happen is a method; who decides which is next is [`super::story`].

use super::asks::Question;
use super::clients::Asker;
use super::disk::Disk;
use super::hands::gathered;
use super::join::{Join, PATIENCE, Stage};
use super::looks::{Looks, News};
use super::programs::Program;
use super::seen::Seen;
use super::tmux::{Outcome, Tmux};
use crate::effect::Effect;
use crate::event::{ConnId, Event, Now};
use crate::files::{FileDone, FileJob};
use crate::panes::PaneJob;
use crate::roster::SpawnId;
use crate::state::{Setting, State};
use crate::step::{next_deadline, restart, step};
use crate::tale::Tale;
use crate::watch::Ask;
use crate::worktrees::TreeJob;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::policy::Policy;
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
    /// Each on a thread of its own.
    pub(super) trees: VecDeque<TreeJob>,
    pub(super) looks: Looks,
    /// What the watcher is asked.
    pub(super) asks: VecDeque<Ask>,
    /// Done by the threads, and not told yet.
    pub(super) done: VecDeque<Event>,
    /// Whose wake lines it holds.
    pub(super) lines: BTreeSet<SpawnId>,
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
    pub(super) clients: BTreeMap<ConnId, Asker>,
    /// Clients that have hung up: an answer to them goes nowhere.
    pub(super) gone: BTreeSet<ConnId>,
    conns: ConnId,
    pids: u32,
    tale: VecDeque<String>,
    /// Programs with hooks, by their pids.
    pub(super) programs: BTreeMap<u32, Program>,
    /// Processes of which a session leads.
    pub(super) leaders: BTreeSet<u32>,
    /// What members have asked.
    pub(super) questions: BTreeMap<RequestId, Question>,
    /// Orders of which a plan was approved.
    pub(super) approved: BTreeSet<String>,
    /// What the programs of an order have used up, tokens.
    pub(super) used: BTreeMap<String, u64>,
    /// Orders whose agents have to plan first.
    pub(super) planners: BTreeSet<String>,
    /// Every policy that was ever asked for.
    pub(super) policies: BTreeMap<TeamName, Vec<Policy>>,
    pub(super) clock_was_set: bool,
    /// Nothing fails any more.
    pub(super) calm: bool,
    aloud: Aloud,
    pub(super) temper: Temper,
    /// What it has gone through.
    pub(super) seen: Seen,
    pub(super) seed: u64,
}

/// Where everything goes wrong at once little happens: so worlds differ in what does, and in how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Temper {
    /// How often what is due comes before anything else, of 256.
    pub(super) haste: u8,
    /// How often something goes wrong, of 35.
    pub(super) mishaps: u8,
    /// What never does, a bit each.
    pub(super) never: u32,
}

impl Temper {
    fn of(rng: &mut fastrand::Rng) -> Temper {
        let mishaps = if rng.u8(..) < 40 { 0 } else { rng.u8(1..35) };
        Temper { haste: rng.u8(120..250), mishaps, never: rng.u32(..) & rng.u32(..) }
    }
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
        let mut rng = fastrand::Rng::with_seed(seed);
        World {
            temper: Temper::of(&mut rng),
            now: Now { mono: 1_000, wall: 1_795_000_000_000 },
            disk: Disk::new(&mut rng),
            tmux: Tmux::new(),
            joins: BTreeMap::new(),
            daemon: None,
            clients: BTreeMap::new(),
            gone: BTreeSet::new(),
            rng,
            conns: 0,
            pids: 1_000,
            tale: VecDeque::new(),
            programs: BTreeMap::new(),
            leaders: BTreeSet::new(),
            questions: BTreeMap::new(),
            approved: BTreeSet::new(),
            used: BTreeMap::new(),
            planners: BTreeSet::new(),
            policies: BTreeMap::new(),
            clock_was_set: false,
            calm: false,
            aloud,
            seen: Seen::default(),
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

    pub(super) fn is_quiet(&self) -> bool {
        self.aloud == Aloud::No
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
        self.clock_was_set = true;
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
        let mut roster = self.disk.read_roster();
        for (team, files) in &self.disk.teams {
            roster.teams.entry(team.clone()).or_insert(files.members.len() as u64);
        }
        let environments = &self.disk.environments;
        roster.recall_environments(|file| environments.get(file).cloned().unwrap_or_default());
        let lines = self.disk.log.iter().flatten().map(String::as_bytes);
        let tale = Tale::of(lines);
        let looks = Looks { told: tale.inboxes.clone(), ..Looks::default() };
        // So short that worlds come to it.
        let setting = Setting { stuck_after: Some(1_000), ..Setting::made_up() };
        let mut state = State::new(setting, roster, tale);
        let active =
            |team: &TeamName, name: &AgentName| Some(self.disk.teams.get(team)?.members.get(name)?.active);
        state.recall(active);
        state.recall_policies(|team| {
            self.disk.teams.get(team).map(|files| files.policy.clone()).unwrap_or_default()
        });
        self.disk.news.clear();
        let effects = restart(&mut state, self.now);
        self.daemon = Some(Daemon {
            state,
            events: VecDeque::new(),
            files: VecDeque::new(),
            panes: VecDeque::new(),
            trees: VecDeque::new(),
            looks,
            asks: VecDeque::new(),
            done: VecDeque::new(),
            lines: BTreeSet::new(),
            watched: BTreeMap::new(),
        });
        self.act(effects);
    }

    /// kill -9: what its threads have not done is not done, and everybody who is connected sees it.
    pub(super) fn crash(&mut self) {
        self.note(|| "the daemon is killed".to_owned());
        let trees = self.daemon.take().map(|daemon| daemon.trees);
        self.git_goes_on(trees.unwrap_or_default());
        self.clients.clear();
        self.hooks_are_alone();
        for join in self.joins.values_mut() {
            join.conn = None;
            join.heard.clear();
            let asks = join.turner.iter_mut().filter(|turner| turner.asks);
            asks.for_each(|turner| (turner.asks, turner.awake) = (false, true));
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
        let Some(daemon) = &mut self.daemon else { return };
        let event = daemon.events.pop_front().unwrap_or(Event::Deadline);
        if matches!(event, Event::Deadline) {
            // No two lives begin in the same moment.
            self.now = Now { mono: self.now.mono + 1, wall: self.now.wall + 1 };
        }
        let now = self.now;
        let line = if self.aloud == Aloud::No { String::new() } else { format!("{event:?}") };
        self.seen.event(&event);
        let effects = step(&mut daemon.state, event, now);
        let wakes = effects.iter().any(|effect| matches!(effect, Effect::Wake { .. }));
        self.note(|| line);
        if wakes {
            self.one_for_each_task();
        }
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
        gathered(&mut daemon.files);
        let Some(job) = daemon.files.pop_front() else { return };
        let line = if self.aloud == Aloud::No { String::new() } else { format!("files: {job:?}") };
        self.seen.job(&job);
        let answer = match &job {
            FileJob::Answer { request, answer, by, .. } if !self.disk.full => {
                Some((request.request.id().clone(), answer.clone(), *by))
            }
            _ => None,
        };
        self.disk.job(job, &mut daemon.looks, &mut daemon.done);
        let was_given =
            matches!(daemon.done.back(), Some(Event::Filed(FileDone::Answered { result: Ok(()), .. })));
        if let Some((id, answer, by)) = answer.filter(|_| was_given) {
            self.policy_answers(&id, by);
            self.approves(&id, &answer);
        }
        self.note(|| line);
    }

    pub(super) fn ask_the_watcher(&mut self, ask: Ask) {
        self.daemon.iter_mut().for_each(|daemon| daemon.asks.push_back(ask.clone()));
    }

    /// The watcher does what it was asked to.
    pub(super) fn arms(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        match daemon.asks.pop_front() {
            Some(Ask::Root) => daemon.looks.watched.clear(),
            Some(Ask::Team(team)) => drop(daemon.looks.watched.insert(team)),
            Some(Ask::Leave(team)) => drop(daemon.looks.watched.remove(&team)),
            Some(Ask::Mark(_)) if !self.calm && self.rng.u8(..) < 60 => self.tell(Event::Unmarked),
            Some(Ask::Mark(mark)) => self.disk.news.push_back(News::Mark(mark)),
            Some(Ask::Say { probe }) => self.tell(Event::Watched { probe }),
            None => {}
        }
    }

    /// The panes thread does.
    pub(super) fn panes(&mut self) {
        let (pid, mono) = (self.next_pid(), self.now.mono);
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = daemon.panes.pop_front() else { return };
        self.seen.pane_job(&job);
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
        let (joins, leaders) = (&self.joins, &self.leaders);
        let dead = |pid: &u32| !joins.get(pid).is_some_and(Join::lives) && !leaders.contains(pid);
        let Some(spawn) = daemon.watched.iter().find(|(_, pid)| dead(pid)).map(|(spawn, _)| spawn.clone())
        else {
            return;
        };
        daemon.watched.remove(&spawn);
        daemon.events.push_back(Event::Died { spawn });
    }

    pub(super) fn has_dead(&self) -> bool {
        let (joins, leaders) = (&self.joins, &self.leaders);
        let dead = |pid: &u32| !joins.get(pid).is_some_and(Join::lives) && !leaders.contains(pid);
        self.daemon.as_ref().is_some_and(|daemon| daemon.watched.values().any(dead))
    }
}
