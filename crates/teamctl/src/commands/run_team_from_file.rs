//! `teamctl run`: runs a team from a file until its tasks are done. This command parses the
//! arguments and prints the progress; the crate `runner` starts and controls the team.

mod display;
mod print_run_result;
mod progress_table;

use super::notify_person_by_command::{CommandOutput, notify_person};
use super::print_run_or_policy_file_errors::{FileUse, print_validation_errors};
use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::{CommandContext, GlobalArgs};
use crate::output;
use client::open_team_beside_caller_pane::{CallerPane, DEFAULT_KEPT_PERCENT};
use display::RunDisplay;
use profile::build_spawn_request::profile_warnings;
use profile::build_worktree_and_spawn_requests::submodule_warning;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use protocol::team_and_member_names::TeamName;
use runner::{AfterRun, IfTeamExists, Recording, RunFile, RunRequest};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::env_var;

/// Run a team from a file until it is done
///
/// Example: teamctl run survey.toml
///
/// An invalid file is rejected (exit code 65) before anything starts. Each error names its line and
/// column. The command uses the running teamd, or starts one, which keeps running. Ctrl-C asks the
/// members to shut down; a second Ctrl-C kills them.
///
/// Exit code 0: every task is completed. 1: some tasks are not completed, the run was stopped, or
/// the team's budget is exhausted (then the team stays). 73: a team with that name exists. 75: the
/// work took longer than --timeout. docs/run.md lists the keys of the file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl run survey.toml --timeout 1h --json\n  teamctl run survey.toml --resume\n  teamctl run survey.toml --record\n\nA whole file:\n  name = \"survey\"\n  [[member]]\n  name = \"ann\"\n  profile = \"worker\"\n  [[task]]\n  key = \"count\"\n  subject = \"count the lines\"\n  command = \"wc -l *.md\""
)]
pub(crate) struct RunArgs {
    /// TOML file with the team's members and tasks
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Keep the team's files at the end of the run
    #[arg(long)]
    keep_team: bool,
    /// Resume a run of this file that was killed; if there is none, start a new one
    #[arg(long)]
    resume: bool,
    /// Time limit for the work, such as 500ms, 5s, 10m or 2h. The shutdown takes up to the grace
    /// period more [default: no limit]
    #[arg(long, value_name = "D", value_parser = parse_duration::parse)]
    timeout: Option<Duration>,
    /// Record everything that happens in the team, without secrets (docs/manage.md)
    #[arg(long)]
    record: bool,
    /// Open the members' panes beside this pane, while there is space. This pane keeps PERCENT of
    /// its width (30 without PERCENT)
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_KEPT_PERCENT, value_parser = clap::value_parser!(u8).range(10..=90))]
    here: Option<u8>,
}

pub(crate) fn run(context: &CommandContext, args: &RunArgs) -> Result<ExitCode, ErrorReport> {
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let file = match runner::read_run_file(&args.file, &context.root_path()?)? {
        Ok(file) => file,
        Err(errors) => return Ok(print_validation_errors(context, FileUse::Run, &args.file, &errors)),
    };
    check_team_option(context, &file.name)?;
    let caller_pane = args.here.map(CallerPane::find).transpose()?;
    print_member_warnings(context, &file);
    let name = file.name.clone();
    let context = CommandContext::new(GlobalArgs { team: Some(name.to_string()), ..context.args.clone() });
    let request = RunRequest {
        path: &args.file,
        file,
        if_team_exists: if args.resume { IfTeamExists::Resume } else { IfTeamExists::Fail },
        after_run: if args.keep_team { AfterRun::KeepTeam } else { AfterRun::DeleteTeam },
        deadline,
        caller_pane,
        recording: if args.record { Recording::On } else { Recording::Off },
    };
    let display = RunDisplay::new(&context);
    let result = runner::run_team(&context, request, &display);
    // The display leaves the alternate screen before the results are printed.
    drop(display);
    let report = result?;
    print_run_result::print_report(&context, &name, &report);
    let result = report.notice.as_ref().map(|text| notify_person(text, CommandOutput::Shown));
    if let Some(Err(error)) = result {
        output::print_partial_error(&context, &error);
    }
    report.cleanup?;
    Ok(ExitCode::from(report.exit_code))
}

/// If the user has typed `-t`, checks that it names the same team as the file. $TEAMD_TEAM is
/// ignored, because the user did not set it for this invocation.
fn check_team_option(context: &CommandContext, name: &TeamName) -> Result<(), ErrorReport> {
    let team = context.args.team.as_deref().filter(|team| env_var("TEAMD_TEAM").as_deref() != Some(*team));
    match team {
        Some(team) if team != name.as_str() => {
            let message = format!("cannot run the file as team {team}: it names its team {name}");
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("leave out -t, or change name in the file"))
        }
        _ => Ok(()),
    }
}

/// Prints each warning about the members' profiles and worktrees once.
fn print_member_warnings(context: &CommandContext, file: &RunFile) {
    let mut warnings: BTreeSet<String> = file.members.iter().flat_map(profile_warnings).collect();
    warnings.extend(file.members_in_worktrees().filter_map(|member| submodule_warning(&member.cwd)));
    if !context.args.quiet {
        warnings.iter().for_each(|warning| output::print_warning(&rewrite_commands(context, warning)));
    }
}
