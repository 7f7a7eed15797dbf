//! The event loop of the daemon. It waits for an event, lets the core handle the event, and runs
//! the effects that the core returns. It also turns signals into events.

use crate::core::deadlines::next_deadline;
use crate::core::dispatch::handle_event;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::event_time::Now;
use crate::core::recovery::recover;
use crate::core::state::daemon::State;
use crate::io::effect_runner::EffectRunner;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

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

/// Turns SIGTERM, SIGINT and SIGHUP into events. A second signal ends the daemon at once.
pub(crate) fn watch_signals(events: &UnboundedSender<CoreEvent>) -> Result<(), ErrorReport> {
    // The daemon handles SIGXFSZ, so a write beyond the file size limit (`ulimit -f`) only returns
    // an error. Without a handler, the signal would kill the daemon.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok();
    let kinds = [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::hangup(), "SIGHUP"),
    ];
    // After the first signal the daemon waits until running jobs are done. A job may wait several
    // seconds for a file lock. A second signal ends the daemon without waiting.
    let has_received_signal = Arc::new(AtomicBool::new(false));
    for (kind, name) in kinds {
        let number = kind.as_raw_value();
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, has_received_signal.clone())
            .ok();
        let stream = signal(kind);
        let mut stream = stream.map_err(|error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot wait for {name}: {error}"))
        })?;
        let (events, has_received_signal) = (events.clone(), has_received_signal.clone());
        tokio::spawn(async move {
            if stream.recv().await.is_some() {
                has_received_signal.store(true, Ordering::Relaxed);
                events.send(CoreEvent::Signal(name)).ok();
            }
        });
    }
    Ok(())
}
