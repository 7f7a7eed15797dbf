//! Runs a simulation of a team on several hosts. First come random actions and faults. Then the
//! faults end, and the simulation runs until nothing happens any more.

use crate::core::connection_spawn_and_watch_ids::set_uuid_counter;
use crate::simulator::network::connections::{HOME, HostIndex, PipeEnd};
use crate::simulator::network::defect::Defect;
use crate::simulator::network::host_conditions::{FaultPhase, NetworkCaller};
use crate::simulator::network::members::members_of;
use crate::simulator::network::network_simulation::NetworkSimulation;
use crate::simulator::network::simulated_host::team_name;
use protocol::control_socket::{CreateTeamRequest, Request};

/// How many actions happen until a simulation is quiet. More are a livelock.
const MAX_QUIET_STEPS: usize = 60_000;
/// How long a simulation must run after the last fault before it is checked, in milliseconds of
/// simulated time. A link needs up to this time to notice that its connection is dead, and to
/// connect again.
const QUIET_TIME: u64 = 150_000;
/// As [`QUIET_TIME`], for a team without faults.
const START_TIME: u64 = 5_000;
/// How often people start the missing members after the faults.
const MAX_ROUNDS: usize = 6;
/// A jump of a host's wall clock in milliseconds.
const CLOCK_JUMP: u64 = 3_600_000;

/// Runs a life. Panics if an invariant does not hold, or if it does not end.
pub(super) fn run_life(simulation: &mut NetworkSimulation, seed: u64) {
    set_uuid_counter(seed << 20);
    let random_actions = simulation.rng.usize(200..1_800);
    let fault_rate = simulation.rng.u8(..40);
    (0..simulation.hosts.len()).for_each(|host| simulation.start_host(host));
    create_team(simulation);
    // Most lives have faults only when all members run.
    if simulation.rng.u8(..) < 200 {
        start_team(simulation, START_TIME);
    }
    let delays = [0, 20, 2_000, 40_000];
    simulation.longest_delay = delays[simulation.rng.usize(..delays.len())];
    for _ in 0..random_actions {
        random_action(simulation, fault_rate);
    }
    heal(simulation);
    simulation.check_quiet();
}

fn create_team(simulation: &mut NetworkSimulation) {
    let request = Request::CreateTeam(CreateTeamRequest::new(team_name(), "/".into()));
    simulation.hosts[HOME].simulation.send_call_as(NetworkCaller::Person, None, request);
}

fn random_action(simulation: &mut NetworkSimulation, fault_rate: u8) {
    let due = simulation.due_actions();
    if simulation.rng.u8(..) < 215
        && let Some(action) = simulation.rng.choice(due)
    {
        return simulation.run(action);
    }
    match simulation.rng.u8(..100) {
        _ if simulation.rng.u8(..) < fault_rate => inject_fault(simulation),
        0..=14 => simulation.act_as_person(),
        15..=69 => simulation.act_as_agent(),
        70..=89 => {
            let next = simulation.next_deadline();
            simulation.advance_to(next.min(simulation.now + 60_000));
        }
        _ => {
            let ms = simulation.rng.u64(..3_000);
            simulation.advance_to(simulation.now + ms);
        }
    }
    if simulation.defect == Some(Defect::RunsUnregisteredAgents) && simulation.rng.u8(..) < 10 {
        simulation.start_unregistered_agent();
    }
}

fn inject_fault(simulation: &mut NetworkSimulation) {
    let host = simulation.rng.usize(..simulation.hosts.len());
    match simulation.rng.u8(..10) {
        0..=1 => simulation.kill_host(host),
        2..=4 => (0..simulation.hosts.len()).for_each(|host| restart(simulation, host)),
        5..=6 => cut_connection(simulation),
        7..=8 if host != HOME => toggle_partition(simulation, host),
        _ => {
            simulation.ledger.cover("clock jump");
            let wall = &mut simulation.hosts[host].simulation.now.wall;
            *wall = if simulation.rng.bool() { *wall + CLOCK_JUMP } else { *wall - CLOCK_JUMP };
        }
    }
}

fn restart(simulation: &mut NetworkSimulation, host: HostIndex) {
    if !simulation.hosts[host].is_running() {
        simulation.start_host(host);
    }
}

/// Cuts a random connection at a random byte of each direction. The host at each end either finds
/// this out at once, or gets nothing more and does not find out.
fn cut_connection(simulation: &mut NetworkSimulation) {
    let rng = &mut simulation.rng;
    let Some((number, connection)) = rng.choice(simulation.connections.iter_mut()) else { return };
    for pipe in [&mut connection.to_annex, &mut connection.to_home] {
        let end = if rng.u8(..) < 60 { PipeEnd::Silent } else { PipeEnd::Closed };
        pipe.cut(rng.usize(..=pipe.length()), end);
    }
    let number = *number;
    simulation.ledger.cover("cut");
    simulation.log(|| format!("connection {number} is cut"));
}

fn toggle_partition(simulation: &mut NetworkSimulation, annex: HostIndex) {
    simulation.ledger.cover("partition");
    if !simulation.partitioned.remove(&annex) {
        simulation.partitioned.insert(annex);
    }
    simulation.log(|| format!("the partition of host {annex} begins or ends"));
}

/// Ends all faults, and starts what is missing.
fn heal(simulation: &mut NetworkSimulation) {
    simulation.log(|| "no more faults".to_owned());
    (simulation.phase, simulation.longest_delay) = (FaultPhase::Healed, 0);
    simulation.partitioned.clear();
    for host in 0..simulation.hosts.len() {
        simulation.hosts[host].simulation.conditions.phase = FaultPhase::Healed;
        restart(simulation, host);
    }
    if simulation.hosts[HOME].team().is_none() {
        create_team(simulation);
    }
    start_team(simulation, QUIET_TIME);
}

/// Lets people start what is missing until everything runs and is quiet.
fn start_team(simulation: &mut NetworkSimulation, time: u64) {
    for _ in 0..MAX_ROUNDS {
        run_until_quiet(simulation, time);
        if !start_missing_members(simulation) {
            return;
        }
    }
    panic!("not all members run after {MAX_ROUNDS} attempts");
}

/// Starts what does not run. Returns whether something was missing.
fn start_missing_members(simulation: &mut NetworkSimulation) -> bool {
    let mut is_missing = false;
    for host in 0..simulation.hosts.len() {
        for name in members_of(host) {
            if simulation.running_agent(host, &name).is_none() {
                is_missing = true;
                if host != HOME {
                    simulation.use_host(host);
                }
                simulation.spawn_member(host, name);
            }
        }
        simulation.finish_step(host);
    }
    is_missing
}

/// Runs without faults until `time` milliseconds have passed and no action is due.
fn run_until_quiet(simulation: &mut NetworkSimulation, time: u64) {
    let end = simulation.now + time;
    for _ in 0..MAX_QUIET_STEPS {
        let due = simulation.due_actions();
        match simulation.rng.choice(due) {
            Some(action) => simulation.run(action),
            None if simulation.now > end => return,
            None => simulation.advance_to(simulation.next_deadline().clamp(simulation.now + 1, end + 1)),
        }
    }
    panic!("the simulation does not become quiet within {MAX_QUIET_STEPS} steps");
}
