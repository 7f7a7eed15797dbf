//! The daemon: puts the parts together, then one loop over one event enum.

use crate::core::clock::Now;
use crate::core::deadlines::next_deadline;
use crate::core::dispatch::handle_event;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
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

/// The loop.
pub(crate) async fn run_event_loop(
    state: &mut State,
    hands: &mut EffectRunner,
    queue: &mut UnboundedReceiver<CoreEvent>,
    admitted: &mut UnboundedReceiver<UnixStream>,
) {
    let clock = Instant::now();
    let mut effects = recover(state, read_clocks(clock));
    let ready = EventKind::DaemonReady { pid: state.settings.pid, root: state.settings.root.clone() };
    effects.push(Effect::log_daemon(ready));
    if state.settings.tmux_socket.is_none() {
        let why = "there is no tmux: teammates run without panes alone, with --backend in-process";
        effects.push(Effect::log_daemon(EventKind::Error { message: why.to_owned() }));
    }
    let mut conn = 0;
    loop {
        let wall = read_clocks(clock).wall;
        let ends = effects.drain(..).any(|effect| hands.run(effect, wall).is_break());
        hands.files.flush();
        if ends {
            return;
        }
        let deadline = clock + std::time::Duration::from_millis(next_deadline(state));
        let event = tokio::select! {
            Some(event) = queue.recv() => event,
            Some(stream) = admitted.recv() => {
                conn += 1;
                hands.connections.accept_connection(conn, stream, &hands.events);
                continue;
            }
            () = tokio::time::sleep_until(deadline.into()) => CoreEvent::DeadlineReached,
        };
        tracing::debug!(?event);
        match event {
            CoreEvent::ConnectionClosed { conn } => hands.connections.remove(conn),
            CoreEvent::WatcherOverflow => hands.overflow.reset(),
            _ => {}
        }
        effects = handle_event(state, event, read_clocks(clock));
    }
}

fn read_clocks(clock: Instant) -> Now {
    Now { mono: clock.elapsed().as_millis() as u64, wall: store::now() }
}

pub(crate) fn watch_signals(events: &UnboundedSender<CoreEvent>) -> Result<(), ErrorReport> {
    // Where no file may grow further (`ulimit -f`) a write shall fail. Once it is listened to, it ends nobody.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok();
    let kinds = [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::hangup(), "SIGHUP"),
    ];
    // What is under way is waited for, a lock for seconds; whoever says it twice does not want that.
    let said = Arc::new(AtomicBool::new(false));
    for (kind, name) in kinds {
        let number = kind.as_raw_value();
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, said.clone()).ok();
        let stream = signal(kind);
        let mut stream = stream.map_err(|error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot wait for {name}: {error}"))
        })?;
        let (events, said) = (events.clone(), said.clone());
        tokio::spawn(async move {
            if stream.recv().await.is_some() {
                said.store(true, Ordering::Relaxed);
                events.send(CoreEvent::Signal(name)).ok();
            }
        });
    }
    Ok(())
}
