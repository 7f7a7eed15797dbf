//! `teamctl home`: which machine is a team's home.

use crate::command_context::CommandContext;
use crate::commands::ask_yes_or_no::ask_yes_or_no;
use crate::commands::hosts::connect_daemon::use_host_request;
use crate::commands::hosts::read_hosts::HostSource;
use crate::output;
use crate::use_other_hosts::check_may_use_other_hosts;
use protocol::control_socket::{MoveHomeRequest, Request, TakeHomeRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde_json::json;
use std::process::ExitCode;
use store::Team;

/// Move the home of a team with several machines
///
/// Example: teamctl home move survey devbox
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl home move survey devbox\n  teamctl home take survey")]
pub(crate) struct HomeArgs {
    #[command(subcommand)]
    command: HomeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HomeCommand {
    /// Make this machine the home of a team
    ///
    /// Example: teamctl home take survey
    ///
    /// Type the command on a machine that runs members of the team. The members on all other
    /// machines are deregistered, and their unfinished tasks released. Changes that the old home
    /// has not sent yet are lost, and so is the team's policy. If the old home comes back, it ends
    /// its members of the team and changes the team no more. The command is refused (exit code 76)
    /// while this machine has contact with the home.
    Take(TakeArgs),
    /// Move a team's home to another host
    ///
    /// Example: teamctl home move survey devbox
    ///
    /// The host is the home once the command returns, with the tasks, messages, members and policy
    /// of the team. The events so far stay here. The host must have contact, and no member may run
    /// elsewhere. If the command fails after the home was offered to the host, its error says
    /// whether the host has answered, and what it lacks.
    Move(MoveArgs),
}

#[derive(Debug, clap::Args)]
struct TakeArgs {
    /// The team
    team: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
struct MoveArgs {
    /// The team
    team: String,
    /// The host of the hosts file that is to be the home
    host: String,
}

pub(crate) fn run(context: &CommandContext, args: &HomeArgs) -> Result<ExitCode, ErrorReport> {
    match &args.command {
        HomeCommand::Take(args) => take_home(context, args),
        HomeCommand::Move(args) => move_home(context, args),
    }
}

fn move_home(context: &CommandContext, args: &MoveArgs) -> Result<ExitCode, ErrorReport> {
    check_may_use_other_hosts(context)?;
    let context = context.with_team_argument(Some(&args.team));
    let team = context.team()?;
    if team.is_mirror() {
        let message = format!("cannot move {} from here: its home is another machine", team.name());
        return Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help("type this command there; if that machine is lost for good: teamctl home take TEAM"));
    }
    team.check_home_is_here()?;
    let mut source = HostSource::default();
    let hosts = match source.read_for_team(&context, team.name())? {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    let (host, entry) = source.find(&hosts, &args.host)?;
    let request = || {
        let (team, host) = (team.name().clone(), host.clone());
        context.request::<()>(Request::MoveHome(MoveHomeRequest { team, host }))
    };
    match request() {
        // The host has no mirror of the team yet, or no connection.
        Err(error) if error.kind == ErrorKind::NotFound => {
            context.request::<()>(use_host_request(team.name().clone(), (&host, &entry))?)?;
            request()?;
        }
        result => result?,
    }
    let name = team.name();
    let text = format!(
        "The home of {name} is {host} now. Use it there: teamctl --host {host} status -t {name}\nThe files here do \
         not change any more. To delete them: teamctl delete {name} --force"
    );
    output::print_result(&context, &json!({"team": name, "host": host}), &text);
    Ok(ExitCode::SUCCESS)
}

fn take_home(context: &CommandContext, args: &TakeArgs) -> Result<ExitCode, ErrorReport> {
    let context = context.with_team_argument(Some(&args.team));
    let team = context.team()?;
    if !team.is_mirror() {
        team.check_home_is_here()?;
        let message = format!("cannot take {}: its home is this machine already", team.name());
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help("see: teamctl status"));
    }
    let lost = members_elsewhere(&team)?;
    let list = output::member_list(&lost);
    let question = format!(
        "Make this machine the home of {}, lose what its home has not sent, and deregister {list}? [y/N] ",
        team.name()
    );
    let yes = format!("to take it without a question: teamctl home take {} --yes", team.name());
    if !args.yes && !ask_yes_or_no(&question, &format!("whether to take {}", team.name()), &yes)? {
        output::print_warning("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    context.request::<()>(Request::TakeHome(TakeHomeRequest { team: team.name().clone() }))?;
    let text = format!(
        "This machine is the home of {} now. Deregistered: {list}.\nOnce the old home has contact with it, \
         the old home ends its members and changes the team no more. The policy is the default: teamctl policy FILE",
        team.name()
    );
    output::print_result(&context, &json!({"team": team.name(), "members": lost}), &output::sanitize(&text));
    Ok(ExitCode::SUCCESS)
}

/// The members of a mirrored team that do not run on this machine.
fn members_elsewhere(team: &Team) -> Result<Vec<String>, ErrorReport> {
    let members = team.config()?.members.clone();
    let elsewhere = members.iter().filter(|member| member.host.is_some() && !member.name.is_lead());
    Ok(elsewhere.map(|member| member.name.to_string()).collect())
}
