//! Keeps the control socket at its path. If the socket or its directory is removed, for example by
//! a logout or by a program that cleans `/tmp`, the daemon makes it again.

use crate::core::event::CoreEvent;
use crate::io::control_connections::accept;
use crate::io::single_instance::{self, BoundSocket};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use protocol::error::{ErrorKind, ErrorReport};
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

/// The control socket, and the task that accepts its connections.
#[derive(Debug)]
pub(crate) struct ControlListener {
    path: PathBuf,
    accepted: UnboundedSender<UnixStream>,
    events: UnboundedSender<CoreEvent>,
    socket: BoundSocket,
    accept_task: JoinHandle<()>,
    /// Reports changes in the socket's directory. `None` if the directory cannot be watched; then a
    /// rescan finds that the socket is gone.
    _watcher: Option<RecommendedWatcher>,
    /// A failure to make the socket again has been logged.
    is_failure_logged: bool,
}

impl ControlListener {
    /// Binds the socket, and sends its connections to `accepted`.
    ///
    /// # Errors
    ///
    /// If the socket cannot be bound.
    pub(crate) fn start(
        path: PathBuf,
        accepted: UnboundedSender<UnixStream>,
        events: UnboundedSender<CoreEvent>,
    ) -> Result<ControlListener, ErrorReport> {
        let (socket, accept_task) = listen(&path, &accepted)?;
        let watcher = watch_directory(&path, &events);
        let is_failure_logged = false;
        Ok(ControlListener {
            path,
            accepted,
            events,
            socket,
            accept_task,
            _watcher: watcher,
            is_failure_logged,
        })
    }

    /// Makes the socket again if it is not at its path. Connections that are open stay open.
    pub(crate) fn ensure_bound(&mut self) {
        if self.socket.is_at_its_path() {
            return;
        }
        match listen(&self.path, &self.accepted) {
            Ok((socket, accept_task)) => {
                tracing::warn!("{} was removed or replaced: made it again", self.path.display());
                self.socket = socket;
                std::mem::replace(&mut self.accept_task, accept_task).abort();
                self._watcher = watch_directory(&self.path, &self.events);
                self.is_failure_logged = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failure_logged, true) {
                    tracing::error!("cannot make the control socket again: {error}");
                }
            }
        }
    }

    /// Removes the socket, unless another daemon's socket is at its path.
    pub(crate) fn remove(&self) {
        self.socket.remove();
    }
}

fn listen(
    path: &Path,
    accepted: &UnboundedSender<UnixStream>,
) -> Result<(BoundSocket, JoinHandle<()>), ErrorReport> {
    let (listener, socket) = single_instance::bind(path)?;
    let listener = tokio::net::UnixListener::from_std(listener)
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot listen: {error}")))?;
    Ok((socket, tokio::spawn(accept(listener, accepted.clone()))))
}

/// Sends [`CoreEvent::SocketDirectoryChanged`] when an entry of the socket's directory is removed
/// or renamed, or the directory itself.
fn watch_directory(path: &Path, events: &UnboundedSender<CoreEvent>) -> Option<RecommendedWatcher> {
    let events = events.clone();
    let report = move |event: notify::Result<notify::Event>| {
        let is_removal = |kind| {
            matches!(
                kind,
                notify::EventKind::Remove(_) | notify::EventKind::Modify(notify::event::ModifyKind::Name(_))
            )
        };
        if event.is_ok_and(|event| is_removal(event.kind)) {
            events.send(CoreEvent::SocketDirectoryChanged).ok();
        }
    };
    let mut watcher = notify::recommended_watcher(report).ok()?;
    let directory = path.parent()?;
    watcher.watch(directory, RecursiveMode::NonRecursive).ok()?;
    // A watch of a directory does not report that the directory was moved away, so its parent is
    // watched too.
    watcher.watch(directory.parent()?, RecursiveMode::NonRecursive).ok();
    Some(watcher)
}
