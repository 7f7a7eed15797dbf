//! The state of a simulation: clock, disk, tmux server, processes, clients and the daemon. The
//! methods are the actions that can happen; [`super::random_actions`] chooses the next action.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId, WatchId};
use crate::core::core_event::CoreEvent;
use crate::core::deadlines::next_deadline;
use crate::core::dispatch_core_events::handle_event;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::{FileJob, FileResult};
use crate::core::jobs::file_watcher_command::WatcherCommand;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::jobs::worktree_jobs::WorktreeJob;
use crate::core::recovery::recover;
use crate::core::state::core_state::State;
use crate::core::state::daemon_settings::DaemonSettings;
use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use crate::simulator::clients::CallOrigin;
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::effect_runner::take_file_job;
use crate::simulator::events_and_effects_covered::Coverage;
use crate::simulator::hooked_programs::HookedProgram;
use crate::simulator::member_requests::AskedRequest;
use crate::simulator::replay::replayed_agents::ReplayedAgents;
use crate::simulator::scans_and_watcher_events::{ScanMemory, WatcherEvent};
use crate::simulator::shim::{START_TIMEOUT, ShimStage, SimulatedShim};
use crate::simulator::tmux::{PaneJobOutcome, SimulatedTmux};
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::Policy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One day in milliseconds.
const DAY: u64 = 86_400_000;
/// Parts of log lines that are left out, because they are frequent and routine.
const UNLOGGED: [&str; 6] =
    ["Deadline", "RescanFiles", "ListTeams", "TeamsListed", "ScanTasks", "TasksScanned"];
/// How many log lines are kept with [`LogLevel::Tail`].
const MAX_LOG_LINES: usize = 120;

/// A running daemon in a simulation: the core's state and the queues of the daemon's threads. All
/// of this is lost when the daemon is killed.
#[derive(Debug)]
pub(super) struct SimulatedDaemon {
    pub(super) state: State,
    pub(super) events: VecDeque<CoreEvent>,
    pub(super) files: VecDeque<FileJob>,
    pub(super) panes: VecDeque<PaneJob>,
    /// Running git jobs, each on its own thread.
    pub(super) worktrees: VecDeque<WorktreeJob>,
    pub(super) scans: ScanMemory,
    /// The commands for the watcher thread.
    pub(super) watch_commands: VecDeque<WatcherCommand>,
    /// Results of jobs that the event loop has not received yet.
    pub(super) results: VecDeque<CoreEvent>,
    /// The spawns whose wake sockets the daemon has.
    pub(super) wake_sockets: BTreeSet<SpawnId>,
    /// The pids of watched processes.
    pub(super) watched: BTreeMap<WatchId, u32>,
    /// The roster that the core saved last, as text.
    saved_roster: String,
}

/// The whole simulated system.
pub(super) struct Simulation {
    pub(super) rng: fastrand::Rng,
    pub(super) now: Now,
    pub(super) disk: SimulatedDisk,
    pub(super) tmux: SimulatedTmux,
    pub(super) shims: BTreeMap<u32, SimulatedShim>,
    pub(super) daemon: Option<SimulatedDaemon>,
    /// The clients that wait for a reply.
    pub(super) clients: BTreeMap<ConnId, CallOrigin>,
    /// Clients that closed their connection before the reply.
    pub(super) dropped_clients: BTreeSet<ConnId>,
    last_conn: ConnId,
    last_pid: u32,
    log: VecDeque<String>,
    /// The programs with hooks, by pid.
    pub(super) programs: BTreeMap<u32, HookedProgram>,
    /// The pids of lead sessions.
    pub(super) lead_processes: BTreeSet<u32>,
    /// All requests of members.
    pub(super) asked_requests: BTreeMap<RequestId, AskedRequest>,
    /// The ids of spawn requests for which a plan was approved.
    pub(super) approved_spawns: BTreeSet<String>,
    /// The tokens that the programs of each spawn request have used.
    pub(super) token_usage: BTreeMap<String, u64>,
    /// The ids of spawn requests whose agents must plan first.
    pub(super) planning_spawns: BTreeSet<String>,
    /// All policies that a client has requested for a team.
    pub(super) policy_history: BTreeMap<TeamName, Vec<Policy>>,
    pub(super) was_clock_set: bool,
    /// No more faults are injected.
    pub(super) is_fault_free: bool,
    log_level: LogLevel,
    pub(super) action_rates: ActionRates,
    /// What has occurred so far.
    pub(super) coverage: Coverage,
    pub(super) seed: u64,
    /// What the agents of a replay have still to do. `None` in a random simulation.
    pub(super) replayed: Option<ReplayedAgents>,
}

/// How often the simulator chooses actions that are due, how often it chooses faults, and which
/// faults can occur. Each simulation has its own rates. If all simulations had all faults at a high
/// rate, little else would happen in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActionRates {
    /// Of 256 actions, how many are chosen from the actions that are due, if there are any.
    pub(super) due_action_rate: u8,
    /// Of 256 other actions, how many are faults: 0 to 34.
    pub(super) fault_rate: u8,
    /// The faults that never occur, one bit each.
    pub(super) disabled_faults: u32,
}

impl ActionRates {
    fn random(rng: &mut fastrand::Rng) -> ActionRates {
        let fault_rate = if rng.u8(..) < 40 { 0 } else { rng.u8(1..35) };
        ActionRates {
            due_action_rate: rng.u8(120..250),
            fault_rate,
            disabled_faults: rng.u32(..) & rng.u32(..),
        }
    }
}

/// Which log lines of a simulation are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogLevel {
    /// No lines. Logging would take most of the run time.
    Off,
    /// The last [`MAX_LOG_LINES`] lines.
    Tail,
    All,
}

impl Simulation {
    pub(super) fn new(seed: u64, log_level: LogLevel) -> Simulation {
        let mut rng = fastrand::Rng::with_seed(seed);
        Simulation {
            action_rates: ActionRates::random(&mut rng),
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
            log_level,
            coverage: Coverage::default(),
            seed,
            replayed: None,
        }
    }

    /// A simulation without faults, whose agents repeat a record.
    pub(super) fn for_replay() -> Simulation {
        let mut simulation = Simulation::new(0, LogLevel::Off);
        simulation.is_fault_free = true;
        (simulation.disk.is_reporting_changes, simulation.disk.log) = (true, Some(Vec::new()));
        simulation.replayed = Some(ReplayedAgents::default());
        simulation
    }

    /// Adds a line to the log of the seed.
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

    /// Advances both clocks.
    pub(super) fn advance_clock(&mut self, ms: u64) {
        self.now = Now { mono: self.now.mono + ms, wall: self.now.wall + ms };
    }

    /// A user sets the wall clock by up to half a day. The monotonic clock does not change.
    pub(super) fn set_clock(&mut self) {
        self.now.wall = self.now.wall + self.rng.u64(0..DAY) - DAY / 2;
        self.was_clock_set = true;
        self.log(|| "the clock is set".to_owned());
    }

    /// The next deadline of the daemon or of a shim, on the monotonic clock.
    pub(super) fn next_deadline(&self) -> u64 {
        let daemon = self.daemon.as_ref().map_or(u64::MAX, |daemon| next_deadline(&daemon.state));
        let waiting = self.shims.values().filter(|shim| shim.stage == ShimStage::Waiting);
        waiting.map(|shim| shim.started_at + START_TIMEOUT).fold(daemon, u64::min)
    }

    // The daemon.

    /// Starts a daemon, which reads its state from the disk.
    pub(super) fn start(&mut self) {
        self.log(|| "a daemon starts".to_owned());
        let mut roster = self.disk.read_roster();
        for (team, files) in &self.disk.teams {
            roster.joined_counts.entry(team.clone()).or_insert(files.members.len() as u64);
        }
        let environments = &self.disk.environments;
        roster.load_environments(|file| environments.get(file).cloned().unwrap_or_default());
        let lines = self.disk.log.iter().flatten().map(String::as_bytes);
        let cursor = EventLogCursor::from_lines(lines);
        let scans = ScanMemory { logged_counts: cursor.inboxes.clone(), ..ScanMemory::default() };
        // The time until missing output is reported is short, so that simulations reach it.
        let settings = DaemonSettings { no_output_after_ms: Some(1_000), ..DaemonSettings::for_tests() };
        let mut state = State::new(settings, roster, cursor);
        let active = |team: &TeamName, name: &MemberName| {
            Some(self.disk.teams.get(team)?.members.get(name)?.is_active)
        };
        state.restore_activity(active);
        state.load_policies(|team| {
            self.disk.teams.get(team).map(|files| files.policy.clone()).unwrap_or_default()
        });
        self.disk.pending_events.clear();
        let effects = recover(&mut state, self.now);
        self.daemon = Some(SimulatedDaemon {
            state,
            // The control client's own session is reported, too.
            events: VecDeque::from([CoreEvent::OwnTmuxSessionsUsed]),
            files: VecDeque::new(),
            panes: VecDeque::new(),
            worktrees: VecDeque::new(),
            scans,
            watch_commands: VecDeque::new(),
            results: VecDeque::new(),
            wake_sockets: BTreeSet::new(),
            watched: BTreeMap::new(),
            saved_roster: String::new(),
        });
        self.check_roster_saved(&effects);
        self.run_effects(effects);
    }

    /// Kills the daemon with SIGKILL. Its queued jobs are lost and its connections close.
    pub(super) fn kill_daemon(&mut self) {
        self.log(|| "the daemon is killed".to_owned());
        let jobs = self.daemon.take().map(|daemon| daemon.worktrees);
        self.finish_after_kill(jobs.unwrap_or_default());
        self.clients.clear();
        self.disconnect_hooks();
        for shim in self.shims.values_mut() {
            shim.conn = None;
            shim.inbox.clear();
            let querying = shim.turn_agent.iter_mut().filter(|turn_agent| turn_agent.is_querying);
            querying.for_each(|turn_agent| (turn_agent.is_querying, turn_agent.is_awake) = (false, true));
        }
    }

    /// Stops the daemon in the regular way: its threads finish their queued jobs first.
    pub(super) fn stop_daemon(&mut self) {
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.files.is_empty()) {
            self.run_file_job();
        }
        while self.daemon.as_ref().is_some_and(|daemon| !daemon.panes.is_empty()) {
            self.run_pane_job();
        }
        self.kill_daemon();
    }

    /// The event loop handles the next event, or a deadline if there is no event.
    pub(super) fn run_event(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let event = daemon.events.pop_front().unwrap_or(CoreEvent::DeadlineReached);
        if matches!(event, CoreEvent::DeadlineReached) {
            // Each spawn must get its own start time.
            self.now = Now { mono: self.now.mono + 1, wall: self.now.wall + 1 };
        }
        let now = self.now;
        let line = if self.log_level == LogLevel::Off { String::new() } else { format!("{event:?}") };
        self.coverage.record_event(&event);
        let effects = handle_event(&mut daemon.state, event, now);
        let wakes_agent = effects.iter().any(|effect| matches!(effect, Effect::WakeAgent { .. }));
        self.log(|| line);
        self.check_roster_saved(&effects);
        if wakes_agent {
            self.check_offers();
        }
        self.run_effects(effects);
    }

    /// Checks that the core saves the roster in each event that changes it.
    fn check_roster_saved(&mut self, effects: &[Effect]) {
        let Some(daemon) = &mut self.daemon else { return };
        let roster = roster_text(&daemon.state);
        let is_saved = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::SaveRoster(_))));
        assert!(is_saved || roster == daemon.saved_roster, "{roster}\nis not saved: {}", daemon.saved_roster);
        daemon.saved_roster = roster;
    }

    /// What the daemon and its threads can do now.
    pub(super) fn due_daemon_actions(&self) -> Vec<fn(&mut Simulation)> {
        let mut due: Vec<fn(&mut Simulation)> = Vec::new();
        if self.has_event() {
            due.push(Simulation::run_event);
        }
        if let Some(daemon) = &self.daemon {
            if !daemon.files.is_empty() {
                due.push(Simulation::run_file_job);
            }
            if !daemon.panes.is_empty() {
                due.push(Simulation::run_pane_job);
            }
            if !daemon.worktrees.is_empty() {
                due.push(Simulation::run_worktree_job);
            }
            if !daemon.watch_commands.is_empty() {
                due.push(Simulation::run_watch_command);
            }
            if !self.disk.pending_events.is_empty() {
                due.push(Simulation::run_watcher);
            }
            if !daemon.results.is_empty() {
                due.push(Simulation::deliver_result);
            }
        }
        if self.has_unreported_death() {
            due.push(Simulation::report_death);
        }
        due
    }

    /// Whether the event loop has an event or a passed deadline to handle.
    pub(super) fn has_event(&self) -> bool {
        let is_due = |daemon: &SimulatedDaemon| next_deadline(&daemon.state) <= self.now.mono;
        self.daemon.as_ref().is_some_and(|daemon| !daemon.events.is_empty() || is_due(daemon))
    }

    /// A files thread runs its next job.
    pub(super) fn run_file_job(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = take_file_job(&mut daemon.files, &mut self.rng) else { return };
        let line = if self.log_level == LogLevel::Off { String::new() } else { format!("files: {job:?}") };
        self.coverage.record_file_job(&job);
        let answer = match &job {
            FileJob::WriteAnswer { request, answer, by, .. } if !self.disk.is_full => {
                Some((request.request.id().clone(), answer.clone(), *by))
            }
            _ => None,
        };
        self.disk.run_job(job, &mut daemon.scans, &mut daemon.results);
        let was_written = matches!(
            daemon.results.back(),
            Some(CoreEvent::FileJobDone(FileResult::AnswerWritten { result: Ok(()), .. }))
        );
        if let Some((id, answer, by)) = answer.filter(|_| was_written) {
            self.check_policy_answer(&id, by);
            self.record_approval(&id, &answer);
        }
        self.log(|| line);
    }

    pub(super) fn send_to_watcher(&mut self, command: WatcherCommand) {
        self.daemon.iter_mut().for_each(|daemon| daemon.watch_commands.push_back(command.clone()));
    }

    /// The watcher thread runs its next command.
    pub(super) fn run_watch_command(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        match daemon.watch_commands.pop_front() {
            Some(WatcherCommand::WatchRoot) => daemon.scans.watched.clear(),
            Some(WatcherCommand::WatchTeam(team)) => drop(daemon.scans.watched.insert(team)),
            Some(WatcherCommand::UnwatchTeam(team)) => drop(daemon.scans.watched.remove(&team)),
            Some(WatcherCommand::CreateBarrier(_)) if !self.is_fault_free && self.rng.u8(..) < 60 => {
                self.send_event(CoreEvent::BarrierFailed);
            }
            Some(WatcherCommand::CreateBarrier(barrier)) => {
                self.disk.pending_events.push_back(WatcherEvent::Barrier(barrier));
            }
            Some(WatcherCommand::ConfirmWatches(purpose)) => {
                self.send_event(CoreEvent::WatchesAdded(purpose));
            }
            None => {}
        }
    }

    /// The panes thread runs its next job.
    pub(super) fn run_pane_job(&mut self) {
        let (pid, mono) = (self.next_pid(), self.now.mono);
        let Some(daemon) = &mut self.daemon else { return };
        let Some(job) = daemon.panes.pop_front() else { return };
        self.coverage.record_pane_job(&job);
        let line = if self.log_level == LogLevel::Off { String::new() } else { format!("panes: {job:?}") };
        let (result, outcome) = self.tmux.run_job(job, pid);
        daemon.results.extend(result);
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

    /// The event loop receives the next result of a job.
    pub(super) fn deliver_result(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.extend(daemon.results.pop_front());
        }
    }

    /// The process watcher reports the exit of a watched process.
    pub(super) fn report_death(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let (shims, leads) = (&self.shims, &self.lead_processes);
        let is_dead =
            |pid: &u32| !shims.get(pid).is_some_and(SimulatedShim::is_alive) && !leads.contains(pid);
        let Some(watch) = daemon.watched.iter().find(|(_, pid)| is_dead(pid)).map(|(watch, _)| watch.clone())
        else {
            return;
        };
        daemon.watched.remove(&watch);
        daemon.events.push_back(CoreEvent::ProcessDied { watch });
    }

    pub(super) fn has_unreported_death(&self) -> bool {
        let (shims, leads) = (&self.shims, &self.lead_processes);
        let is_dead =
            |pid: &u32| !shims.get(pid).is_some_and(SimulatedShim::is_alive) && !leads.contains(pid);
        self.daemon.as_ref().is_some_and(|daemon| daemon.watched.values().any(is_dead))
    }
}

/// The roster as text. The simulator compares such texts to find changes that were not saved. Two
/// fields may change without a save and are left out:
///
/// - the number of turns of a team without a limit of turns;
/// - the tracking task of a starting member, an internal task that represents the member. If the id
///   of this task is not saved, the deregistration finds the task by its subject.
fn roster_text(state: &State) -> String {
    let mut roster = state.to_roster();
    let unlimited = state.teams.iter().filter(|(_, team_state)| team_state.policy.max_turns.is_none());
    for (team, _) in unlimited {
        roster.usage.entry(team.clone()).and_modify(|usage| usage.turns = 0);
    }
    let starting = roster.records.iter_mut().filter(|record| record.lifecycle.is_starting());
    starting.for_each(|record| record.tracking_task = None);
    serde_json::to_string(&roster).expect("a roster is serializable")
}
