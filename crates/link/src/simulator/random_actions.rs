//! Chooses the actions and faults of a simulation by its seed.

use crate::settings_and_identity::LinkRole;
use crate::simulator::host::{ANNEX, Host, HostIndex, ReceiverKind};
use crate::simulator::network::PipeEnd;
use crate::simulator::simulation::{Action, Simulation};

/// How many actions a simulation has at most until everything is delivered.
const MAX_ACTIONS: usize = 200_000;

/// A simulation with the settings of its seed.
pub(super) fn create(seed: u64) -> Simulation {
    let mut rng = fastrand::Rng::with_seed(!seed);
    let kind = if rng.bool() { ReceiverKind::OneStep } else { ReceiverKind::Idempotent };
    let wanted = if rng.u8(..) < 20 { rng.u64(300..700) } else { rng.u64(1..60) };
    let mut simulation = Simulation::new(seed, kind, wanted);
    if rng.u8(..) < 8 {
        simulation.padding = "x".repeat(rng.usize(100_000..500_000));
        simulation.hosts.iter_mut().for_each(|host| host.wanted = host.wanted.min(12));
    }
    if rng.bool() {
        simulation.settings.spool_slack_bytes = rng.usize(1..3_000);
        simulation.settings.queue_items = rng.usize(1..40);
    }
    simulation
}

/// Runs a simulation: faults first, and then none until everything is delivered.
pub(super) fn run_scenario(simulation: &mut Simulation) {
    let faults = simulation.rng.usize(0..30);
    let actions_between = simulation.rng.usize(5..200);
    for _ in 0..faults {
        for _ in 0..simulation.rng.usize(0..actions_between) {
            run_action(simulation);
        }
        inject_fault(simulation);
    }
    repair(simulation);
    let is_done = (0..MAX_ACTIONS).any(|_| {
        run_action(simulation);
        simulation.is_complete()
    });
    assert!(is_done, "not everything is delivered");
    simulation.check_received();
}

/// Ends all faults. Processes of earlier homes keep running.
fn repair(simulation: &mut Simulation) {
    simulation.network.is_partitioned = false;
    for host in 0..simulation.hosts.len() {
        simulation.hosts[host].disk.is_full = false;
        if simulation.hosts[host].process.is_none() && (host == ANNEX || host == simulation.home()) {
            simulation.start(host);
        }
    }
}

fn run_action(simulation: &mut Simulation) {
    let actions = simulation.due_actions();
    if actions.is_empty() || simulation.rng.u8(..) == 0 {
        return simulation.advance_time();
    }
    match actions[simulation.rng.usize(..actions.len())] {
        Action::Submit(host) => {
            let generation = random_generation(simulation, host);
            simulation.submit(host, generation);
        }
        Action::Deliver(connection, to_annex) => {
            let some = simulation.rng.usize(1..400);
            let bytes = if simulation.rng.bool() { usize::MAX } else { some };
            simulation.deliver(connection, to_annex, bytes);
        }
        action => simulation.run(action),
    }
}

/// The start that an item names: at the home the last one, at the annex perhaps an earlier one.
fn random_generation(simulation: &mut Simulation, host: HostIndex) -> Option<u64> {
    let last = simulation.hosts[host].generation;
    let earlier = simulation.rng.u64(..=last);
    let is_named = simulation.rng.u8(..) < 60;
    is_named.then_some(if host == ANNEX { earlier } else { last })
}

fn inject_fault(simulation: &mut Simulation) {
    let host = if simulation.rng.bool() { ANNEX } else { simulation.home() };
    match simulation.rng.u8(..9) {
        0 | 1 => {
            let steps = if simulation.rng.bool() { simulation.rng.usize(..2_000) } else { 0 };
            simulation.kill(host, steps);
            simulation.cover("kill");
        }
        2 => (0..simulation.hosts.len()).for_each(|host| restart(simulation, host)),
        3 | 4 => cut_connection(simulation),
        5 => simulation.network.is_partitioned = !simulation.network.is_partitioned,
        6 => simulation.hosts[host].disk.is_full = !simulation.hosts[host].disk.is_full,
        7 => start_member_again(simulation),
        _ if simulation.hosts.len() < 4 => move_home(simulation),
        _ => {}
    }
}

/// Starts the process of `host` if it was killed. An earlier home is started only after the annex
/// has stored the epoch of the current home. Before that, the annex would accept the earlier home.
fn restart(simulation: &mut Simulation, host: HostIndex) {
    let LinkRole::Home { epoch } = simulation.hosts[simulation.home()].role else { unreachable!() };
    let is_fenced = simulation.hosts[ANNEX].disk.position.epoch >= epoch;
    let may_start = host == ANNEX || host == simulation.home() || is_fenced;
    if simulation.hosts[host].process.is_none() && may_start {
        simulation.start(host);
    }
}

/// Cuts a random connection after a random number of bytes. Each end finds out at once or never.
fn cut_connection(simulation: &mut Simulation) {
    let rng = &mut simulation.rng;
    let connections = simulation.network.connections.len();
    if connections == 0 {
        return;
    }
    let connection =
        simulation.network.connections.values_mut().nth(connections - 1 - rng.usize(..connections.min(2)));
    if let Some(connection) = connection {
        for pipe in [&mut connection.to_annex, &mut connection.to_home] {
            let end = if rng.u8(..) < 60 { PipeEnd::Silent } else { PipeEnd::Closed };
            pipe.cut(rng.usize(..=pipe.bytes.len()), end);
        }
    }
    simulation.cover("cut");
}

/// The home starts the member again, so items of its earlier starts are dropped.
fn start_member_again(simulation: &mut Simulation) {
    let home = simulation.home();
    simulation.hosts[home].generation += 1;
    let spawn = crate::test_items::spawn(simulation.hosts[home].generation);
    simulation.push_event(home, crate::LinkEvent::SpawnStarted(spawn));
}

/// A person stops the home, copies its files to another host, and starts it there with a new epoch.
/// Later the earlier home is started again by mistake.
fn move_home(simulation: &mut Simulation) {
    let old_index = simulation.home();
    simulation.kill(old_index, 0);
    let old = &mut simulation.hosts[old_index];
    let LinkRole::Home { epoch } = old.role else { unreachable!() };
    let new = Host {
        role: LinkRole::Home { epoch: epoch + 1 },
        disk: old.disk.clone(),
        process: None,
        wanted: old.wanted,
        first_count: old.first_count,
        submitted: old.submitted.clone(),
        generation: old.generation,
    };
    (old.first_count, old.wanted) = (1_000_000, old.wanted + 50);
    simulation.hosts.push(new);
    simulation.cover("move");
}
