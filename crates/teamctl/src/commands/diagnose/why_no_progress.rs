//! `why`: explains why a member makes no progress.
//!
//! The command first gathers all evidence about the member. It then derives the causes from this
//! evidence alone, so that tests of the causes need no running team. `why` changes nothing. If the
//! daemon or tmux does not answer, `why` stops waiting after a few seconds.

mod agent_starting_ending_or_stopped_causes;
mod cause;
mod cause_with_evidence_and_commands;
mod disk_daemon_tmux_and_config_causes;
mod find_causes;
mod format_evidence_lines;
mod gather_member_evidence;
mod member_event_history;
mod member_evidence;
mod no_running_agent_causes;
mod probe_servers_processes_and_disks;
mod request_and_dialog_causes;
mod suggested_next_commands;
mod system_snapshot;
mod task_waits_and_unfinished_tasks;
mod team_diagnosis;
mod team_evidence;
mod turn_message_and_task_causes;
mod unreadable_or_locked_inbox_causes;

pub(in crate::commands) use cause_with_evidence_and_commands::Diagnosis;
pub(in crate::commands) use system_snapshot::SystemSnapshot;

use crate::acted_on_members::ActedOnMembers;
use crate::add_options_to_suggested_commands::{suggested_commands, suggested_commands_for_team};
use crate::command_context::CommandContext;
use crate::commands::daemon_suspension_and_budget_lines::interrupted_run_line;
use crate::commands::send::team_of_address;
use crate::output;
use client::read_event_log::EventLog;
use find_causes::find_causes;
use gather_member_evidence::{NO_OUTPUT_DEFAULT, gather_evidence};
use member_event_history::EVENT_LINE_PATTERNS;
use member_evidence::MemberEvidence;
use protocol::allowed_callers::AllowedCallers;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use protocol::team_and_member_names::{MemberName, strip_team};
use runner::{InterruptedRun, interrupted_run};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use store::Team;
use team_diagnosis::TeamDiagnosis;
use team_evidence::TeamEvidence;

/// Explain why a member makes no progress
///
/// Example: teamctl why ann
///
/// Without a name, the command shows each member that makes no progress, with its strongest cause.
/// With a name, it shows all causes, the strongest first. Each cause comes with evidence and with
/// commands to type next.
///
/// Causes are, for example, an open request, a blocking task, a dialog, a stopped process, failing
/// turns, or a locked inbox. If there is no cause, the command shows what the member does. For a
/// member that has exited, it shows how and when.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl why\n  teamctl why ann --no-output-after 30s")]
pub(crate) struct WhyArgs {
    /// The member: NAME or NAME@TEAM [default: every member of the team]
    name: Option<String>,
    /// Report a turn that has printed nothing for this long
    #[arg(long, value_name = "D", default_value = "5m", value_parser = parse_duration::parse)]
    no_output_after: Duration,
}

impl WhyArgs {
    /// Who may run the command with these arguments.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'_> {
        self.name.as_deref().map_or(AllowedCallers::LeadOrPerson, AllowedCallers::MemberLeadOrPerson)
    }

    /// The member on whose host the command runs.
    pub(crate) fn acted_on_members(&self) -> ActedOnMembers<'_> {
        self.name
            .as_ref()
            .map_or(ActedOnMembers::None, |name| ActedOnMembers::Named(std::slice::from_ref(name)))
    }
}

pub(crate) fn run(context: &CommandContext, args: &WhyArgs) -> Result<ExitCode, ErrorReport> {
    let Some(name) = &args.name else { return explain_team(context, args.no_output_after) };
    let team = team_of_address(context, name)?;
    team.check_home_is_here()?;
    let snapshot = SystemSnapshot::take(context, EventLog::read(&context.directories()?.state_dir))?;
    let evidence = member_evidence(context, &snapshot, &team, name, args.no_output_after)?;
    if !evidence.is_known() {
        return Err(unknown_member(&evidence));
    }
    let causes = find_causes(&evidence);
    let interrupted_run = interrupted_run(&context.state_dir_path()?, &team);
    if context.args.json {
        let is_stuck = causes.first().is_some_and(Diagnosis::is_blocking);
        let result = json!({"team": evidence.team, "name": evidence.name, "stuck": is_stuck, "causes": causes,
            "interrupted_run": interrupted_run});
        output::print_result(context, &result, "");
    } else if !context.args.quiet {
        causes.iter().for_each(Diagnosis::print);
        print_interrupted_run(context, interrupted_run.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_interrupted_run(context: &CommandContext, run: Option<&InterruptedRun>) {
    let line = run.map(|run| interrupted_run_line(run, &suggested_commands(context)));
    line.iter().for_each(|line| output::print_line(&output::sanitize(line)));
}

fn member_evidence(
    context: &CommandContext,
    snapshot: &SystemSnapshot,
    team: &Team,
    address: &str,
    no_output_after: Duration,
) -> Result<MemberEvidence, ErrorReport> {
    let name = MemberName::new_unchecked(strip_team(address, team.name()));
    let events = snapshot.log.events_of(&name, &EVENT_LINE_PATTERNS);
    let team = TeamEvidence::gather(context, snapshot, team, events)?;
    Ok(gather_evidence(&team, address, no_output_after))
}

fn explain_team(context: &CommandContext, no_output_after: Duration) -> Result<ExitCode, ErrorReport> {
    let team = context.team()?;
    team.check_home_is_here()?;
    let snapshot = SystemSnapshot::take(context, EventLog::read(&context.directories()?.state_dir))?;
    let diagnosis = TeamDiagnosis::new(context, &snapshot, &team, no_output_after)?;
    let interrupted_run = interrupted_run(&context.state_dir_path()?, &team);
    if context.args.json {
        let members = diagnosis.stuck.iter();
        let members = members.map(|(name, cause)| json!({"name": name, "causes": [cause]}));
        let members: Vec<Value> = members.collect();
        let result = json!({"team": team.name(), "stuck": !members.is_empty(), "members": members,
            "interrupted_run": interrupted_run});
        output::print_result(context, &result, "");
    } else if !context.args.quiet {
        diagnosis.stuck.iter().for_each(|(_, diagnosis)| diagnosis.print());
        if diagnosis.stuck.is_empty() {
            let commands = suggested_commands_for_team(context, team.name())?;
            output::print_line(&diagnosis.nothing_found_text(&team, &commands));
        }
        print_interrupted_run(context, interrupted_run.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds out why a member makes no progress. Returns the causes, the strongest first. Used by other
/// commands, such as `trace`.
pub(super) fn diagnose(
    context: &CommandContext,
    snapshot: &SystemSnapshot,
    team: &Team,
    name: &MemberName,
) -> Result<Vec<Diagnosis>, ErrorReport> {
    let evidence = member_evidence(context, snapshot, team, name.as_str(), NO_OUTPUT_DEFAULT)?;
    Ok(find_causes(&evidence))
}

/// The members of a team that make no progress, each with its strongest cause, for `report`.
pub(in crate::commands) fn stuck_members(
    context: &CommandContext,
    snapshot: &SystemSnapshot,
    team: &Team,
) -> Result<Vec<(MemberName, Diagnosis)>, ErrorReport> {
    Ok(TeamDiagnosis::new(context, snapshot, team, NO_OUTPUT_DEFAULT)?.stuck)
}

fn unknown_member(evidence: &MemberEvidence) -> ErrorReport {
    let members = evidence.members.iter().map(MemberName::as_str);
    let other_members = evidence.history.other_members.iter().map(MemberName::as_str);
    let suggestion = did_you_mean(evidence.name.as_str(), members.chain(other_members));
    let message = format!(
        "cannot find {}: it is no member of {}, and never was as far as the event log says",
        evidence.name, evidence.team
    );
    ErrorReport::new(ErrorKind::NotFound, message)
        .with_help(suggestion.unwrap_or_else(|| "list them with: teamctl status".to_owned()))
}
