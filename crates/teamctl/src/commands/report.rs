//! `report`: says on one page what a team did since a given time. It reads the event log, the
//! roster, the team files and the branches, so it works without a daemon. For a deleted team, it
//! shows what the event log has.

mod branch_section;
mod failures;
mod finished_tasks;
mod member_costs;
mod open_tasks;
mod page;
mod read_member_branches;
mod team_events;
mod team_report;
mod waiting_for_person;

use super::events::parse_since;
use crate::add_options_to_suggested_commands::{suggested_commands, suggested_commands_for_team};
use crate::command_context::CommandContext;
use crate::output;
use client::read_event_log::EventLog;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::TeamName;
use std::process::ExitCode;
use store::Team;
use team_events::TeamEvents;
use team_report::TeamReport;

/// Show on one page what a team did
///
/// Example: teamctl report --since 8h
///
/// The page lists finished and open tasks, what failed and why, what waits for a person, unmerged
/// commits on the branches of members, and what the team cost. Without --since, it covers all that
/// the event log has about the team. It changes nothing.
///
/// The command also works while no teamd runs. With -t, it shows what the event log has about a
/// team that was deleted.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl report -t night\n  teamctl report --since 2026-02-13T22:00 --json"
)]
pub(crate) struct ReportArgs {
    /// Only what happened since then: a duration before now, or a date or time in UTC
    #[arg(long, value_name = "T", value_parser = parse_since)]
    since: Option<u64>,
}

/// The team of a report.
enum ReportedTeam {
    Existing(Team),
    /// Only the event log has the team.
    Deleted(TeamName),
}

pub(crate) fn run(context: &CommandContext, args: &ReportArgs) -> Result<ExitCode, ErrorReport> {
    let log = EventLog::read(&context.state_dir_path()?);
    let team = find_team(context, &log)?;
    let events = TeamEvents::new(&log.events_of_team(team.name()), args.since);
    let report = match &team {
        ReportedTeam::Existing(team) => {
            TeamReport::on_existing_team(context, team, &events.for_existing_team(), log, args.since)?
        }
        ReportedTeam::Deleted(name) => TeamReport::on_deleted_team(name.clone(), &events, args.since),
    };
    let commands = match team {
        ReportedTeam::Existing(team) => suggested_commands_for_team(context, team.name())?,
        ReportedTeam::Deleted(name) => suggested_commands(context).for_team(&name),
    };
    output::print_result(context, &report, &page::page(context, &report, &commands).join("\n"));
    Ok(ExitCode::SUCCESS)
}

impl ReportedTeam {
    fn name(&self) -> &TeamName {
        match self {
            ReportedTeam::Existing(team) => team.name(),
            ReportedTeam::Deleted(name) => name,
        }
    }
}

/// Finds the selected team, or else the team that `-t` names in the event log.
fn find_team(context: &CommandContext, log: &EventLog) -> Result<ReportedTeam, ErrorReport> {
    let error = match context.team() {
        Ok(team) => return Ok(ReportedTeam::Existing(team)),
        Err(error) if error.kind == ErrorKind::NotFound => error,
        Err(error) => return Err(error),
    };
    let name = context.args.team.as_deref().and_then(|name| TeamName::sanitize(name).ok());
    let Some(name) = name else { return Err(with_last_deleted_team(error, log)) };
    if log.events_of_team(&name).is_empty() {
        return Err(error);
    }
    context.check_acts_in(Some(&name))?;
    // The config.json of a team that exists may be missing for a moment.
    match context.existing_root()?.map(|root| root.open_team_without_config(&name)).transpose()?.flatten() {
        Some(_) => Err(error),
        None => Ok(ReportedTeam::Deleted(name)),
    }
}

/// Adds how to see the report on the team that was deleted last. The usual `run` deletes its team.
fn with_last_deleted_team(error: ErrorReport, log: &EventLog) -> ErrorReport {
    let deleted = |event: Event| event.team.filter(|_| matches!(event.kind, EventKind::TeamDeleted));
    match log.events().into_iter().rev().find_map(deleted) {
        Some(team) => {
            let help = format!("the last team was deleted; what is known of it: teamctl report -t {team}");
            error.with_help(help)
        }
        None => error,
    }
}
