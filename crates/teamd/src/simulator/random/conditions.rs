//! The conditions of a random simulation: the seed decides what happens, and each step is checked.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::jobs::worktree_jobs::WorktreeJob;
use crate::simulator::chance::Chance;
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::random::clients::CallOrigin;
use crate::simulator::random::events_and_effects_covered::Coverage;
use crate::simulator::random::hooked_programs::HookedProgram;
use crate::simulator::random::invariants::check_worktree_recorded;
use crate::simulator::random::log_of_seed::LogOfSeed;
use crate::simulator::random::member_requests::AskedRequest;
use crate::simulator::shim::AgentIdentity;
use crate::simulator::simulation::{Conditions, Simulation};
use protocol::control_socket::Response;
use protocol::member_request::Answer;
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::{AnsweredBy, Policy};
use protocol::team_and_member_names::TeamName;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What only a random simulation has.
pub(super) struct RandomConditions {
    pub(super) rng: fastrand::Rng,
    pub(super) log: LogOfSeed,
    pub(super) action_rates: ActionRates,
    /// No more faults are injected.
    pub(super) is_fault_free: bool,
    pub(super) was_clock_set: bool,
    /// What has occurred so far.
    pub(super) coverage: Coverage,
    /// The programs with hooks, by pid.
    pub(super) programs: BTreeMap<u32, HookedProgram>,
    /// The pids of lead sessions.
    pub(super) lead_processes: BTreeSet<u32>,
    /// The shims that were killed before their agent started. If the daemon is killed too, no
    /// daemon closes the dead pane: it stays until a user runs `teamctl doctor`.
    pub(super) killed_early: BTreeSet<u32>,
    /// Clients that closed their connection before the reply.
    pub(super) dropped_clients: BTreeSet<ConnId>,
    /// All requests of members.
    pub(super) asked_requests: BTreeMap<RequestId, AskedRequest>,
    /// The requests that agents sent in their running turns, by the pid of the shim.
    pub(super) open_requests: BTreeMap<u32, Vec<RequestId>>,
    /// The ids of spawn requests for which a plan was approved.
    pub(super) approved_spawns: BTreeSet<String>,
    /// The ids of spawn requests whose agents must plan first.
    pub(super) planning_spawns: BTreeSet<String>,
    /// All policies that a client has requested for a team.
    pub(super) policy_history: BTreeMap<TeamName, Vec<Policy>>,
    /// The roster that the running daemon saved last, as text.
    pub(super) saved_roster: String,
    /// The answer that the running file job writes.
    answer_in_job: Option<(RequestId, Answer, AnsweredBy)>,
}

/// How often the simulator causes a fault, how often it runs an action that is due, and which
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

impl RandomConditions {
    fn new(mut rng: fastrand::Rng, log: LogOfSeed) -> RandomConditions {
        RandomConditions {
            action_rates: ActionRates::random(&mut rng),
            rng,
            log,
            is_fault_free: false,
            was_clock_set: false,
            coverage: Coverage::default(),
            programs: BTreeMap::new(),
            lead_processes: BTreeSet::new(),
            killed_early: BTreeSet::new(),
            dropped_clients: BTreeSet::new(),
            asked_requests: BTreeMap::new(),
            open_requests: BTreeMap::new(),
            approved_spawns: BTreeSet::new(),
            planning_spawns: BTreeSet::new(),
            policy_history: BTreeMap::new(),
            saved_roster: String::new(),
            answer_in_job: None,
        }
    }

    /// A new disk. In some simulations, the disk does not report changes of files. Most simulations
    /// have no event log, which makes them faster.
    fn random_disk(&mut self) -> SimulatedDisk {
        let mut disk = SimulatedDisk::default();
        disk.is_reporting_changes = self.rng.u8(..) < 240;
        disk.log = (self.rng.u8(..) < 30).then(Vec::new);
        disk
    }
}

pub(super) type RandomSimulation = Simulation<RandomConditions>;

impl RandomSimulation {
    pub(super) fn of_seed(seed: u64, log: LogOfSeed) -> RandomSimulation {
        let mut conditions = RandomConditions::new(fastrand::Rng::with_seed(seed), log);
        let disk = conditions.random_disk();
        let mut simulation = Simulation::new(conditions, disk);
        simulation.tmux.is_showing_dialogs = true;
        simulation
    }
}

impl Chance for RandomConditions {
    fn goes_wrong(&mut self, rate: u8) -> bool {
        self.rng.u8(..) < rate
    }

    fn is_first_outcome(&mut self) -> bool {
        self.rng.bool()
    }

    fn choose_index(&mut self, count: usize) -> usize {
        self.rng.usize(0..count)
    }
}

impl Conditions for RandomConditions {
    type Caller = CallOrigin;

    fn turn_agent_caller(shim_pid: u32) -> CallOrigin {
        CallOrigin::TurnAgent(shim_pid)
    }

    fn handle_reply(
        simulation: &mut RandomSimulation,
        client: ConnId,
        caller: Option<CallOrigin>,
        response: &Response,
    ) {
        simulation.handle_reply_of(client, caller, response);
    }

    fn is_logging(&self) -> bool {
        self.log.is_on()
    }

    fn log(&mut self, now: Now, line: impl FnOnce() -> String) {
        self.log.add(now, line);
    }

    fn is_lead_alive(&self, pid: u32) -> bool {
        self.lead_processes.contains(&pid)
    }

    fn barrier_fails(&mut self) -> bool {
        !self.is_fault_free && self.goes_wrong(60)
    }

    fn event_starts(&mut self, event: &CoreEvent) {
        self.coverage.record_event(event);
    }

    fn effects_decided(simulation: &mut RandomSimulation, effects: &[Effect]) {
        simulation.check_roster_saved(effects);
        simulation.check_stops_recorded(effects);
        if effects.iter().any(|effect| matches!(effect, Effect::WakeAgent { .. })) {
            simulation.check_offers();
        }
    }

    fn effect_starts(&mut self, effect: &Effect) {
        self.coverage.record_effect(effect);
    }

    fn file_job_starts(&mut self, job: &FileJob, disk: &SimulatedDisk) {
        self.coverage.record_file_job(job);
        self.answer_in_job = match job {
            FileJob::WriteAnswer { request, answer, by, .. } if !disk.is_full => {
                Some((request.request.id().clone(), answer.clone(), *by))
            }
            _ => None,
        };
    }

    fn file_job_ended(simulation: &mut RandomSimulation) {
        let Some((id, answer, by)) = simulation.conditions.answer_in_job.take() else { return };
        let result = simulation.daemon.as_ref().and_then(|daemon| daemon.results.back());
        let is_written =
            matches!(result, Some(CoreEvent::FileJobDone(FileResult::AnswerWritten { result: Ok(()), .. })));
        if is_written {
            simulation.check_policy_answer(&id, by);
            simulation.record_approval(&id, &answer);
        }
    }

    fn pane_job_starts(&mut self, job: &PaneJob) {
        self.coverage.record_pane_job(job);
    }

    fn worktree_job_starts(&mut self, job: &WorktreeJob, disk: &SimulatedDisk) {
        if let WorktreeJob::Fill(creation) = job {
            check_worktree_recorded(disk, creation);
        }
    }

    fn agent_started(simulation: &mut RandomSimulation, shim_pid: u32) {
        simulation.check_agent_start(shim_pid);
        simulation.start_program(shim_pid);
    }

    fn turn_ended(simulation: &mut RandomSimulation, shim_pid: u32, identity: &AgentIdentity) {
        simulation.withdraw_requests_of_turn(shim_pid, identity);
    }

    fn request_sent(simulation: &mut RandomSimulation, identity: &AgentIdentity, id: &RequestId) {
        simulation.record_request(identity, id);
    }

    fn program_ended(simulation: &mut RandomSimulation, agent_pid: u32) {
        simulation.end_program(agent_pid);
    }

    /// Lets some of the killed daemon's git jobs finish: git is a separate process, and survives
    /// the daemon.
    fn daemon_killed(simulation: &mut RandomSimulation, jobs: VecDeque<WorktreeJob>) {
        simulation.conditions.saved_roster.clear();
        for job in jobs {
            if simulation.conditions.rng.bool() {
                simulation.end_worktree_job(job);
            }
        }
        simulation.disconnect_hooks();
    }
}
