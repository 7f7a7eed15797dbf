//! Starts the daemon in a tmux session, and waits until the daemon is ready. If a daemon is already
//! running, nothing is started.

use crate::daemon_command_line::{daemon_args, daemon_path};
use crate::daemon_start_lock;
use crate::directory_watcher::{DirectoryWatcher, WatchEvent};
use crate::root_socket_team_and_caller::TeamContext;
use crate::select_tmux_server::TmuxTarget;
use crate::start_daemon_in_tmux_session;
use platform::close_inherited_descriptors::close_inherited_descriptors;
use protocol::control_socket::StatusReply;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a started daemon to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait for the reply of a daemon that another program has just started for the same root.
const OTHER_DAEMON_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of [`start_unless_running`].
pub enum DaemonStart {
    /// A daemon was already running.
    AlreadyRunning(StatusReply),
    /// The daemon was started and is ready.
    Started {
        status: StatusReply,
        /// Warnings for the user about the tmux server and session of the daemon.
        warnings: Vec<String>,
    },
    /// The daemon could not be started.
    Failed {
        /// The daemon's exit code.
        code: u8,
        /// The daemon's output on standard error.
        message: String,
    },
}

/// Starts a daemon if none is running. The function `options` returns options of teamd. `options`
/// is called only if a daemon is started.
pub fn start_unless_running(
    context: &TeamContext,
    server: &TmuxTarget,
    options: &dyn Fn() -> Result<Vec<String>, ErrorReport>,
) -> Result<DaemonStart, ErrorReport> {
    if let Some(status) = running_daemon(context)? {
        return Ok(DaemonStart::AlreadyRunning(status));
    }
    let socket = context.socket()?;
    let _lock = daemon_start_lock::acquire(&context.state_dir()?)?;
    match running_daemon(context)? {
        Some(status) => Ok(DaemonStart::AlreadyRunning(status)),
        None => start_daemon(context, server, &socket, &options()?),
    }
}

fn running_daemon(context: &TeamContext) -> Result<Option<StatusReply>, ErrorReport> {
    match context.daemon_status() {
        Ok(status) => Ok(Some(status)),
        Err(error) if error.kind == ErrorKind::NoDaemon => Ok(None),
        Err(error) => Err(error),
    }
}

fn start_daemon(
    context: &TeamContext,
    server: &TmuxTarget,
    socket: &Path,
    options: &[String],
) -> Result<DaemonStart, ErrorReport> {
    let directory = socket.parent().unwrap_or(Path::new("/")).to_owned();
    store::check_not_replaceable(&directory)?;
    let result = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    result.map_err(|error| {
        ErrorReport::from_io("make", &directory, &error)
            .with_help("name a directory that you may write to in XDG_RUNTIME_DIR, or a path with --socket")
    })?;
    let mut watcher = DirectoryWatcher::new(&[directory])?;
    if let Some((code, message)) = check_start(context, socket, options)? {
        // `teamd --check` exits with the code of `NoDaemon` if another daemon for this root already
        // holds the daemon's lock. A person may have just started that daemon by hand. So this
        // function waits for its reply.
        let other_daemon = match code == ErrorKind::NoDaemon.exit_code() {
            true => wait_for_daemon(context, &mut watcher, OTHER_DAEMON_TIMEOUT)?,
            false => None,
        };
        return Ok(other_daemon.map_or(DaemonStart::Failed { code, message }, DaemonStart::AlreadyRunning));
    }
    // The inherited descriptors are closed first. Otherwise a tmux server that is started now would
    // inherit them, and keep them open after this command has ended.
    close_inherited_descriptors();
    let (server, server_warning) = server.server_or_that_of_panes(&context.directories()?.state_dir);
    let session_warning =
        start_daemon_in_tmux_session::start_in_tmux_session(context, &server, socket, options)?;
    let warnings = server_warning.into_iter().chain(session_warning).collect();
    wait_for_daemon(context, &mut watcher, START_TIMEOUT)?
        .map(|status| DaemonStart::Started { status, warnings })
        .ok_or_else(|| start_timeout_error(context))
}

/// Waits until a daemon replies, and returns its status. `None` if no daemon replies within
/// `timeout`.
fn wait_for_daemon(
    context: &TeamContext,
    watcher: &mut DirectoryWatcher,
    timeout: Duration,
) -> Result<Option<StatusReply>, ErrorReport> {
    let deadline = Instant::now() + timeout;
    loop {
        let status = running_daemon(context)?;
        if status.is_some() || watcher.wait(Some(deadline))? == WatchEvent::TimedOut {
            return Ok(status);
        }
    }
}

/// Runs `teamd --check`, which finds out whether teamd can start. Returns `None` if it can,
/// otherwise the exit code and standard error of the check.
///
/// The check makes the error visible to the user. teamd itself runs in a pane that closes when
/// teamd exits, so its own error message would be lost.
fn check_start(
    context: &TeamContext,
    socket: &Path,
    options: &[String],
) -> Result<Option<(u8, String)>, ErrorReport> {
    let mut teamd = Command::new(daemon_path()?);
    let output =
        teamd.args(daemon_args(context, socket, options)?).arg("--check").stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot start teamd: {error}"))
            .with_help("install all programs: make install")
    })?;
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((!output.status.success()).then(|| (code.unwrap_or(ErrorKind::Internal.exit_code()), message)))
}

fn start_timeout_error(context: &TeamContext) -> ErrorReport {
    let state = context
        .directories()
        .map(|directories| directories.state_dir.display().to_string())
        .unwrap_or_default();
    ErrorReport::new(ErrorKind::NoDaemon, "cannot start teamd: it was not ready within 10 s")
        .with_help(format!("run teamd by hand to see why; its log is {state}/logs/teamd/latest"))
}
