//! Steps before and after a command on another host: the check of the caller, and the wait for the
//! host's changes.

use crate::command_context::CommandContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::command_for_other_host::HOST_OF_CALLER_VARIABLE;
use protocol::control_socket::{AwaitHostRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::teamctl_ask_setup_and_record::ASK_VARIABLE;
use store::{Team, env_var};

/// Checks that the caller may run a command on another host, where it would count as a person.
///
/// # Errors
///
/// `NotPermitted`; `Usage` if the command itself runs for another machine.
pub(crate) fn check_may_use_other_hosts(context: &CommandContext) -> Result<(), ErrorReport> {
    check_not_asked()?;
    if let Some(host) = env_var(HOST_OF_CALLER_VARIABLE) {
        let message =
            format!("cannot run a command on another host: this one runs on {host} for another machine");
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("run it from that machine, with the other host in its hosts file: teamctl hosts"));
    }
    AllowedCallers::LeadOrPerson.check("run a command on another host", &context.caller_name())
}

/// Checks that `teamctl ask` has not started the caller.
pub(crate) fn check_not_asked() -> Result<(), ErrorReport> {
    if env_var(ASK_VARIABLE).is_none() {
        return Ok(());
    }
    let message = "cannot run this command: a program that answers one question is on no team";
    Err(ErrorReport::new(ErrorKind::NotPermitted, message)
        .with_help("to act in a team, start the program as a member: teamctl spawn NAME"))
}

/// Waits until the files here have all changes of a host.
///
/// # Errors
///
/// Those of the daemon, for example if it has no contact with the host.
pub(crate) fn await_host(context: &CommandContext, team: &Team, host: HostName) -> Result<(), ErrorReport> {
    context.request(Request::AwaitHost(AwaitHostRequest { team: team.name().clone(), host }))
}
