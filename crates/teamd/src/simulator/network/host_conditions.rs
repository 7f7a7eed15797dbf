//! Extends [`Simulation`] for one host of a simulated network: it adds real team files, random
//! choices, and the jobs and replies that the network must handle.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::core::event_time::Now;
use crate::core::hosts::handle_host_events::load_links;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::host_jobs::{HostJob, LinkId};
use crate::core::jobs::worktree_jobs::WorktreeJob;
use crate::core::roster::Roster;
use crate::core::state::core_state::State;
use crate::io::files::simulated_files_thread::SimulatedFilesThread;
use crate::read_roster_and_update_its_teams::add_unknown_teams;
use crate::simulator::chance::Chance;
use crate::simulator::network::cpu_clock::cpu_time;
use crate::simulator::simulation::{Conditions, Simulation};
use mirror::MirroredTeamState;
use protocol::control_socket::Response;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use store::Root;

/// Who has sent a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NetworkCaller {
    Person,
    /// The agent with this shim, which has claimed the task.
    Claimant {
        shim_pid: u32,
        task: TaskId,
    },
    /// The home, by the number of its connection.
    Home(u64),
}

/// Whether faults are injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultPhase {
    Faults,
    Healed,
}

/// What only the simulation of a host in a network has.
pub(super) struct HostConditions {
    pub(super) rng: fastrand::Rng,
    pub(super) phase: FaultPhase,
    pub(super) root: Root,
    /// The files thread of the running daemon.
    pub(super) files: Option<SimulatedFilesThread>,
    /// The CPU time of file jobs since this was read last.
    pub(super) files_time: Duration,
    /// The links of the daemon that starts, with their mirrored teams.
    pub(super) links_at_start: Vec<(LinkId, BTreeMap<TeamName, MirroredTeamState>)>,
    /// Jobs that the network has not run yet.
    pub(super) host_jobs: VecDeque<HostJob>,
    /// Replies that the network has not handled yet.
    pub(super) replies: VecDeque<(NetworkCaller, Response)>,
    /// The shims whose agents have started since the last check.
    pub(super) started: Vec<u32>,
    /// Lines for the log, if they are kept.
    pub(super) log: Option<Vec<String>>,
}

pub(super) type HostSimulation = Simulation<HostConditions>;

impl HostConditions {
    pub(super) fn new(rng: fastrand::Rng, root: Root) -> HostConditions {
        HostConditions {
            rng,
            phase: FaultPhase::Faults,
            root,
            files: None,
            files_time: Duration::ZERO,
            links_at_start: Vec::new(),
            host_jobs: VecDeque::new(),
            replies: VecDeque::new(),
            started: Vec::new(),
            log: None,
        }
    }
}

impl Chance for HostConditions {
    fn goes_wrong(&mut self, rate: u8) -> bool {
        self.phase == FaultPhase::Faults && self.rng.u8(..) < rate
    }

    fn is_first_outcome(&mut self) -> bool {
        self.rng.bool()
    }

    fn choose_index(&mut self, count: usize) -> usize {
        self.rng.usize(0..count)
    }
}

impl Conditions for HostConditions {
    type Caller = NetworkCaller;

    fn turn_agent_caller(_shim_pid: u32) -> NetworkCaller {
        NetworkCaller::Person
    }

    fn handle_reply(
        simulation: &mut HostSimulation,
        _client: ConnId,
        caller: Option<NetworkCaller>,
        response: &Response,
    ) {
        simulation.conditions.replies.extend(caller.map(|caller| (caller, response.clone())));
    }

    fn is_logging(&self) -> bool {
        self.log.is_some()
    }

    fn log(&mut self, _now: Now, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }

    fn complete_roster(&mut self, roster: &mut Roster) {
        add_unknown_teams(&self.root, roster);
    }

    fn complete_state(&mut self, state: &mut State, now: Now) {
        load_links(state, std::mem::take(&mut self.links_at_start), now.wall);
    }

    fn run_file_job_elsewhere(simulation: &mut HostSimulation, job: FileJob) -> Option<FileJob> {
        if is_of_daemon(&job) {
            return Some(job);
        }
        let began = cpu_time();
        let (result, events) = simulation.conditions.files.as_mut()?.run(job);
        simulation.conditions.files_time += cpu_time() - began;
        let daemon = simulation.daemon.as_mut()?;
        daemon.results.extend(result.map(CoreEvent::FileJobDone).into_iter().chain(events));
        None
    }

    fn start_host_job(simulation: &mut HostSimulation, job: HostJob) {
        simulation.conditions.host_jobs.push_back(job);
    }

    fn agent_started(simulation: &mut HostSimulation, shim_pid: u32) {
        simulation.conditions.started.push(shim_pid);
    }

    fn daemon_killed(simulation: &mut HostSimulation, _jobs: VecDeque<WorktreeJob>) {
        simulation.conditions.files = None;
        simulation.conditions.host_jobs.clear();
        simulation.conditions.replies.clear();
    }
}

/// Whether the job is for the daemon's own files, which are on the simulated disk. All other jobs
/// are for team files, which are real.
fn is_of_daemon(job: &FileJob) -> bool {
    matches!(
        job,
        FileJob::SaveRoster(_)
            | FileJob::SaveEnvironment { .. }
            | FileJob::AppendEvent(_)
            | FileJob::AppendToRecord(_)
            | FileJob::ReadExitReport { .. }
            | FileJob::ReadOutputTimes { .. }
            | FileJob::ReplyWhenSaved { .. }
            | FileJob::AcknowledgeExit { .. }
            | FileJob::AwaitStopRecorded { .. }
            | FileJob::ConfirmWorktreeRecorded { .. }
            | FileJob::ProbeWatcher
            | FileJob::AwaitLogged { .. }
            | FileJob::AwaitLoggedForMirror { .. }
    )
}
