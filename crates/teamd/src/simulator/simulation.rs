//! All there is: a clock, a disk, tmux, processes, clients, and a daemon for as long as it lives. Everything that can
//! happen is a method; who decides which is next is [`super::story`].

use crate::core::clock::Now;
use crate::core::deadlines::next_deadline;
use crate::core::dispatch::handle_event;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::{FileJob, FileResult};
use crate::core::jobs::panes::PaneJob;
use crate::core::jobs::watcher::WatchCommand;
use crate::core::jobs::worktrees::WorktreeJob;
use crate::core::recovery::recover;
use crate::core::state::daemon::State;
use crate::core::state::event_log_cursor::EventLogCursor;
use crate::core::state::settings::DaemonSettings;
use crate::simulator::clients::CallOrigin;
use crate::simulator::coverage::Coverage;
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::effect_runner::collect_next_batch;
use crate::simulator::hooked_programs::HookedProgram;
use crate::simulator::member_requests::AskedRequest;
use crate::simulator::scan_memory::{ScanMemory, WatcherEvent};
use crate::simulator::shim::{START_TIMEOUT, ShimStage, SimulatedShim};
use crate::simulator::tmux::{PaneJobOutcome, SimulatedTmux};
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::policy::Policy;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Milliseconds.
const DAY: u64 = 86_400_000;
/// What goes on all the time, and says nothing.
const UNLOGGED: [&str; 6] =
    ["Deadline", "files: Rescan", "files: Sessions", "files: Tasks", "Filed(Sessions", "Filed(Tasks"];
/// How much of a story is kept.
const MAX_LOG_LINES: usize = 120;

/// A daemon that lives: what it knows, and what is under way in its threads. All of it goes with it.
#[derive(Debug)]
pub(super) struct SimulatedDaemon {
    pub(super) state: State,
    pub(super) events: VecDeque<CoreEvent>,
    pub(super) files: VecDeque<FileJob>,
    pub(super) panes: VecDeque<PaneJob>,
    /// Each on a thread of its own.
    pub(super) worktrees: VecDeque<WorktreeJob>,
    pub(super) scans: ScanMemory,
    /// What the watcher is asked.
    pub(super) watch_commands: VecDeque<WatchCommand>,
    /// Done by the threads, and not told yet.
    pub(super) results: VecDeque<CoreEvent>,
    /// Whose wake lines it holds.
    pub(super) wake_sockets: BTreeSet<SpawnId>,
    /// Whose death it will be told of.
    pub(super) watched: BTreeMap<SpawnId, u32>,
}

/// See the head of this file.
pub(super) struct Simulation {
    pub(super) rng: fastrand::Rng,
    pub(super) now: Now,
    pub(super) disk: SimulatedDisk,
    pub(super) tmux: SimulatedTmux,
    pub(super) shims: BTreeMap<u32, SimulatedShim>,
    pub(super) daemon: Option<SimulatedDaemon>,
    /// Who waits for an answer, and to what.
    pub(super) clients: BTreeMap<ConnId, CallOrigin>,
    /// Clients that have hung up: an answer to them goes nowhere.
    pub(super) dropped_clients: BTreeSet<ConnId>,
    last_conn: ConnId,
    last_pid: u32,
    log: VecDeque<String>,
    /// Programs with hooks, by their pids.
    pub(super) programs: BTreeMap<u32, HookedProgram>,
    /// Processes of which a session leads.
    pub(super) lead_processes: BTreeSet<u32>,
    /// What members have asked.
    pub(super) asked_requests: BTreeMap<RequestId, AskedRequest>,
    /// Orders of which a plan was approved.
    pub(super) approved_spawns: BTreeSet<String>,
    /// What the programs of an order have used up, tokens.
    pub(super) token_usage: BTreeMap<String, u64>,
    /// Orders whose agents have to plan first.
    pub(super) planning_spawns: BTreeSet<String>,
    /// Every policy that was ever asked for.
    pub(super) policy_history: BTreeMap<TeamName, Vec<Policy>>,
    pub(super) was_clock_set: bool,
    /// Nothing fails any more.
    pub(super) is_fault_free: bool,
    log_level: LogLevel,
    pub(super) fault_rates: FaultRates,
    /// What it has gone through.
    pub(super) coverage: Coverage,
    pub(super) seed: u64,
}

/// Where everything goes wrong at once little happens: so worlds differ in what does, and in how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultRates {
    /// How often what is due comes before anything else, of 256.
    pub(super) due_first: u8,
    /// How often something goes wrong, of 35.
    pub(super) fault_rate: u8,
    /// What never does, a bit each.
    pub(super) disabled_faults: u32,
}

impl FaultRates {
    fn random(rng: &mut fastrand::Rng) -> FaultRates {
        let mishaps = if rng.u8(..) < 40 { 0 } else { rng.u8(1..35) };
        FaultRates {
            due_first: rng.u8(120..250),
            fault_rate: mishaps,
            disabled_faults: rng.u32(..) & rng.u32(..),
        }
    }
}

/// What of a story is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogLevel {
    /// Nothing: that takes most of the time.
    Off,
    Tail,
    All,
}

impl Simulation {
    pub(super) fn new(seed: u64, aloud: LogLevel) -> Simulation {
        let mut rng = fastrand::Rng::with_seed(seed);
        Simulation {
            fault_rates: FaultRates::random(&mut rng),
            now: Now { mono: 1_000, wall: 1_795_000_000_000 },
            disk: SimulatedDisk::new(&mut rng),
            tmux: SimulatedTmux::new(),
            shims: BTreeMap::new(),
            daemon: None,
            clients: BTreeMap::new(),
            dropped_clients: BTreeSet::new(),
            rng,
            last_conn: 0,
            last_pid: 1_000,
            log: VecDeque::new(),
            programs: BTreeMap::new(),
            lead_processes: BTreeSet::new(),
            asked_requests: BTreeMap::new(),
            approved_spawns: BTreeSet::new(),
            token_usage: BTreeMap::new(),
            planning_spawns: BTreeSet::new(),
            policy_history: BTreeMap::new(),
            was_clock_set: false,
            is_fault_free: false,
            log_level: aloud,
            coverage: Coverage::default(),
            seed,
        }
    }

    /// For whoever reads the story of a seed.
    pub(super) fn log(&mut self, line: impl FnOnce() -> String) {
        if self.log_level == LogLevel::Off {
            return;
        }
        let line = format!("{:>8} {}", self.now.mono, line());
        if UNLOGGED.iter().any(|routine| line.contains(routine)) {
            return;
        }
        self.log.push_back(line);
        if self.log.len() > MAX_LOG_LINES && self.log_level == LogLevel::Tail {
            self.log.pop_front();
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.log_level == LogLevel::Off
    }

    pub(super) fn log_text(&self) -> String {
        Vec::from_iter(self.log.iter().cloned()).join("\n")
    }

    pub(super) fn next_conn(&mut self) -> ConnId {
        self.last_conn += 1;
        self.last_conn
    }

    pub(super) fn next_pid(&mut self) -> u32 {
        self.last_pid += 1;
        self.last_pid
    }

    /// Time goes by.
    pub(super) fn advance_clock(&mut self, ms: u64) {
        self.now = Now { mono: self.now.mono + ms, wall: self.now.wall + ms };
    }

    /// Somebody sets the clock, up to a day to or fro; what measures time does not notice.
    pub(super) fn set_clock(&mut self) {
        self.now.wall = self.now.wall + self.rng.u64(0..DAY) - DAY / 2;
        self.was_clock_set = true;
        self.log(|| "the clock is set".to_owned());
    }

    /// When something is due by itself.
    pub(super) fn next_deadline(&self) -> u64 {
        let daemon = self.daemon.as_ref().map_or(u64::MAX, |daemon| next_deadline(&daemon.state));
        let waiting = self.shims.values().filter(|join| join.stage == ShimStage::Waiting);
        waiting.map(|join| join.started_at + START_TIMEOUT).fold(daemon, u64::min)
    }

    // The daemon.

    /// A daemon starts, with what lies on the disk.
    pub(super) fn start(&mut self) {
        self.log(|| "a daemon starts".to_owned());
        let mut roster = self.disk.read_roster();
        for (team, files) in &self.disk.teams {
            roster.joined_counts.entry(team.clone()).or_insert(files.members.len() as u64);
        }
        let environments = &self.disk.environments;
        roster.load_environments(|file| environments.get(file).cloned().unwrap_or_default());
        let lines = self.disk.log.iter().flatten().map(String::as_bytes);
        let tale = EventLogCursor::from_lines(lines);
        let looks = ScanMemory { logged_counts: tale.inboxes.clone(), ..ScanMemory::default() };
        // So short that worlds come to it.
        let setting = DaemonSettings { no_output_after_ms: Some(1_000), ..DaemonSettings::for_tests() };
        let mut state = State::new(setting, roster, tale);
        let active =
            |team: &TeamName, name: &AgentName| Some(self.disk.teams.get(team)?.members.get(name)?.is_active);
        state.restore_activity(active);
        state.load_policies(|team| {
            self.disk.teams.get(team).map(|files| files.policy.clone()).unwrap_or_default()
        });
        self.disk.pending_events.clear();
        let effects = recover(&mut state, self.now);
        self.daemon = Some(SimulatedDaemon {
            state,
            events: VecDeque::new(),
            files: VecDeque::new(),
            panes: VecDeque::new(),
            worktrees: VecDeque::new(),
            scans: looks,
            watch_commands: VecDeque::new(),
            results: VecDeque::new(),
            wake_sockets: BTreeSet::new(),
            watched: BTreeMap::new(),
        });
        self.run_effects(effects);
    }

    /// kill -9: what its threads have not done is not done, and everybody who is connected sees it.
    pub(super) fn kill_daemon(&mut self) {
        self.log(|| "the daemon is killed".to_owned());
        let trees = self.daemon.take().map(|daemon| daemon.worktrees);
        self.finish_after_kill(trees.unwrap_or_default());
        self.clients.clear();
        self.disconnect_hooks();
        for join in self.shims.values_mut() {
            join.conn = None;
            join.inbox.clear();
            let asks = join.turn_agent.iter_mut().filter(|turner| turner.is_querying);
            asks.for_each(|turner| (turner.is_querying, turner.is_awake) = (false, true));
        }
    }

    /// It ends by itself: its threads finish what they have been given.
    pub(super) fn stop_daemon(&mut self) {
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.files.is_empty()) {
            self.run_file_job();
        }
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.panes.is_empty()) {
            self.run_pane_job();
        }
        self.kill_daemon();
    }

    /// The loop takes the next event, or sees that a deadline has passed.
    pub(super) fn run_event(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let event = daemon.events.pop_front().unwrap_or(CoreEvent::DeadlineReached);
        if matches!(event, CoreEvent::DeadlineReached) {
            // No two lives begin in the same moment.
            self.now = Now { mono: self.now.mono + 1, wall: self.now.wall + 1 };
        }
        let now = self.now;
        let line = if self.log_level == LogLevel::Off { String::new() } else { format!("{event:?}") };
        self.coverage.record_event(&event);
        let effects = handle_event(&mut daemon.state, event, now);
        let wakes = effects.iter().any(|effect| matches!(effect, Effect::WakeAgent { .. }));
        self.log(|| line);
        if wakes {
            self.check_offers();
        }
        self.run_effects(effects);
    }

    /// Whether the loop has something to take.
    pub(super) fn has_event(&self) -> bool {
        let due = |daemon: &SimulatedDaemon| next_deadline(&daemon.state) <= self.now.mono;
        self.daemon.as_ref().is_some_and(|daemon| !daemon.events.is_empty() || due(daemon))
    }

    /// The files thread does its next job.
    pub(super) fn run_file_job(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        collect_next_batch(&mut daemon.files);
        let Some(job) = daemon.files.pop_front() else { return };
        let line = if self.log_level == LogLevel::Off { String::new() } else { format!("files: {job:?}") };
        self.coverage.record_file_job(&job);
        let answer = match &job {
            FileJob::WriteAnswer { request, answer, by, .. } if !self.disk.is_full => {
                Some((request.request.id().clone(), answer.clone(), *by))
            }
            _ => None,
        };
        self.disk.run_job(job, &mut daemon.scans, &mut daemon.results);
        let was_given = matches!(
            daemon.results.back(),
            Some(CoreEvent::FileJobDone(FileResult::AnswerWritten { result: Ok(()), .. }))
        );
        if let Some((id, answer, by)) = answer.filter(|_| was_given) {
            self.check_policy_answer(&id, by);
            self.record_approval(&id, &answer);
        }
        self.log(|| line);
    }

    pub(super) fn send_to_watcher(&mut self, ask: WatchCommand) {
        self.daemon.iter_mut().for_each(|daemon| daemon.watch_commands.push_back(ask.clone()));
    }

    /// The watcher does what it was asked to.
    pub(super) fn run_watch_command(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        match daemon.watch_commands.pop_front() {
            Some(WatchCommand::WatchRoot) => daemon.scans.watched.clear(),
            Some(WatchCommand::WatchTeam(team)) => drop(daemon.scans.watched.insert(team)),
            Some(WatchCommand::UnwatchTeam(team)) => drop(daemon.scans.watched.remove(&team)),
            Some(WatchCommand::CreateBarrier(_)) if !self.is_fault_free && self.rng.u8(..) < 60 => {
                self.send_event(CoreEvent::BarrierFailed);
            }
            Some(WatchCommand::CreateBarrier(mark)) => {
                self.disk.pending_events.push_back(WatcherEvent::Barrier(mark));
            }
            Some(WatchCommand::ConfirmWatches { is_probe: probe }) => {
                self.send_event(CoreEvent::WatchesAdded { is_probe: probe });
            }
            None => {}
        }
    }

    /// The panes thread does.
    pub(super) fn run_pane_job(&mut self) {
        let (pid, mono) = (self.next_pid(), self.now.mono);
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = daemon.panes.pop_front() else { return };
        self.coverage.record_pane_job(&job);
        let line = if self.log_level == LogLevel::Off { String::new() } else { format!("panes: {job:?}") };
        let (done, outcome) = self.tmux.run_job(job, pid);
        daemon.results.extend(done);
        match outcome {
            PaneJobOutcome::Nothing => {}
            PaneJobOutcome::Started { spawn, pid, pane } => {
                let pane = Some((self.tmux.server, pane));
                self.shims.insert(pid, SimulatedShim::new(spawn, pane, mono));
            }
            PaneJobOutcome::Closed(pid) => self.hang_up_terminal(pid),
        }
        self.log(|| line);
    }

    /// A thread tells the loop what it has done.
    pub(super) fn deliver_result(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.extend(daemon.results.pop_front());
        }
    }

    /// The kernel tells of a death.
    pub(super) fn report_death(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let (joins, leaders) = (&self.shims, &self.lead_processes);
        let dead = |pid: &u32| !joins.get(pid).is_some_and(SimulatedShim::is_alive) && !leaders.contains(pid);
        let Some(spawn) = daemon.watched.iter().find(|(_, pid)| dead(pid)).map(|(spawn, _)| spawn.clone())
        else {
            return;
        };
        daemon.watched.remove(&spawn);
        daemon.events.push_back(CoreEvent::ProcessDied { spawn });
    }

    pub(super) fn has_unreported_death(&self) -> bool {
        let (joins, leaders) = (&self.shims, &self.lead_processes);
        let dead = |pid: &u32| !joins.get(pid).is_some_and(SimulatedShim::is_alive) && !leaders.contains(pid);
        self.daemon.as_ref().is_some_and(|daemon| daemon.watched.values().any(dead))
    }
}
