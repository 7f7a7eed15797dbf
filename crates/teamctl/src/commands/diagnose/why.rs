//! `why`: why a member is not moving. Everything that can be seen of it is gathered first; what that means is a plain
//! function of it, so that it can be tested without a machine; then each cause is a sentence with its evidence and what
//! to type next. Nothing is changed, and nothing that hangs is waited for longer than some seconds.

mod cause;
mod evidence;
pub(super) mod explanation;
mod find_causes;
pub(super) mod member_history;
mod next_commands;
mod system_probe;
mod task_waits;

use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output::{self, sanitize};
use cause::Cause;
use client::event_log::EventLog;
use client::suggested_commands::SuggestedCommands;
use evidence::Evidence;
pub(super) use evidence::SystemSnapshot;
use protocol::did_you_mean::did_you_mean;
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, strip_team};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// So long a turn may write nothing before that is worth a word, unless somebody says otherwise.
const NO_OUTPUT_DEFAULT: Duration = Duration::from_secs(300);

/// Say why a member is not moving, with the evidence and what to type next
///
/// The strongest cause comes first: it waits for an answer, for a task of somebody else's, at a dialog; its process is
/// stopped, its turns fail, its inbox is locked; teamd or tmux does not answer. Where nothing keeps it, what it does.
/// Of one that has ended: how and when.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl why ann\n  teamctl why ann --json\n  teamctl why ann --no-output-after 30s"
)]
pub(crate) struct WhyArgs {
    /// The member; also NAME@TEAM
    name: String,
    /// How long a turn may write nothing before that is worth a word
    #[arg(long, value_name = "D", default_value = "5m", value_parser = duration::parse)]
    no_output_after: Duration,
}

pub(crate) fn run(here: &CommandContext, args: &WhyArgs) -> Result<ExitCode, ErrorReport> {
    let team = crate::commands::send::team_of_address(here, &args.name)?;
    if here.caller_name() != AgentName::new_unchecked(strip_team(&args.name, team.name())) {
        here.require_lead("say why another member is not moving")?;
    }
    let ground = SystemSnapshot::take(here, EventLog::read(&here.directories()?.state_dir))?;
    let evidence = evidence::gather(here, &ground, &team, &args.name, args.no_output_after)?;
    if !evidence.is_known() {
        return Err(unknown_member(&evidence));
    }
    let typed = command_rewriter::suggested_commands_for_team(here, team.name())?;
    let told: Vec<Diagnosis> = find_causes::find_causes(&evidence)
        .iter()
        .map(|cause| to_diagnosis(cause, &evidence, &typed))
        .collect();
    if here.args.json {
        let stuck = told.first().is_some_and(|first| first.stuck);
        output::print_result(
            here,
            &json!({"team": evidence.team, "name": evidence.name, "stuck": stuck, "causes": told}),
            "",
        );
    } else if !here.args.quiet {
        told.iter().for_each(Diagnosis::print);
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a member does not go on, for whoever follows something else to it; the strongest cause first.
pub(super) fn diagnose(
    here: &CommandContext,
    ground: &SystemSnapshot,
    team: &store::Team,
    name: &str,
) -> Result<Vec<Diagnosis>, ErrorReport> {
    let evidence = evidence::gather(here, ground, team, name, NO_OUTPUT_DEFAULT)?;
    let typed = command_rewriter::suggested_commands_for_team(here, team.name())?;
    Ok(find_causes::find_causes(&evidence)
        .iter()
        .map(|cause| to_diagnosis(cause, &evidence, &typed))
        .collect())
}

fn unknown_member(evidence: &Evidence) -> ErrorReport {
    let members = evidence.members.iter().map(|name| name.as_str());
    let near =
        did_you_mean(evidence.name.as_str(), members.chain(evidence.former.iter().map(String::as_str)));
    let message = format!(
        "cannot find {}: it is no member of {}, and never was as far as the event log tells",
        evidence.name, evidence.team
    );
    ErrorReport::new(ErrorKind::NotFound, message)
        .with_help(near.unwrap_or_else(|| "those there are: teamctl status".to_owned()))
}

/// A cause as it is printed; the keys are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    cause: &'static str,
    #[serde(skip)]
    stuck: bool,
    sentence: String,
    evidence: Vec<String>,
    next: Vec<String>,
}

fn to_diagnosis(cause: &Cause, evidence: &Evidence, typed: &SuggestedCommands) -> Diagnosis {
    Diagnosis {
        cause: cause.code(),
        stuck: cause.blocks_member(),
        sentence: single_line(&explanation::sentence(cause, evidence)),
        evidence: explanation::evidence(cause, evidence).iter().map(|line| single_line(line)).collect(),
        next: next_commands::next_commands(cause, evidence, typed),
    }
}

impl Diagnosis {
    pub(super) fn print(&self) {
        output::print_line(&sanitize(&self.sentence));
        self.evidence.iter().for_each(|line| output::print_line(&sanitize(&format!("    {line}"))));
        self.next.iter().for_each(|command| output::print_line(&sanitize(&format!("  > {command}"))));
    }
}

/// No text passes for a line of ours.
fn single_line(text: &str) -> String {
    text.replace(['\r', '\n', '\t'], " ")
}
