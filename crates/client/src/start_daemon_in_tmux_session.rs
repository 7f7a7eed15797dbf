//! Starts teamd in a tmux session. If the session of an earlier daemon still exists, it is used;
//! otherwise a new session is created. Later the daemon opens the agents' panes in the same
//! session.
//!
//! A session of teamd has a tmux option that contains the path of its daemon's control socket. Only
//! a session whose option has the socket path of this daemon is used. A session without the option
//! belongs to a person, even if it has the usual name. A session with another socket path belongs
//! to the daemon of another root.

use crate::daemon_command_line::{daemon_args, daemon_path};
use crate::root_socket_team_and_caller::TeamContext;
use crate::select_tmux_server::TmuxTarget;
use crate::tmux_missing_error::tmux_failed;
use protocol::env_filter::DAEMON_VARIABLES;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::{Path, PathBuf};
use std::process::Output;
use store::env_var;

/// The tmux option of a session that holds the path of its daemon's control socket.
const SOCKET_OPTION: &str = "@teamd_socket";

/// Starts teamd in its session. Returns a warning if the session could not get its usual name.
pub fn start_in_tmux_session(
    context: &TeamContext,
    server: &TmuxTarget,
    socket: &Path,
    options: &[String],
) -> Result<Option<String>, ErrorReport> {
    let program = daemon_command(context, socket, options)?;
    let socket_path = socket.to_string_lossy();
    let previous_session = previous_tmux_session(server, &socket_path)?;
    if let PreviousSession::Found(session) = &previous_session {
        let last_window = format!("{session}:{{end}}");
        // If the session has ended in the meantime, a new session is started below.
        if run_tmux(server, &new_window_args(&last_window, &program))?.status.success() {
            return Ok(None);
        }
    }
    let usual_name = "teamd".to_owned();
    for name in [usual_name.clone(), format!("{usual_name}-{}", std::process::id())] {
        // The server may have started or ended since the search above.
        let previous_session = previous_tmux_session(server, &socket_path)?;
        let output = run_tmux(server, &new_session_args(&name, &socket_path, &program, &previous_session))?;
        let error = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true if name != usual_name => {
                let warning =
                    format!("another tmux session has the name {usual_name}; new panes go into {name}");
                return Ok(Some(warning));
            }
            true => return Ok(None),
            // Another process has just created a session for the same control socket. The lock
            // `daemon-start.lock` did not prevent this, because that process uses a different state
            // directory. So no second session is needed: the daemon in the other process's session
            // will reply on the socket.
            false
                if error.contains("duplicate session")
                    && matches!(previous_tmux_session(server, &socket_path)?, PreviousSession::Found(_)) =>
            {
                return Ok(None);
            }
            false if error.contains("duplicate session") => {}
            false => {
                let message = format!("cannot start a tmux session: {}", error.trim());
                return Err(ErrorReport::new(ErrorKind::Io, message).with_help(OTHER_SERVER_HELP));
            }
        }
    }
    Err(ErrorReport::new(
        ErrorKind::AlreadyExists,
        "cannot start a tmux session: both names for it are taken",
    )
    .with_help(OTHER_SERVER_HELP))
}

/// Help text for a tmux server on which no session can be started.
const OTHER_SERVER_HELP: &str = "on another tmux server, from outside tmux: teamctl up -L NAME";

/// Result of the search for the tmux session of an earlier daemon.
enum PreviousSession {
    /// The id of the session.
    Found(String),
    NotFound,
    /// No tmux server runs; `new-session` starts one.
    NoServer,
}

/// Searches for the tmux session of an earlier daemon with this control socket.
fn previous_tmux_session(server: &TmuxTarget, socket_path: &str) -> Result<PreviousSession, ErrorReport> {
    let format = format!("#{{session_id}} #{{{SOCKET_OPTION}}}");
    let output = run_tmux(server, &["list-sessions", "-F", &format].map(str::to_owned))?;
    if !output.status.success() {
        return Ok(PreviousSession::NoServer);
    }
    let output = String::from_utf8_lossy(&output.stdout);
    let mut sessions = output.lines().filter_map(|line| line.split_once(' '));
    let session = sessions.find(|(_, option)| *option == socket_path).map(|(id, _)| id.to_owned());
    Ok(session.map_or(PreviousSession::NotFound, PreviousSession::Found))
}

/// The arguments with which tmux starts teamd in a new pane. teamd gets each variable in
/// [`DAEMON_VARIABLES`] as this process has it. If this process has the variable, tmux's option
/// `-e` sets it. Otherwise env(1) removes it, because tmux has no option for this.
fn daemon_command(
    context: &TeamContext,
    socket: &Path,
    options: &[String],
) -> Result<Vec<String>, ErrorReport> {
    let mut args = Vec::new();
    let mut program = vec!["--".to_owned(), "env".to_owned()];
    for &name in DAEMON_VARIABLES {
        match env_var(name) {
            Some(value) => args.extend(["-e".to_owned(), escape_for_tmux(&format!("{name}={value}"))]),
            None => program.extend(["-u".to_owned(), name.to_owned()]),
        }
    }
    args.append(&mut program);
    args.push(escape_for_tmux(&daemon_path()?.to_string_lossy()));
    args.extend(daemon_args(context, socket, options)?.iter().map(|arg| escape_for_tmux(arg)));
    Ok(args)
}

fn new_session_args(
    name: &str,
    socket_path: &str,
    program: &[String],
    previous: &PreviousSession,
) -> Vec<String> {
    let new_session = ["new-session", "-d", "-x", "200", "-y", "50", "-s", name];
    let target = format!("={name}:");
    let (socket_path, close_on_exit) = (escape_for_tmux(socket_path), close_on_exit_args(&target));
    // The option `destroy-unattached` is switched off in the same tmux command that creates the
    // session. If a user has the option on, tmux would otherwise destroy the new session at once,
    // because no client is attached.
    let keep_unattached = [";", "set-option", "-t", &target, "destroy-unattached", "off"];
    // If the user has `exit-unattached` on, a new tmux server would exit at once, so the option is
    // switched off. On a server that already runs, the option is not changed: teamd will attach a
    // control client, which keeps that server running.
    let keep_server: &[&str] = match previous {
        PreviousSession::NoServer => &[";", "set-option", "-s", "exit-unattached", "off"],
        PreviousSession::Found(_) | PreviousSession::NotFound => &[],
    };
    let set_socket = [";", "set-option", "-t", &target, SOCKET_OPTION, &socket_path];
    [
        &new_session.map(str::to_owned)[..],
        program,
        &keep_unattached.map(str::to_owned),
        &keep_server.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(),
        &close_on_exit,
        &set_socket.map(str::to_owned),
    ]
    .concat()
}

/// Arguments that open a window after the window `last_window`. Attached clients do not switch to
/// the new window.
fn new_window_args(last_window: &str, program: &[String]) -> Vec<String> {
    let new_window = ["new-window", "-d", "-a", "-t", last_window];
    [&new_window.map(str::to_owned)[..], program, &close_on_exit_args(last_window)].concat()
}

/// tmux arguments that make a pane close when its program exits. Without them, the user's tmux
/// configuration could keep such panes open.
fn close_on_exit_args(window: &str) -> [String; 7] {
    [";", "set-option", "-w", "-t", window, "remain-on-exit", "off"].map(str::to_owned)
}

/// Escapes a `;` at the end of a tmux argument, which would end the tmux command.
fn escape_for_tmux(argument: &str) -> String {
    match argument.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => argument.to_owned(),
    }
}

fn run_tmux(server: &TmuxTarget, args: &[String]) -> Result<Output, ErrorReport> {
    // The command runs in the home directory, because a tmux server keeps the working directory of
    // the command that starts it. The caller's directory may be a worktree, which could not be
    // removed while the server uses it.
    let home = env_var("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let mut tmux = server.tmux_command();
    tmux.current_dir(home.as_deref().unwrap_or(Path::new("/")));
    tmux.args(args).output().map_err(|error| tmux_failed(&error))
}
