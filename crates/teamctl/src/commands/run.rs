//! `teamctl run FILE`: runs a team from a file until its tasks are done. The crate `runner` does the work; this command
//! reads the arguments and prints.

mod display;
mod progress_table;
mod result_table;

use super::run_file_errors::{FileUse, print_validation_errors};
use crate::command_rewriter::rewrite_commands;
use crate::context::{CommandContext, GlobalArgs};
use crate::output;
use display::RunDisplay;
use profile::spawn_request::profile_warnings;
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use runner::{AfterRun, IfTeamExists, RunFile, RunRequest};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::env_var;

/// Run a whole team from a file, to its end
///
/// The file is checked as a whole before anything is started; every fault is told, with its line and column (65).
/// Uses the running teamd or starts one, which stays: end it with teamctl down. Exit code 0: every task is
/// completed. 1: some are not, or it was stopped by Ctrl-C: once asks the team to stop, twice ends it; or the team has
/// used up its budget, and stays. 73: there is a team of that name. 75: the work took longer than --timeout.
/// docs/run.md lists the keys of the file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl run survey.toml\n  teamctl run survey.toml --timeout 1h --json\n  teamctl run survey.toml --keep-team\n  teamctl run survey.toml --resume\n\nA whole file:\n  name = \"survey\"\n  [[member]]\n  name = \"ann\"\n  profile = \"worker\"\n  [[task]]\n  key = \"count\"\n  subject = \"count the lines\"\n  command = \"wc -l *.md\""
)]
pub(crate) struct RunArgs {
    /// The file: TOML, with the team's members and tasks
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave the team's files when its members have ended
    #[arg(long)]
    keep_team: bool,
    /// Go on with a run of this file that was killed; where there is none, begin
    #[arg(long)]
    resume: bool,
    /// The time for the work, as in 500ms, 5s, 10m or 2h; to end the team takes up to the grace more [default: for
    /// ever]
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

pub(crate) fn run(context: &CommandContext, args: &RunArgs) -> Result<ExitCode, ErrorReport> {
    context.require_lead("run a team")?;
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let file = match runner::read_run_file(&args.file, &context.root_path()?)? {
        Ok(file) => file,
        Err(errors) => return Ok(print_validation_errors(context, FileUse::Run, &args.file, &errors)),
    };
    check_team_option(context, &file.name)?;
    print_profile_warnings(context, &file);
    let name = file.name.clone();
    let context = CommandContext::new(GlobalArgs { team: Some(name.to_string()), ..context.args.clone() });
    let request = RunRequest {
        path: &args.file,
        file,
        if_team_exists: if args.resume { IfTeamExists::Resume } else { IfTeamExists::Fail },
        after_run: if args.keep_team { AfterRun::KeepTeam } else { AfterRun::DeleteTeam },
        deadline,
    };
    let display = RunDisplay::new(&context);
    let result = runner::run_team(&context, request, &display);
    // The display leaves the terminal before anything is printed that is to stay there.
    drop(display);
    let report = result?;
    result_table::print_report(&context, &name, &report);
    report.cleanup?;
    Ok(ExitCode::from(report.exit_code))
}

/// `-t` must name the file's team. $TEAMD_TEAM of the shell is ignored, because the user did not set it for this call.
fn check_team_option(context: &CommandContext, name: &TeamName) -> Result<(), ErrorReport> {
    let given = context.args.team.as_deref().filter(|team| env_var("TEAMD_TEAM").as_deref() != Some(*team));
    match given {
        Some(team) if team != name.as_str() => {
            let message = format!("cannot run the file as team {team}: it names its team {name}");
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("leave out -t, or change name in the file"))
        }
        _ => Ok(()),
    }
}

/// Warns once for each profile that was never tried with its program.
fn print_profile_warnings(context: &CommandContext, file: &RunFile) {
    let warnings: BTreeSet<String> = file.members.iter().flat_map(profile_warnings).collect();
    if !context.args.quiet {
        warnings.iter().for_each(|warning| output::print_warning(&rewrite_commands(context, warning)));
    }
}
