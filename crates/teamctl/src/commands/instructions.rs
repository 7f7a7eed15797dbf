//! `prompt`: the text that tells an agent about its team. What it says is `protocol::prompt`; here are the facts.
//!
//! It is for a program's instructions, so it never fails for want of a team: what can't be found is left out.

use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use protocol::instructions::{InstructionContext, Interactivity};
use protocol::name::AgentName;
use serde_json::json;
use std::process::ExitCode;

/// Print the text that tells an agent about its team
///
/// Its name, the lead, the members, how to talk and to work on tasks, and the manners. For the agent whose
/// environment it is called in; elsewhere for a lead.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl instructions\n  teamctl instructions --for lead --non-interactive\n  codex exec \"$(teamctl instructions --non-interactive) Count the lines of src/\""
)]
pub(crate) struct InstructionsArgs {
    /// For whom [default: for whoever calls]
    #[arg(long = "for", value_enum, value_name = "WHOM")]
    whom: Option<Audience>,
    /// For a lead that nobody can talk to between its turns: its team must be gone before it answers
    #[arg(long)]
    non_interactive: bool,
}

/// See `--for`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Audience {
    /// Whoever leads the team
    Lead,
    /// A teammate; without $TEAMD_MEMBER an unnamed one
    Teammate,
}

pub(crate) fn run(here: &CommandContext, args: &InstructionsArgs) -> Result<ExitCode, ErrorReport> {
    let me = audience_name(here.caller_name(), args.whom);
    let path = here.root_path()?;
    // To open a root makes what it lacks, and this only looks.
    let root = path.join("teams").is_dir().then(|| here.root()).transpose()?;
    let team = root.as_ref().and_then(|root| here.team_name(root).ok());
    let config =
        root.as_ref().zip(team.as_ref()).and_then(|(root, team)| root.team(team).ok()?.config().ok());
    let text = protocol::instructions::render(&InstructionContext {
        name: &me,
        team: team.as_ref(),
        config: config.as_ref(),
        root: &path.to_string_lossy(),
        interactivity: if args.non_interactive {
            Interactivity::NonInteractive
        } else {
            Interactivity::Unknown
        },
    });
    output::print_result(here, &json!({"instructions": text}), text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn audience_name(caller: AgentName, whom: Option<Audience>) -> AgentName {
    match whom {
        Some(Audience::Lead) => AgentName::lead(),
        Some(Audience::Teammate) if caller.is_lead() => AgentName::new_unchecked("a-teammate"),
        _ => caller,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_for_the_caller_unless_said_otherwise() {
        let (ann, lead) = (AgentName::new_unchecked("ann"), AgentName::lead());
        assert_eq!(audience_name(ann.clone(), None), ann);
        assert_eq!(audience_name(ann.clone(), Some(Audience::Teammate)), ann);
        assert_eq!(audience_name(ann, Some(Audience::Lead)), lead);
        assert!(!audience_name(lead, Some(Audience::Teammate)).is_lead());
    }
}
