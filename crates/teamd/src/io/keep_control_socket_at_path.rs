//! Listens on the control socket, and keeps the socket at its path. If the socket or its directory
//! is removed, for example by a logout or by a program that cleans `/tmp`, the daemon makes it
//! again.
//!
//! If the socket cannot be bound at that path, the daemon binds a socket in the state directory. It
//! writes the path of that socket to the lock file, where clients find it. At each rescan the
//! daemon tries the original path again.

use crate::core::core_event::CoreEvent;
use crate::io::bind_control_socket::{self, BoundSocket};
use crate::io::control_connections::accept;
use crate::io::single_instance_locks::InstanceLock;
use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

/// The control socket, and the task that accepts its connections.
#[derive(Debug)]
pub(crate) struct ControlListener {
    /// The path where clients look first: that of `--socket`, or the default path in the runtime
    /// directory.
    path: PathBuf,
    lock: Arc<InstanceLock>,
    accepted: UnboundedSender<UnixStream>,
    events: UnboundedSender<CoreEvent>,
    socket: BoundSocket,
    accept_task: JoinHandle<()>,
    /// Reports changes in the socket's directory. `None` if the directory cannot be watched. Only a
    /// rescan then notices that the socket was removed.
    _watcher: Option<RecommendedWatcher>,
    /// Whether a failure to make the socket again has been logged. Further failures are not logged.
    is_failure_logged: bool,
    /// Whether the lock file has the path of the current socket.
    is_lock_file_current: bool,
}

impl ControlListener {
    /// Binds the socket, and sends its connections to `accepted`.
    ///
    /// # Errors
    ///
    /// If the socket cannot be bound.
    pub(crate) fn start(
        path: PathBuf,
        lock: Arc<InstanceLock>,
        accepted: UnboundedSender<UnixStream>,
        events: UnboundedSender<CoreEvent>,
    ) -> Result<ControlListener, ErrorReport> {
        // A daemon that was killed may have left a socket there.
        std::fs::remove_file(lock.fallback_socket()).ok();
        let (socket, accept_task) = listen(&path, &accepted)?;
        let watcher = watch_directory(&path, &events);
        let is_failure_logged = false;
        Ok(ControlListener {
            path,
            lock,
            accepted,
            events,
            socket,
            accept_task,
            _watcher: watcher,
            is_failure_logged,
            is_lock_file_current: true,
        })
    }

    /// Checks that the socket is at its path, and makes it again if not. If that fails, for example
    /// because a logout has removed the runtime directory, makes a socket in the state directory.
    /// Open connections stay open.
    pub(crate) fn ensure_bound(&mut self) {
        let is_bound = self.socket.is_at_its_path();
        if !is_bound || self.socket.path() != self.path {
            match listen(&self.path, &self.accepted) {
                Ok((socket, accept_task)) => self.replace_socket(socket, accept_task),
                // No socket can be made at `path`, but the socket in the state directory works. It
                // is kept, and the next rescan tries `path` again.
                Err(_) if is_bound => {}
                Err(error) => self.bind_fallback(&error),
            }
        }
        if !self.is_lock_file_current {
            self.update_lock_file();
        }
    }

    /// Makes a socket in the state directory. `cause` is the error of making it at `path`.
    fn bind_fallback(&mut self, cause: &ErrorReport) {
        let path = self.lock.fallback_socket();
        match bind_control_socket::check_path_length(&path).and_then(|()| listen(&path, &self.accepted)) {
            Ok((socket, accept_task)) => {
                tracing::warn!("{cause}");
                self.replace_socket(socket, accept_task);
            }
            Err(error) if !std::mem::replace(&mut self.is_failure_logged, true) => {
                tracing::error!("cannot make the control socket again: {cause}; {error}");
            }
            Err(_) => {}
        }
    }

    fn replace_socket(&mut self, socket: BoundSocket, accept_task: JoinHandle<()>) {
        tracing::warn!("the control socket is now {}", socket.path().display());
        std::mem::replace(&mut self.socket, socket).remove();
        std::mem::replace(&mut self.accept_task, accept_task).abort();
        // The state directory changes often, so it is not watched. Only a rescan notices that the
        // socket was removed from there.
        let is_first_path = self.socket.path() == self.path;
        self._watcher = is_first_path.then(|| watch_directory(&self.path, &self.events)).flatten();
        self.is_failure_logged = false;
        self.update_lock_file();
    }

    fn update_lock_file(&mut self) {
        let written = self.lock.write_socket_path(self.socket.path());
        self.is_lock_file_current = written.is_ok();
        written.unwrap_or_else(|error| tracing::error!("{error}"));
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
    let (listener, socket) = bind_control_socket::bind_control_socket(path)?;
    let listener = tokio::net::UnixListener::from_std(listener)
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot listen: {error}")))?;
    Ok((socket, tokio::spawn(accept(listener, accepted.clone()))))
}

/// Sends [`CoreEvent::SocketDirectoryChanged`] when the socket's directory, or an entry of this
/// directory, is removed or renamed.
fn watch_directory(path: &Path, events: &UnboundedSender<CoreEvent>) -> Option<RecommendedWatcher> {
    let events = events.clone();
    let report = move |event: notify::Result<notify::Event>| {
        if event.is_ok() {
            events.send(CoreEvent::SocketDirectoryChanged).ok();
        }
    };
    let removals = EventKindMask::REMOVE | EventKindMask::MODIFY_NAME;
    let mut watcher = RecommendedWatcher::new(report, Config::default().with_event_kinds(removals)).ok()?;
    let directory = path.parent()?;
    watcher.watch(directory, RecursiveMode::NonRecursive).ok()?;
    // A watch of a directory does not report that the directory was moved away, so the parent of
    // the directory is watched too.
    watcher.watch(directory.parent()?, RecursiveMode::NonRecursive).ok();
    Some(watcher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::daemon_lock_file::LockHolder;
    use std::os::unix::fs::PermissionsExt;
    use tokio::sync::mpsc::unbounded_channel;

    #[tokio::test]
    async fn socket_moves_to_the_state_directory_and_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("state")).unwrap();
        std::fs::set_permissions(path("state"), std::fs::Permissions::from_mode(0o700)).unwrap();
        let (first, lock_file) = (path("run/control.sock"), path("state/teamd.lock"));
        let lock = Arc::new(InstanceLock::acquire(&lock_file, dir.path(), &first).unwrap());
        let (accepted, _connections) = unbounded_channel();
        let (events, _queue) = unbounded_channel();
        let mut listener = ControlListener::start(first.clone(), lock, accepted, events).unwrap();
        let found = || {
            let socket = LockHolder::parse(&std::fs::read(&lock_file).unwrap()).unwrap().socket;
            std::os::unix::net::UnixStream::connect(&socket).ok().map(|_| socket)
        };
        assert_eq!(found(), Some(first.clone()));
        std::fs::remove_file(&first).unwrap();
        std::fs::remove_dir(path("run")).unwrap();
        // Nothing can be made at this path.
        drop(std::fs::File::create(path("run")).unwrap());
        for _ in 0..2 {
            listener.ensure_bound();
            assert_eq!(found(), Some(path("state/control.sock")));
        }
        std::fs::remove_file(path("run")).unwrap();
        listener.ensure_bound();
        assert_eq!(found(), Some(first));
        assert!(!path("state/control.sock").exists(), "the other socket is removed");
    }
}
