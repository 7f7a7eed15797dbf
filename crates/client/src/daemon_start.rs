//! Starts the daemon in a tmux session, unless one answers, and waits until it is ready.

use crate::daemon_command::{daemon_args, daemon_path};
use crate::daemon_start_lock;
use crate::directory_watcher::{DirectoryWatcher, WatchEvent};
use crate::team_context::TeamContext;
use crate::tmux_session;
use crate::tmux_target::TmuxTarget;
use protocol::control::{Reply, StatusReply};
use protocol::error::{ErrorKind, ErrorReport};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon is ready within this, or it has failed.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Somebody else's that holds the root answers within this, or not context.
const OTHER_DAEMON_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a daemon answers.
pub enum DaemonStart {
    /// One was there already.
    AlreadyRunning(StatusReply),
    /// It was started, and is ready.
    Started {
        status: StatusReply,
        /// What the user should know about where it was started.
        warnings: Vec<String>,
    },
    /// It can't be started.
    Failed {
        /// Its exit code.
        code: u8,
        /// What it wrote to its standard error.
        message: String,
    },
}

/// Starts a daemon unless one answers. `no_output_after` gives the user's setting of that name; it is read only for a
/// start.
pub fn start_unless_running(
    context: &TeamContext,
    server: &TmuxTarget,
    no_output_after: &dyn Fn() -> Result<Option<String>, ErrorReport>,
) -> Result<DaemonStart, ErrorReport> {
    if let Some(status) = running_daemon(context)? {
        return Ok(DaemonStart::AlreadyRunning(status));
    }
    let socket = context.socket()?;
    let _alone = daemon_start_lock::acquire(&context.state_dir()?)?;
    match running_daemon(context)? {
        Some(status) => Ok(DaemonStart::AlreadyRunning(status)),
        None => start_daemon(context, server, &socket, no_output_after()?),
    }
}

fn running_daemon(context: &TeamContext) -> Result<Option<StatusReply>, ErrorReport> {
    match context.daemon_status() {
        Ok(Reply::Status(status)) => Ok(Some(status)),
        Err(fault) if fault.kind != ErrorKind::NoDaemon => Err(fault),
        _ => Ok(None),
    }
}

fn start_daemon(
    context: &TeamContext,
    server: &TmuxTarget,
    socket: &Path,
    no_output_after: Option<String>,
) -> Result<DaemonStart, ErrorReport> {
    let directory = socket.parent().unwrap_or(Path::new("/")).to_owned();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.map_err(|error| ErrorReport::from_io("make", &directory, &error))?;
    let mut follow = DirectoryWatcher::new(&[directory])?;
    if let Some((code, message)) = check_start(context, socket, no_output_after.as_deref())? {
        // Where a teamd does already, it may have been started by hand a moment ago, and be about to answer.
        let other = match code == ErrorKind::NoDaemon.exit_code() {
            true => wait_for_daemon(context, &mut follow, OTHER_DAEMON_TIMEOUT)?,
            false => None,
        };
        return Ok(other.map_or(DaemonStart::Failed { code, message }, DaemonStart::AlreadyRunning));
    }
    let (server, moved) = server.server_or_that_of_panes(&context.directories()?.state_dir);
    let renamed = tmux_session::start_in_tmux_session(context, &server, socket, no_output_after.as_deref())?;
    let warnings = moved.into_iter().chain(renamed).collect();
    wait_for_daemon(context, &mut follow, START_TIMEOUT)?
        .map(|status| DaemonStart::Started { status, warnings })
        .ok_or_else(|| start_timeout_error(context))
}

/// What a daemon answers, as soon as there is one; none where there is none for so long.
fn wait_for_daemon(
    context: &TeamContext,
    follow: &mut DirectoryWatcher,
    patience: Duration,
) -> Result<Option<StatusReply>, ErrorReport> {
    let until = Instant::now() + patience;
    loop {
        let status = running_daemon(context)?;
        if status.is_some() || follow.wait(Some(until))? == WatchEvent::TimedOut {
            return Ok(status);
        }
    }
}

/// What would keep teamd from starting it says itself, and better here than in a pane that closes at once: its exit code
/// and its words.
fn check_start(
    context: &TeamContext,
    socket: &Path,
    no_output_after: Option<&str>,
) -> Result<Option<(u8, String)>, ErrorReport> {
    let mut teamd = Command::new(daemon_path()?);
    let ran = teamd
        .args(daemon_args(context, socket, no_output_after))
        .arg("--check")
        .stdin(Stdio::null())
        .output();
    let ran = ran.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot start teamd: {error}"))
            .with_help("install all programs: make install")
    })?;
    let code = ran.status.code().and_then(|code| u8::try_from(code).ok());
    let why = String::from_utf8_lossy(&ran.stderr).into_owned();
    Ok((!ran.status.success()).then(|| (code.unwrap_or(ErrorKind::Internal.exit_code()), why)))
}

fn start_timeout_error(context: &TeamContext) -> ErrorReport {
    let state = context.directories().map(|place| place.state_dir.display().to_string()).unwrap_or_default();
    ErrorReport::new(ErrorKind::NoDaemon, "cannot start teamd: it was not ready within 10 s")
        .with_help(format!("run teamd by hand to see why; its log is {state}/logs/teamd/latest"))
}
