//! `attach`: go to a member's pane. Inside tmux the client switches to it, outside a new one attaches. One
//! that has no pane is seen in its log.

use crate::context::CommandContext;
use client::error::unexpected_reply;
use client::tmux_command::tmux_failed;
use protocol::control::{LocatePaneReply, MemberAddress, Reply, Request};
use protocol::error::{ErrorKind, ErrorReport};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use store::env_var;

/// Go to a member's pane; of one that has none, follow the output
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl attach ann\n\nInside tmux the client switches to the pane (back with: prefix L); outside, tmux attaches (leave with: prefix d). A hidden pane is shown first. What a member without a pane prints comes until you interrupt it."
)]
pub(crate) struct AttachArgs {
    /// The member
    name: String,
}

pub(crate) fn run(here: &CommandContext, args: &AttachArgs) -> Result<ExitCode, ErrorReport> {
    let team = super::send::team_of_address(here, &args.name)?;
    let locate = MemberAddress { team: team.name().clone(), name: args.name.clone() };
    match here.call_daemon(Request::LocatePane(locate.clone()))? {
        Reply::LocatePane(LocatePaneReply::Pane { pane, tmux, is_hidden: hidden }) => {
            let way = attach_method(&pane, &tmux)?;
            if hidden {
                here.call_daemon(Request::ShowPane(locate))?;
            }
            Err(exec_tmux(&pane, &tmux, way))
        }
        Reply::LocatePane(LocatePaneReply::Log { path }) => super::logs::follow(here, &path),
        _ => Err(unexpected_reply()),
    }
}

/// How a terminal gets to a pane.
enum AttachMethod {
    /// This client of the same server switches to it.
    SwitchClient(String),
    /// There is none: a new one attaches.
    NewClient,
}

fn attach_method(pane: &str, tmux: &std::path::Path) -> Result<AttachMethod, ErrorReport> {
    let inside = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(std::path::PathBuf::from));
    match inside {
        None => Ok(AttachMethod::NewClient),
        Some(socket) if socket == tmux => client_of_this_pane(tmux).map(AttachMethod::SwitchClient),
        Some(_) => {
            let message = format!("cannot switch to {pane}: it is on another tmux server");
            Err(ErrorReport::new(ErrorKind::Refused, message)
                .with_help(format!("from outside tmux: tmux -S {} attach", tmux.display())))
        }
    }
}

/// Becomes tmux; returns only when that fails.
fn exec_tmux(pane: &str, tmux: &std::path::Path, way: AttachMethod) -> ErrorReport {
    let mut command = Command::new("tmux");
    command.arg("-u").arg("-S").arg(tmux);
    command.args(["select-window", "-t", pane, ";", "select-pane", "-t", pane, ";"]);
    match way {
        AttachMethod::SwitchClient(client) => command.args(["switch-client", "-c", &client, "-t", pane]),
        AttachMethod::NewClient => command.args(["attach-session", "-t", pane]),
    };
    tmux_failed(&command.exec())
}

/// The terminal that looks at this pane's session. Left to itself tmux would take any client, teamd's own too.
fn client_of_this_pane(socket: &std::path::Path) -> Result<String, ErrorReport> {
    let here = env_var("TMUX_PANE").unwrap_or_default();
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).args([
        "list-clients",
        "-t",
        &here,
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
