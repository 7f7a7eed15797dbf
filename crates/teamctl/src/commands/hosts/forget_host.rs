//! `teamctl hosts forget`: the daemon forgets a host that is gone for good.

use super::branch_records::{LockedBranchRecords, read_branch_records};
use crate::command_context::CommandContext;
use crate::commands::ask_yes_or_no::ask_yes_or_no;
use crate::output;
use protocol::control_socket::{ForgetHostRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct ForgetArgs {
    /// The host
    name: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(context: &CommandContext, args: &ForgetArgs) -> Result<ExitCode, ErrorReport> {
    let host = HostName::try_from(args.name.clone())
        .map_err(|reason| ErrorReport::new(ErrorKind::Usage, format!("cannot forget a host: {reason}")))?;
    let members = members_on(context, &host)?;
    let names: Vec<String> = members.iter().map(|(team, name)| format!("{name} of {team}")).collect();
    let question = format!("Forget {host}, and deregister {}? [y/N] ", output::member_list(&names));
    let yes = format!("to forget it without a question: teamctl hosts forget {host} --yes");
    if !args.yes && !ask_yes_or_no(&question, &format!("whether to forget {host}"), &yes)? {
        output::print_warning("nothing was forgotten");
        return Ok(ExitCode::FAILURE);
    }
    let forgotten = context.request::<()>(Request::ForgetHost(ForgetHostRequest { host: host.clone() }));
    let is_unknown = matches!(&forgotten, Err(error) if error.kind == ErrorKind::NotFound);
    // An earlier command may have been killed before it came to the branches.
    let had_branches = (forgotten.is_ok() || is_unknown) && forget_branches(context, &host)?;
    if !(is_unknown && had_branches) {
        forgotten?;
    }
    let object = json!({
        "host": host,
        "members": members.iter().map(|(team, name)| json!({"team": team, "name": name})).collect::<Vec<_>>(),
    });
    let text = format!(
        "{host} is forgotten. Deregistered: {}.\nIf it comes back, what its members have not sent is not \
         taken. Its next use from here ends them; to end them at once: teamctl --host {host} down",
        output::member_list(&names)
    );
    output::print_result(context, &object, &text);
    Ok(ExitCode::SUCCESS)
}

/// Notes in all teams that no branch is fetched from the host any more. Returns whether there was one.
fn forget_branches(context: &CommandContext, host: &HostName) -> Result<bool, ErrorReport> {
    let state = context.state_dir()?;
    let mut had_branches = false;
    for team in context.root()?.teams()? {
        if read_branch_records(&state, &team)?.values().any(|record| record.host == *host) {
            had_branches |= LockedBranchRecords::lock(&state, &team)?.forget_host(host)?;
        }
    }
    Ok(had_branches)
}

/// The members that config.json lists on the host, in all teams whose home is here.
fn members_on(context: &CommandContext, host: &HostName) -> Result<Vec<(TeamName, MemberName)>, ErrorReport> {
    let root = context.root()?;
    let mut members = Vec::new();
    for name in root.teams()? {
        let team = root.team(&name)?;
        let Some(config) = team.config_if_valid().filter(|_| !team.is_mirror()) else { continue };
        let on_host = config.members.iter().filter(|member| member.host.as_deref() == Some(host.as_str()));
        members.extend(on_host.map(|member| (name.clone(), member.name.clone())));
    }
    Ok(members)
}
