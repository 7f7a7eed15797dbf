//! Runs a command on the hosts of the members that the command acts on. For members on this host,
//! the command runs here. For members on another host, the `teamctl` of that host runs it. The
//! team's `config.json` says where each member runs. `CliCommand::acted_on_members` says which
//! commands act on members.

use super::cli_command::CliCommand;
use crate::acted_on_members::ActedOnMembers;
use crate::add_options_to_suggested_commands::suggested_commands_for_team;
use crate::command_context::CommandContext;
use crate::commands::run_on_other_host::{self, RemoteRunReason};
use crate::output;
use crate::use_other_hosts::{await_host, check_may_use_other_hosts};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{HOME_HOST, HostName};
use protocol::team_and_member_names::strip_team;
use protocol::team_config::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use store::Team;

/// Where a command runs.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    Here,
    Host(String),
    /// On each of these hosts, and then here.
    HostsAndHere(Vec<String>),
}

/// Runs a command on this host.
type RunHere = fn(CliCommand, &CommandContext) -> Result<ExitCode, ErrorReport>;

pub(super) fn dispatch(
    command: CliCommand,
    context: &CommandContext,
    run_here: RunHere,
) -> Result<ExitCode, ErrorReport> {
    let acted_on = command.acted_on_members();
    // If the team cannot be read, the command itself reports that.
    let Some((team, members)) = team_and_members(context, acted_on) else {
        return run_here(command, context);
    };
    if team.is_mirror() {
        let elsewhere = named(&team, &members, acted_on).find(|member| member.host.is_some());
        // `why` itself says where a member runs.
        if !matches!(command, CliCommand::Why(_)) {
            check_runs_here(&team, elsewhere)?;
        }
        return run_here(command, context);
    }
    let route = route(&team, &members, acted_on)
        .map_err(|groups| several_hosts_error(context, &command, &team, &groups))?;
    if route != Route::Here {
        team.check_home_is_here()?;
    }
    match route {
        Route::Here => run_here(command, context),
        Route::Host(host) => run_on_host(&command, context, &host, &team),
        Route::HostsAndHere(hosts) => {
            // A host without contact does not keep the others from the command.
            let run = |host: &String| run_on_host(&command, context, host, &team);
            let print_error = |error: ErrorReport| output::print_error(context, &error);
            let codes: Vec<ExitCode> =
                hosts.iter().map(|host| run(host).unwrap_or_else(print_error)).collect();
            let code = run_here(command, context)?;
            Ok(codes.into_iter().find(|code| *code != ExitCode::SUCCESS).unwrap_or(code))
        }
    }
}

fn team_and_members(context: &CommandContext, acted_on: ActedOnMembers) -> Option<(Team, Vec<Member>)> {
    let addresses = match acted_on {
        ActedOnMembers::None => return None,
        ActedOnMembers::Named(addresses) => addresses,
        ActedOnMembers::All => &[],
    };
    let root = context.existing_root().ok()??;
    let team = root.team(&context.team_of_members(&root, addresses).ok()?).ok()?;
    let members = team.config().ok()?.members.clone();
    Some((team, members))
}

/// Returns the config entries of the members that the command names. A command for all members
/// names none, so the result is empty.
fn named<'a>(
    team: &'a Team,
    members: &'a [Member],
    acted_on: ActedOnMembers<'a>,
) -> impl Iterator<Item = &'a Member> {
    members.iter().filter(move |member| match acted_on {
        ActedOnMembers::Named(addresses) => {
            addresses.iter().any(|address| is_address_of(address, member, team))
        }
        ActedOnMembers::None | ActedOnMembers::All => false,
    })
}

fn is_address_of(address: &str, member: &Member, team: &Team) -> bool {
    strip_team(address, team.name()).eq_ignore_ascii_case(member.name.as_str())
}

/// Addresses of members by their host. The host `None` is this one.
type MembersByHost = BTreeMap<Option<String>, Vec<String>>;

/// Decides where the command runs. `Err` if it names members of several hosts.
fn route(team: &Team, members: &[Member], acted_on: ActedOnMembers) -> Result<Route, MembersByHost> {
    let host_of = |address: &String| {
        let member = members.iter().find(|member| is_address_of(address, member, team));
        member.and_then(|member| member.host.clone())
    };
    let mut groups = MembersByHost::new();
    match acted_on {
        ActedOnMembers::Named(addresses) => {
            addresses
                .iter()
                .for_each(|address| groups.entry(host_of(address)).or_default().push(address.clone()));
        }
        ActedOnMembers::None | ActedOnMembers::All => {
            let hosts = members.iter().filter_map(|member| member.host.clone());
            let hosts: Vec<String> = hosts.collect::<BTreeSet<_>>().into_iter().collect();
            return Ok(if hosts.is_empty() { Route::Here } else { Route::HostsAndHere(hosts) });
        }
    }
    match groups.len() {
        0 | 1 => Ok(groups.into_keys().flatten().next().map_or(Route::Here, Route::Host)),
        _ => Err(groups),
    }
}

fn several_hosts_error(
    context: &CommandContext,
    command: &CliCommand,
    team: &Team,
    groups: &MembersByHost,
) -> ErrorReport {
    let places = groups.iter().map(|(host, names)| {
        let verb = if names.len() == 1 { "runs" } else { "run" };
        let place = host.as_ref().map_or_else(|| "here".to_owned(), |host| format!("on {host}"));
        format!("{} {verb} {place}", names.join(" and "))
    });
    let message =
        format!("cannot run one command on several hosts: {}", places.collect::<Vec<_>>().join(", "));
    let verb = if matches!(command, CliCommand::Kill(_)) { "kill" } else { "shutdown" };
    let commands = suggested_commands_for_team(context, team.name()).unwrap_or_default();
    let words = |names: &Vec<String>| {
        let words: Vec<&str> = std::iter::once(verb).chain(names.iter().map(String::as_str)).collect();
        commands.command(&words)
    };
    ErrorReport::new(ErrorKind::Usage, message).with_help(format!(
        "one command for each: {}",
        groups.values().map(words).collect::<Vec<_>>().join("; ")
    ))
}

fn run_on_host(
    command: &CliCommand,
    context: &CommandContext,
    host: &str,
    team: &Team,
) -> Result<ExitCode, ErrorReport> {
    check_may_use_other_hosts(context)?;
    let reason = RemoteRunReason::RunsMemberOf(team.name().clone());
    let code = run_on_other_host::run(context, host, &reason, command.terminal_use())?;
    // Without this wait, config.json here could still list the member.
    if code == ExitCode::SUCCESS
        && matches!(command, CliCommand::Shutdown(_) | CliCommand::Kill(_))
        && let Some(host) = HostName::parse(host)
        && let Err(error) = await_host(context, team, host)
    {
        output::print_warning(&error.message);
    }
    Ok(code)
}

/// Checks that no named member of a mirrored team runs on another host.
fn check_runs_here(team: &Team, elsewhere: Option<&Member>) -> Result<(), ErrorReport> {
    let Some(member) = elsewhere else { return Ok(()) };
    let place = match member.host.as_deref().unwrap_or_default() {
        HOME_HOST => format!("at the home of {}", team.name()),
        host => format!("on {host}"),
    };
    let message = format!("cannot reach {} from here: it runs {place}", member.name);
    Err(ErrorReport::new(ErrorKind::NotFound, message)
        .with_help(format!("type this command at the home of {}", team.name())))
}
