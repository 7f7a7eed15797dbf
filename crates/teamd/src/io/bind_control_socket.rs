//! Creates and removes the control socket. Before the daemon creates the socket, it checks that
//! only this user can write to the socket's directory. It also removes the socket of a daemon that
//! no longer runs.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The maximum length of a socket's path, in bytes. This is the limit of macOS; Linux allows 107.
const MAX_SOCKET_PATH: usize = 103;

/// The path, device and inode of the control socket that this daemon bound.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl BoundSocket {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this socket is still at its path.
    pub(crate) fn is_at_its_path(&self) -> bool {
        let is_same = |meta: &Metadata| meta.dev() == self.device && meta.ino() == self.inode;
        std::fs::symlink_metadata(&self.path).as_ref().is_ok_and(is_same)
    }

    /// Removes the socket file, unless another daemon's socket is at the path.
    pub(crate) fn remove(&self) {
        if self.is_at_its_path() {
            failpoint::hit("instance.unbind");
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Checks the length of the socket's path, before the daemon creates any file.
pub(crate) fn check_path_length(path: &Path) -> Result<(), ErrorReport> {
    if path.as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok(());
    }
    let message =
        format!("cannot listen on {}: the path is longer than {MAX_SOCKET_PATH} bytes", path.display());
    Err(ErrorReport::new(ErrorKind::Config, message).with_help("choose a shorter one with --socket"))
}

/// Creates the socket's directory, or checks that only this user can write to it.
pub(crate) fn check_socket_directory(socket: &Path) -> Result<(), ErrorReport> {
    socket.parent().map_or(Ok(()), make_private_directory)
}

/// Binds the control socket with mode 0600. If a daemon that no longer runs has left its socket at
/// `path`, replaces that socket.
pub(crate) fn bind_control_socket(path: &Path) -> Result<(UnixListener, BoundSocket), ErrorReport> {
    check_socket_directory(path)?;
    let to_error = |error: std::io::Error| ErrorReport::from_io("listen on", path, &error);
    failpoint::hit("instance.listen");
    remove_stale_socket(path)?;
    failpoint::hit("instance.bind");
    let listener = UnixListener::bind(path).map_err(to_error)?;
    failpoint::hit("instance.bound");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(to_error)?;
    listener.set_nonblocking(true).map_err(to_error)?;
    let meta = std::fs::symlink_metadata(path).map_err(to_error)?;
    Ok((listener, BoundSocket { path: path.to_owned(), device: meta.dev(), inode: meta.ino() }))
}

/// Removes the control socket of a daemon that no longer runs. Does nothing if there is no socket
/// at `path`.
///
/// # Errors
///
/// If another type of file is at `path`, or if the socket accepts connections.
fn remove_stale_socket(path: &Path) -> Result<(), ErrorReport> {
    let listen_error =
        |kind, reason: &str| ErrorReport::new(kind, format!("cannot listen on {}: {reason}", path.display()));
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(meta) if !meta.file_type().is_socket() => {
            Err(listen_error(ErrorKind::AlreadyExists, "a file that is not a socket is in its place"))
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(listen_error(ErrorKind::NoDaemon, "another daemon listens there already"))
        }
        Ok(_) => std::fs::remove_file(path).map_err(|error| listen_error(ErrorKind::Io, &error.to_string())),
    }
}

/// Creates the directory `path` with mode 0700 if it is missing.
///
/// # Errors
///
/// `NotPermitted` if the directory has another owner or mode, or if another user could replace it.
/// In `/tmp`, for example, another user may have created it first. `Io` if the directory cannot be
/// created.
fn make_private_directory(path: &Path) -> Result<(), ErrorReport> {
    let to_error = |error: std::io::Error| ErrorReport::from_io("make", path, &error);
    store::check_not_replaceable(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(to_error)?;
    // Another user may have created a parent directory since the first check.
    store::check_not_replaceable(path)?;
    let meta = std::fs::symlink_metadata(path).map_err(to_error)?;
    let is_private =
        meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    if is_private {
        return Ok(());
    }
    let message = format!("cannot trust {}: it must be a directory of yours with mode 0700", path.display());
    Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help(format!("chmod 700 {}", path.display())))
}
