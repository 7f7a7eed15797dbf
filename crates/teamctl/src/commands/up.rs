//! `up`: teamd in a detached tmux session of its own, unless one runs; returns when it is ready.

mod daemon_start_lock;
mod resume;
mod tmux_session;
pub(super) mod tmux_target;

use super::command_rewriter;
use crate::context::{CommandContext, own_program};
use crate::output;
use crate::profile::ProfileRegistry;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::suggested_commands::SuggestedCommands;
use protocol::control::{Reply, StatusReply, TeamStatus};
use protocol::error::{ErrorKind, ErrorReport};
use serde_json::json;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tmux_target::TmuxTarget;

/// Start teamd in a detached tmux session, unless one runs
///
/// On the tmux server of $TMUX where there is one, else on a server named teamd. The session is named teamd; after a
/// crash of teamd server and session are those of before, where its panes are. Returns when teamd is ready; with
/// --resume when those run again that down --keep, or the machine's end, has put to rest. Each goes on with its tasks
/// and its worktree, and with its session where its program can; the first prompt is not given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl up\n  teamctl up --resume\n  teamctl up --root ~/work/.claude")]
pub(crate) struct UpArgs {
    /// Bring back who rests, of all teams or of that of -t
    #[arg(long)]
    resume: bool,
    /// The tmux server's name, where there is no $TMUX
    #[arg(short = 'L', value_name = "NAME", default_value = TMUX_NAME)]
    tmux_name: String,
}

/// The tmux server where there is no `$TMUX` and nobody names another.
pub(super) const TMUX_NAME: &str = "teamd";
/// A daemon is ready within this, or it has failed.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Somebody else's that holds the root answers within this, or not here.
const OTHER_DAEMON_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a daemon answers.
pub(super) enum DaemonStart {
    /// One was there already.
    AlreadyRunning(StatusReply),
    /// It was started, and is ready.
    Started(StatusReply),
    /// It can't be started; it has said why on stderr, and this is its exit code.
    Failed(u8),
}

pub(crate) fn run(here: &CommandContext, args: &UpArgs) -> Result<ExitCode, ErrorReport> {
    let (status, how) = match start_unless_running(here, &TmuxTarget::CallerOrNamed(args.tmux_name.clone()))?
    {
        DaemonStart::AlreadyRunning(status) => (status, "runs already"),
        DaemonStart::Started(status) => (status, "is ready"),
        DaemonStart::Failed(code) => return Ok(ExitCode::from(code)),
    };
    if args.resume {
        return resume::resume_members(here, &status, how);
    }
    let spent = status.teams.iter().filter_map(|team| budget_line(here, team));
    let past =
        status.teams.iter().filter(|team| !team.is_budget_exhausted()).flat_map(|team| &team.past_members);
    let rests = suspended_line(
        past.filter(|past| past.is_suspended).count(),
        &command_rewriter::suggested_commands(here),
    );
    let lines: Vec<String> = std::iter::once(daemon_line(&status, how)).chain(rests).chain(spent).collect();
    output::print_result(here, &json!({"daemon": status.daemon}), &lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// So many wait to be brought back.
pub(super) fn suspended_line(count: usize, typed: &SuggestedCommands) -> Option<String> {
    let resume = typed.command(&["up", "--resume"]);
    match count {
        0 => None,
        1 => Some(format!("One member rests; bring it back with: {resume}")),
        several => Some(format!("{several} members rest; bring them back with: {resume}")),
    }
}

/// Why nobody of that team can be brought back, where its budget is used up, and what to do first.
fn budget_line(here: &CommandContext, team: &TeamStatus) -> Option<String> {
    let why = team.budget.as_ref()?.exhausted_reason.as_ref()?;
    let more = command_rewriter::rewrite_commands(
        here,
        &format!("give it more with: teamctl policy FILE -t {}", team.name),
    );
    Some(format!("Of {} nobody is started: {why}.\n  {more}", team.name))
}

/// Starts a daemon unless one answers.
pub(super) fn start_unless_running(
    here: &CommandContext,
    server: &TmuxTarget,
) -> Result<DaemonStart, ErrorReport> {
    if let Some(status) = running_daemon(here)? {
        return Ok(DaemonStart::AlreadyRunning(status));
    }
    let socket = here.socket()?;
    let _alone = daemon_start_lock::acquire(&here.state_dir()?)?;
    match running_daemon(here)? {
        Some(status) => Ok(DaemonStart::AlreadyRunning(status)),
        None => start_daemon(here, server, &socket),
    }
}

fn running_daemon(here: &CommandContext) -> Result<Option<StatusReply>, ErrorReport> {
    match here.daemon_status() {
        Ok(Reply::Status(status)) => Ok(Some(status)),
        Err(fault) if fault.kind != ErrorKind::NoDaemon => Err(fault),
        _ => Ok(None),
    }
}

fn start_daemon(
    here: &CommandContext,
    server: &TmuxTarget,
    socket: &Path,
) -> Result<DaemonStart, ErrorReport> {
    let directory = socket.parent().unwrap_or(Path::new("/")).to_owned();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.map_err(|error| ErrorReport::from_io("make", &directory, &error))?;
    let mut follow = DirectoryWatcher::new(&[directory])?;
    if let Some((code, why)) = check_start(here, socket)? {
        // Where a teamd does already, it may have been started by hand a moment ago, and be about to answer.
        let other = match code == ErrorKind::NoDaemon.exit_code() {
            true => wait_for_daemon(here, &mut follow, OTHER_DAEMON_TIMEOUT)?,
            false => None,
        };
        return Ok(other.map_or_else(|| start_failed(here, code, &why), DaemonStart::AlreadyRunning));
    }
    tmux_session::start_in_tmux_session(
        here,
        &server.server_or_that_of_panes(&here.directories()?.state_dir),
        socket,
    )?;
    wait_for_daemon(here, &mut follow, START_TIMEOUT)?
        .map(DaemonStart::Started)
        .ok_or_else(|| start_timeout_error(here))
}

fn start_failed(here: &CommandContext, code: u8, why: &str) -> DaemonStart {
    why.lines().for_each(|line| output::print_located_error(&command_rewriter::rewrite_commands(here, line)));
    DaemonStart::Failed(code)
}

/// What a daemon answers, as soon as there is one; none where there is none for so long.
fn wait_for_daemon(
    here: &CommandContext,
    follow: &mut DirectoryWatcher,
    patience: Duration,
) -> Result<Option<StatusReply>, ErrorReport> {
    let until = Instant::now() + patience;
    loop {
        let status = running_daemon(here)?;
        if status.is_some() || follow.wait(Some(until))? == WatchEvent::TimedOut {
            return Ok(status);
        }
    }
}

/// What would keep teamd from starting it says itself, and better here than in a pane that closes at once: its exit code
/// and its words.
fn check_start(here: &CommandContext, socket: &Path) -> Result<Option<(u8, String)>, ErrorReport> {
    let mut teamd = Command::new(daemon_path()?);
    let ran = teamd.args(daemon_args(here, socket)?).arg("--check").stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot start teamd: {error}"))
            .with_help("install teamd beside teamctl")
    })?;
    let code = ran.status.code().and_then(|code| u8::try_from(code).ok());
    let why = String::from_utf8_lossy(&ran.stderr).into_owned();
    Ok((!ran.status.success()).then(|| (code.unwrap_or(ErrorKind::Internal.exit_code()), why)))
}

fn daemon_args(here: &CommandContext, socket: &Path) -> Result<Vec<String>, ErrorReport> {
    let mut words = vec!["--socket".to_owned(), socket.to_string_lossy().into_owned()];
    if let Some(root) = &here.args.root {
        words.extend(["--root".to_owned(), root.to_string_lossy().into_owned()]);
    }
    if let Some(stuck) = ProfileRegistry::for_user().no_output_after()? {
        words.extend(["--no-output-after".to_owned(), stuck]);
    }
    Ok(words)
}

fn daemon_line(status: &StatusReply, how: &str) -> String {
    let daemon = &status.daemon;
    let tmux = daemon.tmux.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    format!("teamd {how}: pid {}, root {}, tmux {tmux}.", daemon.pid, daemon.root.display())
}

fn start_timeout_error(here: &CommandContext) -> ErrorReport {
    let state = here.directories().map(|place| place.state_dir.display().to_string()).unwrap_or_default();
    ErrorReport::new(ErrorKind::NoDaemon, "cannot start teamd: it was not ready within 10 s")
        .with_help(format!("run teamd by hand to see why; its log is {state}/logs/teamd/latest"))
}

/// An argument that ends in `;` would end the tmux command.
fn escape_for_tmux(argument: &str) -> String {
    match argument.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => argument.to_owned(),
    }
}

pub(crate) fn tmux_failed(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, format!("cannot run tmux: {error}"))
        .with_help("install tmux 3.2 or newer")
}

/// The teamd that came with this teamctl: a system may have another program of that name.
fn daemon_path() -> Result<PathBuf, ErrorReport> {
    let path = own_program()?.with_file_name("teamd");
    if path.is_file() {
        return Ok(path);
    }
    Err(ErrorReport::new(ErrorKind::MissingPath, format!("cannot find {}", path.display()))
        .with_help("install teamd beside teamctl"))
}
