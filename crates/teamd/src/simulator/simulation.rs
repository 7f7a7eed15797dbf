//! The state of a simulation: clock, disk, tmux server, processes, clients and the daemon.
//!
//! The [`Conditions`] of a simulation decide what happens where more than one thing can happen. In
//! a replay, they follow the record of a team. In the random test, they are random.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId, WatchId};
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatcherCommand;
use crate::core::jobs::host_jobs::HostJob;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::jobs::worktree_jobs::WorktreeJob;
use crate::core::roster::Roster;
use crate::core::state::core_state::State;
use crate::simulator::chance::Chance;
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::scan_memory::ScanMemory;
use crate::simulator::shim::{AgentIdentity, ShimStage, SimulatedShim};
use crate::simulator::tmux::SimulatedTmux;
use crate::simulator::turn_agent_state::TaskResult;
use protocol::control_socket::{Response, TurnStatus};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
}

/// The whole simulated system.
pub(super) struct Simulation<C: Conditions> {
    pub(super) now: Now,
    pub(super) disk: SimulatedDisk,
    pub(super) tmux: SimulatedTmux,
    pub(super) shims: BTreeMap<u32, SimulatedShim>,
    pub(super) daemon: Option<SimulatedDaemon>,
    /// The clients that wait for a reply.
    pub(super) clients: BTreeMap<ConnId, C::Caller>,
    last_conn: ConnId,
    last_pid: u32,
    /// The tokens that the programs of each spawn request have used, and those on other hosts.
    pub(super) token_usage: BTreeMap<String, u64>,
    pub(super) conditions: C,
}

/// What differs between the kinds of simulations: the decisions of [`Chance`], the programs of
/// agents, and the checks of each step.
///
/// Many functions have the name of the moment when the simulation calls them: `event_starts`, for
/// example.
pub(super) trait Conditions: Chance + Sized {
    /// The client that sent a call.
    type Caller;

    /// The shim with this pid, as a client that asks for the next task.
    fn turn_agent_caller(shim_pid: u32) -> Self::Caller;

    fn handle_reply(
        simulation: &mut Simulation<Self>,
        client: ConnId,
        caller: Option<Self::Caller>,
        response: &Response,
    );

    /// Whether log lines are kept. If not, the simulation does not build them.
    fn is_logging(&self) -> bool {
        false
    }

    /// Adds a line to the log.
    fn log(&mut self, _now: Now, _line: impl FnOnce() -> String) {}

    /// Whether the process of a lead session runs.
    fn is_lead_alive(&self, _pid: u32) -> bool {
        true
    }

    /// Whether the watcher cannot create a barrier file.
    fn barrier_fails(&mut self) -> bool {
        false
    }

    /// Whether an agent may start a turn on a message at this monotonic time.
    fn may_take_message(&self, _name: &MemberName, _mono: u64) -> bool {
        true
    }

    /// Changes a status before a shim reports it.
    fn complete_status(&mut self, _name: &MemberName, _status: &mut TurnStatus) {}

    /// Takes the result that an agent writes for a task. `None` for the usual result.
    fn take_result(&mut self, _task: TaskId) -> Option<TaskResult> {
        None
    }

    fn event_starts(&mut self, _event: &CoreEvent) {}

    fn effects_decided(_simulation: &mut Simulation<Self>, _effects: &[Effect]) {}

    fn effect_starts(&mut self, _effect: &Effect) {}

    /// Changes the roster that a starting daemon has read.
    fn complete_roster(&mut self, _roster: &mut Roster) {}

    /// Changes the state of a starting daemon, before it recovers.
    fn complete_state(&mut self, _state: &mut State, _now: Now) {}

    /// Runs a file job that is not for the simulated disk, for example on real files. Returns the
    /// job if the simulated disk must run it.
    fn run_file_job_elsewhere(_simulation: &mut Simulation<Self>, job: FileJob) -> Option<FileJob> {
        Some(job)
    }

    fn start_host_job(simulation: &mut Simulation<Self>, job: HostJob) {
        simulation.run_host_job(job);
    }

    fn file_job_starts(&mut self, _job: &FileJob, _disk: &SimulatedDisk) {}

    fn file_job_ended(_simulation: &mut Simulation<Self>) {}

    fn pane_job_starts(&mut self, _job: &PaneJob) {}

    fn worktree_job_starts(&mut self, _job: &WorktreeJob, _disk: &SimulatedDisk) {}

    fn agent_started(_simulation: &mut Simulation<Self>, _shim_pid: u32) {}

    fn turn_ended(_simulation: &mut Simulation<Self>, _shim_pid: u32, _identity: &AgentIdentity) {}

    fn request_sent(_simulation: &mut Simulation<Self>, _identity: &AgentIdentity, _id: &RequestId) {}

    /// The program of an agent ends.
    fn program_ended(_simulation: &mut Simulation<Self>, _agent_pid: u32) {}

    /// The daemon was killed while these git jobs ran.
    fn daemon_killed(_simulation: &mut Simulation<Self>, _jobs: VecDeque<WorktreeJob>) {}
}

impl<C: Conditions> Simulation<C> {
    pub(super) fn new(conditions: C, disk: SimulatedDisk) -> Simulation<C> {
        Simulation {
            now: Now { mono: 1_000, wall: 1_795_000_000_000 },
            disk,
            tmux: SimulatedTmux::new(),
            shims: BTreeMap::new(),
            daemon: None,
            clients: BTreeMap::new(),
            last_conn: 0,
            last_pid: 1_000,
            token_usage: BTreeMap::new(),
            conditions,
        }
    }

    /// Adds a line to the log.
    pub(super) fn log(&mut self, line: impl FnOnce() -> String) {
        self.conditions.log(self.now, line);
    }

    /// The text of a line that is logged later. Empty if no lines are kept.
    pub(super) fn log_line(&self, line: impl FnOnce() -> String) -> String {
        if self.conditions.is_logging() { line() } else { String::new() }
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

    /// Sends an event to the event loop of the daemon, if a daemon runs.
    pub(super) fn send_event(&mut self, event: CoreEvent) {
        if let Some(daemon) = &mut self.daemon {
            daemon.events.push_back(event);
        }
    }

    pub(super) fn running_shims(&self) -> impl Iterator<Item = (&u32, &SimulatedShim)> {
        self.shims.iter().filter(|(_, shim)| matches!(shim.stage, ShimStage::Running { .. }))
    }

    /// The identity of a running agent.
    pub(super) fn agent_identity(&self, pid: u32) -> Option<AgentIdentity> {
        self.shims.get(&pid).filter(|shim| matches!(shim.stage, ShimStage::Running { .. }))?.identity.clone()
    }
}
