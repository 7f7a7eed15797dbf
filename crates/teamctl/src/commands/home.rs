//! `teamctl home`: which machine is a team's home.

use crate::command_context::CommandContext;
use crate::commands::ask_person::ask_person;
use crate::output;
use protocol::control_socket::{Request, TakeHomeRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde_json::json;
use std::process::ExitCode;
use store::Team;

/// Move the home of a team with several machines
///
/// Example: teamctl home take survey
#[derive(Debug, clap::Args)]
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
}

#[derive(Debug, clap::Args)]
struct TakeArgs {
    /// The team
    team: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn run(context: &CommandContext, args: &HomeArgs) -> Result<ExitCode, ErrorReport> {
    let HomeCommand::Take(args) = &args.command;
    let context = context.with_team_argument(Some(&args.team));
    let team = context.team()?;
    if !team.is_mirror() {
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
    if !args.yes && !ask_person(&question, &format!("whether to take {}", team.name()), &yes)? {
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
