//! `why`: why a member is not moving. Everything that can be seen of it is gathered first; what that means is a plain
//! function of it, so that it can be tested without a machine; then each cause is a sentence with its evidence and what
//! to type next. Nothing is changed, and nothing that hangs is waited for longer than some seconds.

mod cause;
pub(super) mod chronicle;
mod evidence;
mod judge;
mod machine;
mod next;
mod tasks;
pub(super) mod words;

use super::typed;
use crate::here::Here;
use crate::output::{self, clean};
use cause::Cause;
use chronicle::Log;
use evidence::Evidence;
pub(super) use evidence::Ground;
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, did_you_mean, strip_team};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use view::suggested_commands::SuggestedCommands;

/// So long a turn may write nothing before that is worth a word, unless somebody says otherwise.
const PATIENCE: Duration = Duration::from_secs(300);

/// Say why a member is not moving, with the evidence and what to type next
///
/// The strongest cause comes first: it waits for an answer, for a task of somebody else's, at a dialog; its process is
/// stopped, its turns fail, its inbox is locked; teamd or tmux does not answer. Where nothing keeps it, what it does.
/// Of one that has ended: how and when.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl why ann\n  teamctl why ann --json\n  teamctl why ann --silent 30s"
)]
pub(crate) struct Why {
    /// The member; also NAME@TEAM
    name: String,
    /// How long a turn may write nothing before that is worth a word
    #[arg(long, value_name = "D", default_value = "5m", value_parser = duration::parse)]
    silent: Duration,
}

pub(crate) fn run(here: &Here, args: &Why) -> Result<ExitCode, ErrorReport> {
    let team = super::send::team_of(here, &args.name)?;
    if here.me() != AgentName::new_unchecked(strip_team(&args.name, team.name())) {
        here.lead_only("say why another member is not moving")?;
    }
    let ground = Ground::see(here, Log::read(&here.place()?.state_dir))?;
    let evidence = evidence::gather(here, &ground, &team, &args.name, args.silent)?;
    if !evidence.is_known() {
        return Err(nobody(&evidence));
    }
    let typed = typed::of(here, team.name())?;
    let told: Vec<Told> =
        judge::causes(&evidence).iter().map(|cause| told(cause, &evidence, &typed)).collect();
    if here.global.json {
        let stuck = told.first().is_some_and(|first| first.stuck);
        output::done(
            here,
            &json!({"team": evidence.team, "name": evidence.name, "stuck": stuck, "causes": told}),
            "",
        );
    } else if !here.global.quiet {
        told.iter().for_each(Told::print);
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a member does not go on, for whoever follows something else to it; the strongest cause first.
pub(super) fn causes_of(
    here: &Here,
    ground: &Ground,
    team: &store::Team,
    name: &str,
) -> Result<Vec<Told>, ErrorReport> {
    let evidence = evidence::gather(here, ground, team, name, PATIENCE)?;
    let typed = typed::of(here, team.name())?;
    Ok(judge::causes(&evidence).iter().map(|cause| told(cause, &evidence, &typed)).collect())
}

fn nobody(evidence: &Evidence) -> ErrorReport {
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
pub(super) struct Told {
    cause: &'static str,
    #[serde(skip)]
    stuck: bool,
    sentence: String,
    evidence: Vec<String>,
    next: Vec<String>,
}

fn told(cause: &Cause, evidence: &Evidence, typed: &SuggestedCommands) -> Told {
    Told {
        cause: cause.word(),
        stuck: cause.keeps(),
        sentence: flat(&words::sentence(cause, evidence)),
        evidence: words::evidence(cause, evidence).iter().map(|line| flat(line)).collect(),
        next: next::commands(cause, evidence, typed),
    }
}

impl Told {
    pub(super) fn print(&self) {
        output::line(&clean(&self.sentence));
        self.evidence.iter().for_each(|line| output::line(&clean(&format!("    {line}"))));
        self.next.iter().for_each(|command| output::line(&clean(&format!("  > {command}"))));
    }
}

/// No text passes for a line of ours.
fn flat(text: &str) -> String {
    text.replace(['\r', '\n', '\t'], " ")
}
