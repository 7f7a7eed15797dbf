//! The tmux session that teamd is started in, and its panes after it: the one that the daemon before left, where its
//! panes still are, else a new one.
//!
//! A session of ours has our socket's path in an option of its own. Another that has the name we want, a person's or
//! that of the daemon of another root, gets nothing from us.

use crate::daemon_command::{daemon_args, daemon_path};
use crate::team_context::TeamContext;
use crate::tmux_command::{escape_for_tmux, tmux_failed};
use crate::tmux_target::TmuxTarget;
use protocol::error::{ErrorKind, ErrorReport};
use std::path::Path;
use std::process::Output;
use store::env_var;

/// The option of a session whose daemon listens at that path.
const SOCKET_OPTION: &str = "@teamd_socket";

/// Starts teamd in its session. Returns a warning if the session could not have its usual name.
pub fn start_in_tmux_session(
    context: &TeamContext,
    server: &TmuxTarget,
    socket: &Path,
    no_output_after: Option<&str>,
) -> Result<Option<String>, ErrorReport> {
    let program = daemon_command(context, socket, no_output_after)?;
    let mark = socket.to_string_lossy();
    if let Some(session) = previous_tmux_session(server, &mark)? {
        let last = format!("{session}:{{end}}");
        // It may have ended since: then a new one is made.
        if run_tmux(server, &new_window_args(&last, &program))?.status.success() {
            return Ok(None);
        }
    }
    let usual = "teamd".to_owned();
    for name in [usual.clone(), format!("{usual}-{}", std::process::id())] {
        let output = run_tmux(server, &new_session_args(&name, &mark, &program))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true if name != usual => {
                let warning =
                    format!("the tmux session {usual} is not this teamd's: new panes go into {name}");
                return Ok(Some(warning));
            }
            true => return Ok(None),
            // One from another state directory began the same a moment before us: theirs will answer.
            false
                if said.contains("duplicate session") && previous_tmux_session(server, &mark)?.is_some() =>
            {
                return Ok(None);
            }
            false if said.contains("duplicate session") => {}
            false => {
                let message = format!("cannot start a tmux session: {}", said.trim());
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

/// What may be better where a server has none to give.
const OTHER_SERVER_HELP: &str = "on another tmux server, from outside tmux: teamctl up -L NAME";

/// The id of the session that a daemon with this socket was in; none without a tmux server.
fn previous_tmux_session(server: &TmuxTarget, mark: &str) -> Result<Option<String>, ErrorReport> {
    let format = format!("#{{session_id}} #{{{SOCKET_OPTION}}}");
    let output = run_tmux(server, &["list-sessions", "-F", &format].map(str::to_owned))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let mut sessions = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(sessions.find(|(_, its)| *its == mark).map(|(id, _)| id.to_owned()))
}

/// teamd as tmux is to run it, with what it needs of our environment.
fn daemon_command(
    context: &TeamContext,
    socket: &Path,
    no_output_after: Option<&str>,
) -> Result<Vec<String>, ErrorReport> {
    let mut words = Vec::new();
    for name in ["HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TEAMD_DURABILITY", "CLAUDE_CONFIG_DIR"]
    {
        if let Some(value) = env_var(name) {
            words.extend(["-e".to_owned(), escape_for_tmux(&format!("{name}={value}"))]);
        }
    }
    words.extend(["--".to_owned(), escape_for_tmux(&daemon_path()?.to_string_lossy())]);
    words.extend(daemon_args(context, socket, no_output_after).iter().map(|word| escape_for_tmux(word)));
    Ok(words)
}

fn new_session_args(name: &str, mark: &str, program: &[String]) -> Vec<String> {
    let new = ["new-session", "-d", "-x", "200", "-y", "50", "-s", name];
    let target = format!("={name}:");
    let (mark, goes) = (escape_for_tmux(mark), close_on_exit_args(&target));
    // In one go: a user may have this option on, and nobody is attached.
    let stays = [";", "set-option", "-t", &target, "destroy-unattached", "off"];
    let marked = [";", "set-option", "-t", &target, SOCKET_OPTION, &mark];
    [&new.map(str::to_owned)[..], program, &stays.map(str::to_owned), &goes, &marked.map(str::to_owned)]
        .concat()
}

/// Behind the session's last one, and nobody who is attached is taken there.
fn new_window_args(last: &str, program: &[String]) -> Vec<String> {
    let new = ["new-window", "-d", "-a", "-t", last];
    [&new.map(str::to_owned)[..], program, &close_on_exit_args(last)].concat()
}

/// Whatever the user's own panes do when their program ends: this one goes.
fn close_on_exit_args(window: &str) -> [String; 7] {
    [";", "set-option", "-w", "-t", window, "remain-on-exit", "off"].map(str::to_owned)
}

fn run_tmux(server: &TmuxTarget, words: &[String]) -> Result<Output, ErrorReport> {
    server.tmux_command().args(words).output().map_err(|error| tmux_failed(&error))
}
