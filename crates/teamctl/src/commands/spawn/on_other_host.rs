//! `teamctl spawn NAME --host HOST`: the daemon of this host copies the team to the other host, and
//! keeps the copy up to date. Then the `teamctl` of the other host spawns the member there.

use crate::command_context::CommandContext;
use crate::commands::hosts::connect_daemon::use_host_request;
use crate::commands::run_on_other_host::{self, RemoteRunReason, TerminalUse};
use crate::commands::spawn::place_member::Placement;
use crate::commands::spawn::record_worktree_on_other_host::{members_on, record_worktree};
use crate::use_other_hosts::await_host;
use profile::build_spawn_request::SpawnOptions;
use protocol::control_socket::Backend;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName};
use protocol::team_and_member_names::MemberName;
use std::process::ExitCode;
use store::Team;

/// Spawns a member on the other host. `placement` is the reservation of a slot on that host. It is
/// kept until the team's config.json on this machine lists the new member.
pub(super) fn run(
    context: &CommandContext,
    (host_name, host): (&HostName, &Host),
    (team, options): (&Team, &SpawnOptions),
    placement: Placement,
) -> Result<ExitCode, ErrorReport> {
    check_backend(options)?;
    let request = use_host_request(team.name().clone(), (host_name, host))?;
    check_name_is_free(team, options)?;
    context.request::<()>(request)?;
    let before = members_on(team, host_name)?;
    let reason = RemoteRunReason::RunsMemberOf(team.name().clone());
    let code = run_on_other_host::run(context, host_name.as_str(), &reason, TerminalUse::ReadsInputForDash)?;
    if code == ExitCode::SUCCESS {
        // Afterwards config.json here lists the member.
        await_host(context, team, host_name.clone())?;
        if options.worktree.is_some() {
            record_worktree(context, (team, host_name), &before)?;
        }
    }
    drop(placement);
    Ok(code)
}

fn check_backend(options: &SpawnOptions) -> Result<(), ErrorReport> {
    match options.backend {
        Some(Backend::Iterm2) => {
            let message =
                "cannot use --backend iterm2 with --host: iTerm2 shows only members of its own machine";
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("leave out --backend: then the member gets a pane of tmux there"))
        }
        _ => Ok(()),
    }
}

/// Checks that the team's home is this machine.
pub(super) fn check_is_home(team: &Team) -> Result<(), ErrorReport> {
    if !team.is_mirror() {
        return Ok(());
    }
    let message =
        format!("cannot use other hosts for {} from here: its home is another machine", team.name());
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help("type this command on the machine that is the team's home"))
}

/// Checks that the team has no member of this name yet. The daemon on the other host does not check
/// this: it compares the name only with the members that run on its own host.
fn check_name_is_free(team: &Team, options: &SpawnOptions) -> Result<(), ErrorReport> {
    let name = MemberName::new_unchecked(&options.name);
    if options.unique || team.config()?.member(&name).is_none() {
        return Ok(());
    }
    let message = format!("cannot spawn {name}: {} has a member of that name", team.name());
    Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
        .with_help(format!("another name, or --unique; to end it: teamctl shutdown {name}")))
}
