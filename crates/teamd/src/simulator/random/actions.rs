//! Chooses the next action of a simulation at random, from all actions that are possible now.
//!
//! A scenario has three phases. The first phase has random actions and faults. The second phase has
//! no faults and lasts until the simulation is idle. The last phase deletes all teams or shuts the
//! daemon down.

use crate::core::deadlines::next_deadline;
use crate::simulator::random::calls::{TEAMS, create_request, send_random_call};
use crate::simulator::random::clients::CallOrigin;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::random::faults::{inject_random_fault, random_shim};
use crate::simulator::shim::{START_TIMEOUT, ShimStage, SimulatedShim};
use crate::simulator::team_files::SimulatedTeamFiles;
use protocol::control_socket::{Activity, DeleteTeamRequest, ExitReport, MemberAddress, Request};
use protocol::delivery_kind::Delivery;
use protocol::inbox_message_payload::IdleReason;
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::TeamName;

/// Maximum number of random actions.
const MAX_STEPS: usize = 100;
/// How long a simulation runs without new faults before it counts as idle, in milliseconds of
/// simulated time. This is longer than the longest grace period and the longest backoff.
const IDLE_TIMEOUT: u64 = 100_000;
/// As [`IDLE_TIMEOUT`], for the last phase. It is shorter because no backoff is running.
const TEARDOWN_TIMEOUT: u64 = 40_000;
/// Maximum number of actions until a simulation is idle. More actions are a livelock.
const MAX_IDLE_STEPS: usize = 20_000;

/// Runs all phases of a simulation. Panics if an invariant does not hold.
pub(super) fn run_scenario(simulation: &mut RandomSimulation) {
    simulation.start();
    TEAMS.into_iter().for_each(|team| {
        let request = create_request(simulation, TeamName::parse(team).expect("the name is valid"));
        simulation.send_call(request);
    });
    for _ in 0..simulation.conditions.rng.usize(20..MAX_STEPS) {
        random_action(simulation);
    }
    simulation.shims.values_mut().for_each(|shim| shim.is_stopped = false);
    run_until_idle(simulation, IDLE_TIMEOUT);
    simulation.check_idle();
    stop_random_shim(simulation);
    tear_down(simulation);
    simulation.check_empty();
}

/// The actions that are due now, without a random client or fault.
fn due_actions(simulation: &RandomSimulation) -> Vec<fn(&mut RandomSimulation)> {
    let mut due = simulation.due_daemon_actions();
    if simulation.conditions.is_fault_free && simulation.agent_in_turn().is_some() {
        due.push(RandomSimulation::end_any_turn);
    }
    if simulation.due_hooks().next().is_some() {
        due.push(RandomSimulation::run_hook);
    }
    if simulation.due_shims().next().is_some() {
        due.push(run_shim);
    }
    due
}

fn run_shim(simulation: &mut RandomSimulation) {
    let shims: Vec<u32> = simulation.due_shims().collect();
    if let Some(pid) = simulation.conditions.rng.choice(shims) {
        simulation.run_shim(pid);
    }
}

fn random_action(simulation: &mut RandomSimulation) {
    let due = due_actions(simulation);
    if !due.is_empty()
        && simulation.conditions.rng.u8(..) < simulation.conditions.action_rates.due_action_rate
    {
        return simulation.conditions.rng.choice(due).into_iter().for_each(|action| action(simulation));
    }
    match simulation.conditions.rng.u8(..) {
        0..=59 => send_random_call(simulation),
        60..=89 => simulation.write_random_file(),
        90..=99 => simulation.answer_random_request(),
        100..=190 => random_agent_action(simulation),
        191..=220 => advance_randomly(simulation),
        number if number - 221 < simulation.conditions.action_rates.fault_rate => {
            inject_random_fault(simulation);
        }
        _ => {}
    }
}

fn advance_randomly(simulation: &mut RandomSimulation) {
    let until_deadline = simulation.next_deadline().saturating_sub(simulation.now.mono).min(60_000);
    let ms = if simulation.conditions.rng.bool() {
        until_deadline
    } else {
        simulation.conditions.rng.u64(0..3_000)
    };
    simulation.advance_clock(ms);
}

/// A random action of an agent or a lead session.
fn random_agent_action(simulation: &mut RandomSimulation) {
    let lead_pids: Vec<u32> = simulation
        .conditions
        .programs
        .iter()
        .filter(|(_, program)| program.identity.is_none())
        .map(|(pid, _)| *pid)
        .collect();
    if let Some(pid) = simulation.conditions.rng.choice(lead_pids)
        && simulation.conditions.rng.u8(..) < 60
    {
        return random_hook_action(simulation, pid);
    }
    let shim_pids: Vec<u32> = simulation.running_shims().map(|(pid, _)| *pid).collect();
    let Some(pid) = simulation.conditions.rng.choice(shim_pids) else { return };
    match simulation.conditions.rng.u8(0..16) {
        0 => simulation.end_agent(pid, ExitReport::Exit(0)),
        1 => simulation.end_agent(pid, ExitReport::Exit(1)),
        2..=5 => answer_shutdown(simulation, pid),
        6..=8 => drop(simulation.end_turn(pid, IdleReason::Available)),
        9 => drop(simulation.end_turn(pid, IdleReason::Failed)),
        10 => simulation.request_permission_in_turn(pid),
        11..=13 => interrupt_or_hide(simulation, pid),
        _ => random_program_action(simulation, pid),
    }
}

/// A user interrupts an agent, or hides or shows its pane.
fn interrupt_or_hide(simulation: &mut RandomSimulation, pid: u32) {
    let Some(identity) = simulation.agent_identity(pid) else { return };
    let address = MemberAddress { team: identity.team, name: identity.name.to_string() };
    let requests =
        [Request::Interrupt(address.clone()), Request::HidePane(address.clone()), Request::ShowPane(address)];
    let request = simulation.conditions.rng.choice(requests);
    request.into_iter().for_each(|request| simulation.send_call(request));
}

/// A random action of a program with hooks.
fn random_hook_action(simulation: &mut RandomSimulation, pid: u32) {
    match simulation.conditions.rng.u8(0..10) {
        0..=5 => simulation.end_program_turn(pid),
        6 => simulation.type_prompt(pid),
        7 => simulation.kill_hook(pid),
        8 => simulation.send_other_event(pid),
        _ => simulation.send_nested_event(pid),
    }
}

/// A random action of an agent whose program runs during the whole spawn.
fn random_program_action(simulation: &mut RandomSimulation, pid: u32) {
    let Some(identity) = simulation.agent_identity(pid) else { return };
    let agent_pid = simulation.shims[&pid].agent_pid().unwrap_or_default();
    if simulation.conditions.programs.contains_key(&agent_pid) && simulation.conditions.rng.u8(..) < 200 {
        return random_hook_action(simulation, agent_pid);
    }
    let activity = if simulation.conditions.rng.bool() { Activity::Active } else { Activity::Idle };
    match simulation.conditions.rng.u8(0..6) {
        0..=2 if identity.first_argument == "plan" => drop(simulation.write_plan_request(&identity)),
        0 => drop(simulation.request_permission(&identity)),
        1 if identity.delivery == Delivery::Native => {
            simulation.notify_lead(&identity, IdleReason::Available);
        }
        2 if identity.delivery == Delivery::Native => {
            simulation.disk.change_member(&identity.team, &identity.name, |member| {
                member.is_active = activity == Activity::Active;
            });
        }
        _ => drop(simulation.send_call_as(
            CallOrigin::Person,
            Some(identity.token),
            Request::ReportActivity(activity),
        )),
    }
}

fn answer_shutdown(simulation: &mut RandomSimulation, pid: u32) {
    let spawn = &simulation.shims[&pid].spawn;
    let find_request = |(name, files): (&TeamName, &SimulatedTeamFiles)| {
        let member = files.members.iter().find(|(_, member)| member.spawn_id == *spawn)?.0;
        let request = files.shutdown_requests.get(member)?.last()?;
        Some((name.clone(), member.clone(), request.clone()))
    };
    let Some((team, member, request)): Option<(_, _, RequestId)> =
        simulation.disk.teams.iter().find_map(find_request)
    else {
        return;
    };
    let rejection = simulation.conditions.rng.bool().then(|| "busy".to_owned());
    simulation.write_shutdown_answer(&team, member, request, rejection);
}

/// Runs the simulation without faults and new calls until no action is due, but at least for
/// `timeout` milliseconds of simulated time.
fn run_until_idle(simulation: &mut RandomSimulation, timeout: u64) {
    simulation.log(|| "no more faults".to_owned());
    simulation.conditions.is_fault_free = true;
    (simulation.disk.is_full, simulation.tmux.is_hung) = (false, false);
    let end = simulation.now.mono + timeout;
    for _ in 0..MAX_IDLE_STEPS {
        if simulation.daemon.is_none() {
            simulation.start();
        }
        let due = due_actions(simulation);
        match simulation.conditions.rng.choice(due) {
            Some(action) => action(simulation),
            None if simulation.now.mono > end => return,
            None => {
                let next = simulation.next_deadline().max(simulation.now.mono + 1);
                simulation.advance_clock(next - simulation.now.mono);
            }
        }
    }
    panic!("the simulation does not become idle");
}

/// In some simulations, stops a shim with SIGSTOP, so that it does not react to the shutdown.
fn stop_random_shim(simulation: &mut RandomSimulation) {
    let shim = if simulation.conditions.rng.u8(..) < 16 { random_shim(simulation) } else { None };
    shim.and_then(|pid| simulation.shims.get_mut(&pid)).into_iter().for_each(|shim| shim.is_stopped = true);
}

/// Deletes all teams, or shuts the daemon down.
fn tear_down(simulation: &mut RandomSimulation) {
    if simulation.conditions.rng.bool() {
        for team in TEAMS {
            let team = TeamName::parse(team).expect("the name is valid");
            let worktrees = simulation.disk.roster.worktrees.get(&team).into_iter().flatten();
            let discard = worktrees.map(|worktree| worktree.record.path.clone()).collect();
            simulation.send_call(Request::DeleteTeam(DeleteTeamRequest {
                discard_worktrees: discard,
                ..DeleteTeamRequest::forced(team)
            }));
        }
    } else {
        simulation.send_call(Request::StopDaemon);
    }
    run_until_idle(simulation, TEARDOWN_TIMEOUT);
}

impl RandomSimulation {
    /// The shim of an agent with a running turn.
    pub(super) fn agent_in_turn(&self) -> Option<u32> {
        let has_turn = |shim: &SimulatedShim| {
            shim.is_alive() && shim.turn_agent.as_ref().is_some_and(|turn_agent| turn_agent.is_in_turn)
        };
        self.running_shims().find(|(_, shim)| has_turn(shim)).map(|(pid, _)| *pid)
    }

    /// Completes the running turn of some agent.
    pub(super) fn end_any_turn(&mut self) {
        if let Some(pid) = self.agent_in_turn() {
            self.end_turn(pid, IdleReason::Available);
        }
    }

    /// The next deadline of the daemon or of a shim, on the monotonic clock.
    pub(super) fn next_deadline(&self) -> u64 {
        let daemon = self.daemon.as_ref().map_or(u64::MAX, |daemon| next_deadline(&daemon.state));
        let waiting = self.shims.values().filter(|shim| shim.stage == ShimStage::Waiting);
        waiting.map(|shim| shim.started_at + START_TIMEOUT).fold(daemon, u64::min)
    }
}
