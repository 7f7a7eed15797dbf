//! Tries each place for one fault in a fixed exchange of 30 items in both directions.

use crate::simulator::host::{ANNEX, HostIndex, ReceiverKind};
use crate::simulator::network::PipeEnd;
use crate::simulator::simulation::{Action, Simulation, run_and_catch};

const ITEMS: u64 = 30;

/// How much of a write is done when its process is killed, in bytes or items: nothing, a part, all.
const WRITTEN: [usize; 3] = [0, 150, usize::MAX];

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// Kill a process before this step.
    Kill {
        host: HostIndex,
        step: u64,
        written: usize,
    },
    /// Cut the connection when `bytes` bytes have arrived at one end: at the annex if `to_annex` is
    /// true, otherwise at the home. Of the bytes that are then on their way to the other end, only
    /// the first `on_the_way` arrive. The tests use 0 and `usize::MAX`, which means all bytes.
    Cut {
        to_annex: bool,
        bytes: u64,
        on_the_way: usize,
    },
}

/// Runs the exchange with one fault. The next action is always the next one in a fixed order.
fn run_script(simulation: &mut Simulation, fault: Fault) {
    let home = simulation.home();
    [ANNEX, home].into_iter().for_each(|host| simulation.start(host));
    let mut is_over = matches!(fault, Fault::None);
    for turn in 0.. {
        assert!(turn < 20_000, "not everything is delivered");
        if !is_over {
            is_over = inject(simulation, fault);
        }
        let actions = simulation.due_actions();
        if actions.is_empty() && simulation.is_complete() {
            assert!(is_over, "the fault was not injected");
            return simulation.check_received();
        }
        match actions.get(turn % actions.len().max(1)) {
            Some(Action::Deliver(connection, to_annex)) => {
                let bytes = if is_over { usize::MAX } else { bytes_until(simulation, fault, *to_annex) };
                simulation.deliver(*connection, *to_annex, bytes);
            }
            Some(action) => simulation.run(*action),
            None => simulation.advance_time(),
        }
    }
}

/// Injects the fault if its time has come.
fn inject(simulation: &mut Simulation, fault: Fault) -> bool {
    match fault {
        Fault::Kill { host, step, written } if simulation.steps == step => {
            simulation.kill(host, written);
            simulation.start(host);
            true
        }
        Fault::Cut { to_annex, bytes, on_the_way } if arrived(simulation, to_annex) == bytes => {
            let Some(connection) = simulation.network.connections.values_mut().next() else { return false };
            connection.to_annex.cut(if to_annex { 0 } else { on_the_way }, PipeEnd::Closed);
            connection.to_home.cut(if to_annex { on_the_way } else { 0 }, PipeEnd::Closed);
            true
        }
        _ => false,
    }
}

fn arrived(simulation: &Simulation, to_annex: bool) -> u64 {
    simulation.delivered[usize::from(!to_annex)]
}

/// How many bytes may arrive until the cut.
fn bytes_until(simulation: &Simulation, fault: Fault, to_annex: bool) -> usize {
    match fault {
        Fault::Cut { to_annex: same, bytes, .. } if same == to_annex => {
            (bytes - arrived(simulation, to_annex)) as usize
        }
        _ => usize::MAX,
    }
}

/// Runs the exchange for each kind of receiver with each fault, on all processors.
fn check_all(faults: &[Fault]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let check = |fault: &Fault| {
        for kind in [ReceiverKind::OneStep, ReceiverKind::Idempotent] {
            let mut simulation = Simulation::new(0, kind, ITEMS);
            let result = run_and_catch(&mut simulation, |simulation| run_script(simulation, *fault));
            assert!(result.is_ok(), "{kind:?}, {fault:?}: {}", result.unwrap_err());
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || faults.iter().skip(thread).step_by(threads).for_each(check));
        }
    });
}

/// The exchange without a fault.
fn run_without_fault() -> Simulation {
    let mut simulation = Simulation::new(0, ReceiverKind::OneStep, ITEMS);
    run_script(&mut simulation, Fault::None);
    simulation
}

#[test]
fn kill_at_every_step_loses_and_doubles_nothing() {
    let simulation = run_without_fault();
    let hosts = [ANNEX, simulation.home()];
    let at = |host, step| WRITTEN.map(|written| Fault::Kill { host, step, written });
    let steps = (0..simulation.steps).flat_map(|step| hosts.map(|host| at(host, step)));
    let faults: Vec<Fault> = steps.flatten().collect();
    assert!(faults.len() > 1_000, "{}", faults.len());
    check_all(&faults);
}

#[test]
fn cut_at_every_frame_boundary_loses_and_doubles_nothing() {
    let simulation = run_without_fault();
    let mut faults = Vec::new();
    for to_annex in [true, false] {
        let end = arrived(&simulation, to_annex);
        let boundaries = simulation.boundaries[usize::from(!to_annex)].iter();
        // At the boundary, inside the length of the next frame, and inside its text.
        let places = boundaries.flat_map(|boundary| [0, 1, 40].map(|offset| boundary + offset));
        for bytes in places.filter(|bytes| *bytes <= end) {
            faults.extend([0, usize::MAX].map(|on_the_way| Fault::Cut { to_annex, bytes, on_the_way }));
        }
    }
    assert!(faults.len() > 300, "{}", faults.len());
    check_all(&faults);
}
