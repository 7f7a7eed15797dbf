//! `attach`: goes to a member's pane. Inside tmux, the current tmux client switches to the pane.
//! Outside tmux, a new client attaches. If the member has no pane, its output log is printed and
//! followed.

mod grouped_tmux_session;

use super::logs::{self, ShownSpawns};
use super::send::team_of_address;
use crate::acted_on_members::ActedOnMembers;
use crate::command_context::CommandContext;
use crate::output;
use client::catch_terminating_signals::catch_terminal_signals;
use client::tmux_missing_error::tmux_failed;
use grouped_tmux_session::{AttachedClient, PaneLocation, client_of_pane, end_unwatched_views, end_view};
use protocol::control_socket::{LocatePaneReply, MemberAddress, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use store::env_var;

/// Go to a member's pane, or follow its output
///
/// Example: teamctl attach ann
///
/// Inside tmux, your terminal switches to the pane; type the tmux prefix and L to return. Outside
/// tmux, the command attaches to tmux; type the prefix and d to detach. A hidden pane is shown
/// first. A session of iTerm2 comes to the front. The output of a member without a pane is printed
/// until you press Ctrl-C.
///
/// Each terminal gets its own tmux session, which ends when you detach. A pane that would be
/// smaller than 60x10 is zoomed if no other terminal shows its window. The prefix and z show all
/// panes again.
#[derive(Debug, clap::Args)]
pub(crate) struct AttachArgs {
    /// The member
    name: String,
}

impl AttachArgs {
    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        ActedOnMembers::Named(std::slice::from_ref(&self.name))
    }
}

pub(crate) fn run(context: &CommandContext, args: &AttachArgs) -> Result<ExitCode, ErrorReport> {
    let team = team_of_address(context, &args.name)?;
    let locate = MemberAddress { team: team.name().clone(), name: args.name.clone() };
    match context.request(Request::LocatePane(locate.clone()))? {
        LocatePaneReply::Pane { pane, tmux, is_hidden } => {
            let method = attach_method(&pane, &tmux)?;
            if is_hidden {
                context.call_daemon(Request::ShowPane(locate))?;
            }
            go_to_pane(&tmux, &pane, &method)
        }
        LocatePaneReply::Iterm2Session { session, it2 } => focus_iterm2_session(&args.name, &session, &it2),
        LocatePaneReply::Log { path } => logs::follow(context, &path, ShownSpawns::Last),
    }
}

/// Brings a session of iTerm2 to the front, from any terminal.
fn focus_iterm2_session(name: &str, session: &str, it2: &Path) -> Result<ExitCode, ErrorReport> {
    let output = Command::new(it2).args(["session", "focus", "--", session]).output();
    let output = output.map_err(|error| ErrorReport::from_io("start", it2, &error))?;
    if output.status.success() {
        output::print_line(&format!("{name} is in front, in iTerm2."));
        return Ok(ExitCode::SUCCESS);
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    let reason = output::sanitize(reason.lines().next().unwrap_or("it2 printed no error"));
    let message = format!("cannot go to {name}: {}: {reason}", it2.display());
    Err(ErrorReport::new(ErrorKind::Io, message)
        .with_help(format!("is iTerm2's Python API on? its screen: teamctl capture {name}")))
}

/// How the caller's terminal gets to a pane.
enum AttachMethod {
    /// This tmux client switches to the pane.
    SwitchClient(AttachedClient),
    /// A new tmux client attaches.
    NewClient,
}

fn attach_method(pane: &str, tmux: &Path) -> Result<AttachMethod, ErrorReport> {
    let current = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    match current {
        None => Ok(AttachMethod::NewClient),
        Some(socket) if socket == tmux => client_of_this_pane(tmux).map(AttachMethod::SwitchClient),
        Some(_) => {
            let message = format!("cannot switch to {pane}: it is on another tmux server");
            Err(ErrorReport::new(ErrorKind::Refused, message)
                .with_help(format!("from outside tmux: tmux -S {} attach", tmux.display())))
        }
    }
}

/// Shows the pane in the caller's terminal. This function asks tmux for the window of the pane each
/// time. The window may just have changed, because showing a hidden pane moves the pane to a
/// different window.
fn go_to_pane(tmux: &Path, pane: &str, method: &AttachMethod) -> Result<ExitCode, ErrorReport> {
    end_unwatched_views(tmux);
    let location = PaneLocation::find(tmux, pane)?;
    let name = location.view_name(std::process::id());
    match method {
        AttachMethod::NewClient => run_new_client(tmux, &location, &name),
        AttachMethod::SwitchClient(client) if location.is_in_session_of(tmux, client)? => {
            Err(exec_tmux(tmux, &location.commands_in_own_session(client)))
        }
        AttachMethod::SwitchClient(client) => {
            Err(exec_tmux(tmux, &location.commands_to_switch(client, &name)))
        }
    }
}

/// Runs a tmux client in this terminal, and ends its view when the client has ended.
fn run_new_client(tmux: &Path, location: &PaneLocation, name: &str) -> Result<ExitCode, ErrorReport> {
    // If the terminal is closed, this process must still end the view.
    catch_terminal_signals();
    let status = tmux_command(tmux, &location.commands_of_new_client(name)).status();
    let status = status.map_err(|error| tmux_failed(&error))?;
    end_view(tmux, name);
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replaces teamctl by tmux. Returns only if that fails.
fn exec_tmux(tmux: &Path, commands: &[String]) -> ErrorReport {
    tmux_failed(&tmux_command(tmux, commands).exec())
}

fn tmux_command(tmux: &Path, commands: &[String]) -> Command {
    let mut command = Command::new("tmux");
    command.arg("-u").arg("-S").arg(tmux).args(commands);
    command
}

/// Returns a tmux client that shows the session of the caller's pane. The caller passes the
/// client's name to the tmux command `switch-client`, because without a name tmux might switch
/// another client.
fn client_of_this_pane(socket: &Path) -> Result<AttachedClient, ErrorReport> {
    client_of_pane(socket, &env_var("TMUX_PANE").unwrap_or_default())?.ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::Refused,
            "cannot switch to the pane: no terminal is attached to this session",
        )
        .with_help(format!("attach one with: tmux -S {} attach", socket.display()))
    })
}
