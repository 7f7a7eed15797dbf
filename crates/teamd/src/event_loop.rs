//! The event loop of the daemon. It waits for an event, lets the core handle the event, and runs
//! the effects that the core returns.

use crate::core::core_event::CoreEvent;
use crate::core::deadlines::next_deadline;
use crate::core::dispatch_core_events::handle_event;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::recovery::recover;
use crate::core::state::core_state::State;
use crate::io::effect_runner::EffectRunner;
use protocol::event_log_line::EventKind;
use std::time::Instant;
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedReceiver;

/// Runs the event loop until the core returns [`Effect::Exit`].
///
/// `queue` receives the events of all threads and connections. `new_connections` receives each
/// connection that the control socket has accepted.
pub(crate) async fn run_event_loop(
    state: &mut State,
    runner: &mut EffectRunner,
    queue: &mut UnboundedReceiver<CoreEvent>,
    new_connections: &mut UnboundedReceiver<UnixStream>,
) {
    let clock = Instant::now();
    let mut effects = recover(state, read_clocks(clock));
    let ready = EventKind::DaemonReady { pid: state.settings.pid, root: state.settings.root.clone() };
    effects.push(Effect::log_daemon(ready));
    if state.settings.tmux_socket.is_none() {
        let message = "tmux is not installed: only members without panes can run (--backend in-process)";
        effects.push(Effect::log_daemon(EventKind::Error { message: message.to_owned() }));
    }
    let mut conn = 0;
    loop {
        let wall = read_clocks(clock).wall;
        let must_exit = effects.drain(..).any(|effect| runner.run(effect, wall).is_break());
        runner.files.flush();
        if must_exit {
            runner.setups.wait();
            return;
        }
        let deadline = clock + std::time::Duration::from_millis(next_deadline(state));
        let event = tokio::select! {
            Some(event) = queue.recv() => event,
            Some(stream) = new_connections.recv() => {
                conn += 1;
                runner.connections.accept_connection(conn, stream, &runner.events);
                continue;
            }
            () = tokio::time::sleep_until(deadline.into()) => CoreEvent::DeadlineReached,
        };
        tracing::debug!(?event);
        match event {
            CoreEvent::ConnectionClosed { conn } => runner.connections.remove(conn),
            CoreEvent::WatcherOverflow => runner.overflow.reset(),
            _ => {}
        }
        effects = handle_event(state, event, read_clocks(clock));
    }
}

/// The current time. `clock` is the time at which the event loop started.
fn read_clocks(clock: Instant) -> Now {
    Now { mono: clock.elapsed().as_millis() as u64, wall: store::now() }
}
