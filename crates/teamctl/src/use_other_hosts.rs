//! Two steps around a command that runs on another host. Before the command: a check that the
//! caller may use other hosts. After the command: a wait until the host's changes have arrived
//! here.

use crate::command_context::CommandContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::command_for_other_host::{ENV_OPTIONS_VARIABLE, HOST_OF_CALLER_VARIABLE};
use protocol::control_socket::{AwaitHostRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::teamctl_ask_setup_and_record::ASK_VARIABLE;
use std::collections::BTreeMap;
use store::{Team, env_var};

/// Checks that the caller may run a command on another host. The other host cannot check this: it
/// treats every command from here as a command of a person.
///
/// # Errors
///
/// `NotPermitted` if the caller is a teammate or a program of `teamctl ask`. `Usage` if another
/// machine runs this command by `teamctl --host`.
pub(crate) fn check_may_use_other_hosts(context: &CommandContext) -> Result<(), ErrorReport> {
    check_may_connect_to_hosts(context)?;
    if let Some(host) = env_var(HOST_OF_CALLER_VARIABLE) {
        let message =
            format!("cannot run a command on another host: this one runs on {host} for another machine");
        return Err(ErrorReport::new(ErrorKind::Usage, message)
            .with_help("run it from that machine, with the other host in its hosts file: teamctl hosts"));
    }
    Ok(())
}

/// Checks that the caller may run a command that connects to other hosts. Unlike
/// [`check_may_use_other_hosts`], accepts a command that another machine runs by `teamctl --host`.
///
/// # Errors
///
/// `NotPermitted` if the caller is a teammate or a program of `teamctl ask`.
pub(crate) fn check_may_connect_to_hosts(context: &CommandContext) -> Result<(), ErrorReport> {
    check_not_asked()?;
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

/// The values of `--env` from a run, or from `teamctl` on another machine. That process starts this
/// one and passes the values in an environment variable, because other users can read the arguments
/// of a process.
pub(crate) fn env_options_of_starter() -> BTreeMap<String, String> {
    env_var(ENV_OPTIONS_VARIABLE).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Waits until all changes that a host has made to the team's files have arrived in the files here.
///
/// # Errors
///
/// The errors of the daemon, for example if the daemon has no contact with the host.
pub(crate) fn await_host(context: &CommandContext, team: &Team, host: HostName) -> Result<(), ErrorReport> {
    context.request(Request::AwaitHost(AwaitHostRequest { team: team.name().clone(), host }))
}
