//! `attach`: goes to a member's pane. Inside tmux, the current tmux client switches to the pane.
//! Outside tmux, a new client attaches. If the member has no pane, its output log is printed and
//! followed.

use super::logs::{self, ShownSpawns};
use super::send::team_of_address;
use crate::context::CommandContext;
use client::tmux_escape::tmux_failed;
use protocol::control::{LocatePaneReply, MemberAddress, Request};
use protocol::error::{ErrorKind, ErrorReport};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use store::env_var;

/// Go to a member's pane, or follow its output if it has none
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl attach ann\n\nInside tmux the client switches to the pane (back with: prefix L); outside, tmux attaches (leave with: prefix d). A hidden pane is shown first. What a member without a pane prints comes until you interrupt it."
)]
pub(crate) struct AttachArgs {
    /// The member
    name: String,
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
            Err(exec_tmux(&pane, &tmux, method))
        }
        LocatePaneReply::Log { path } => logs::follow(context, &path, ShownSpawns::Last),
    }
}

/// How the caller's terminal gets to a pane.
enum AttachMethod {
    /// The tmux client with this name switches to the pane.
    SwitchClient(String),
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

/// Replaces teamctl by tmux. Returns only if that fails.
fn exec_tmux(pane: &str, tmux: &Path, method: AttachMethod) -> ErrorReport {
    let mut command = Command::new("tmux");
    command.arg("-u").arg("-S").arg(tmux);
    command.args(["select-window", "-t", pane, ";", "select-pane", "-t", pane, ";"]);
    match method {
        AttachMethod::SwitchClient(client) => command.args(["switch-client", "-c", &client, "-t", pane]),
        AttachMethod::NewClient => command.args(["attach-session", "-t", pane]),
    };
    tmux_failed(&command.exec())
}

/// Returns the name of a tmux client that shows the session of the caller's pane. `switch-client`
/// gets this name, because without a name tmux might switch any client, even the control client of
/// the daemon.
fn client_of_this_pane(socket: &Path) -> Result<String, ErrorReport> {
    let pane = env_var("TMUX_PANE").unwrap_or_default();
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).args([
        "list-clients",
        "-t",
        &pane,
        "-F",
        "#{client_control_mode} #{client_name}",
    ]);
    let output = command.output().map_err(|error| tmux_failed(&error))?;
    let clients = String::from_utf8_lossy(&output.stdout).into_owned();
    clients.lines().find_map(|line| line.strip_prefix("0 ")).map(str::to_owned).ok_or_else(|| {
        ErrorReport::new(
            ErrorKind::Refused,
            "cannot switch to the pane: no terminal is attached to this session",
        )
        .with_help(format!("attach one with: tmux -S {} attach", socket.display()))
    })
}
