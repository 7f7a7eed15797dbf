//! `attach`: go to a member's pane. Inside tmux the client switches to it, outside a new one attaches. One
//! that has no pane is seen in its log.

use super::up::no_tmux;
use crate::here::{Here, variable};
use protocol::control::{Locate, LocateReply, Reply, Request};
use protocol::fault::{Fault, Kind};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Go to a member's pane; of one that has none, follow the output
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl attach ann\n\nInside tmux the client switches to the pane (back with: prefix L); outside, tmux attaches (leave with: prefix d). What a member without a pane prints comes until you interrupt it."
)]
pub(crate) struct Attach {
    /// The member
    name: String,
}

pub(crate) fn run(here: &Here, args: &Attach) -> Result<ExitCode, Fault> {
    let team = super::send::team_of(here, &args.name)?;
    let locate = Locate { team: team.name().clone(), name: args.name.clone() };
    match here.ask(Request::Locate(locate))? {
        Reply::Locate(LocateReply::Pane { pane, tmux }) => Err(go(&pane, &tmux)),
        Reply::Locate(LocateReply::Log { path }) => super::logs::follow(here, &path),
        _ => Err(Fault::new(Kind::Internal, "cannot understand the daemon's answer")),
    }
}

/// Becomes tmux; returns only when that fails.
fn go(pane: &str, tmux: &std::path::Path) -> Fault {
    let inside = variable("TMUX").and_then(|tmux| tmux.split(',').next().map(std::path::PathBuf::from));
    if inside.as_ref().is_some_and(|socket| *socket != tmux) {
        let message = format!("cannot switch to {pane}: it is on another tmux server");
        return Fault::new(Kind::Refused, message)
            .hinted(format!("from outside tmux: tmux -S {} attach", tmux.display()));
    }
    let client = match inside.is_some().then(|| client_here(tmux)) {
        Some(Err(fault)) => return fault,
        Some(Ok(client)) => Some(client),
        None => None,
    };
    let mut command = Command::new("tmux");
    command.arg("-u").arg("-S").arg(tmux);
    command.args(["select-window", "-t", pane, ";", "select-pane", "-t", pane, ";"]);
    match client {
        Some(client) => command.args(["switch-client", "-c", &client, "-t", pane]),
        None => command.args(["attach-session", "-t", pane]),
    };
    no_tmux(&command.exec())
}

/// The terminal that looks at this pane's session. Left to itself tmux would take any client, teamd's own too.
fn client_here(socket: &std::path::Path) -> Result<String, Fault> {
    let here = variable("TMUX_PANE").unwrap_or_default();
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).args([
        "list-clients",
        "-t",
        &here,
        "-F",
        "#{client_control_mode} #{client_name}",
    ]);
    let output = command.output().map_err(|error| no_tmux(&error))?;
    let clients = String::from_utf8_lossy(&output.stdout).into_owned();
    clients.lines().find_map(|line| line.strip_prefix("0 ")).map(str::to_owned).ok_or_else(|| {
        Fault::new(Kind::Refused, "cannot switch to the pane: no terminal is attached to this session")
            .hinted(format!("attach one with: tmux -S {} attach", socket.display()))
    })
}
