//! `teamctl instructions`: prints the team instructions for an agent.
//!
//! [`protocol::agent_instructions`] makes the text. This command collects the facts for the text,
//! such as the names of the members. An agent's program may start before its team exists, so a
//! missing team is no error: the text then leaves out what is unknown.

use crate::command_context::CommandContext;
use crate::output;
use protocol::agent_instructions::{InstructionContext, Interactivity};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::MemberName;
use serde_json::json;
use std::process::ExitCode;

/// Print the instructions for an agent of the team
///
/// Example: teamctl instructions
///
/// The text names the agent, the lead, the members and the rules of the team. It says how to send
/// messages and work on tasks. An agent gets its own text. Anyone else gets the text of the lead.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl instructions --for lead --non-interactive\n  codex exec \"$(teamctl instructions --non-interactive) Count the lines of src/\""
)]
pub(crate) struct InstructionsArgs {
    /// Agent that the text is for. If the caller is not a teammate, the text for a teammate has the
    /// name `a-teammate` [default: the caller]
    #[arg(long = "for", value_enum, value_name = "AUDIENCE")]
    audience: Option<Audience>,
    /// For a lead without a person between its turns: it must end its team before it answers
    #[arg(long)]
    non_interactive: bool,
}

/// The values of `--for`. Doc comments on them would become part of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Audience {
    Lead,
    Teammate,
}

pub(crate) fn run(context: &CommandContext, args: &InstructionsArgs) -> Result<ExitCode, ErrorReport> {
    let name = audience_name(context.caller_name(), args.audience);
    let path = context.root_path()?;
    // Opening a root would create missing directories, and this command only reads.
    let root = path.join("teams").is_dir().then(|| context.root()).transpose()?;
    let team = root.as_ref().and_then(|root| context.team_name(root).ok());
    let config =
        root.as_ref().zip(team.as_ref()).and_then(|(root, team)| root.team(team).ok()?.config().ok());
    let text = protocol::agent_instructions::render(&InstructionContext {
        name: &name,
        team: team.as_ref(),
        config: config.as_ref(),
        root: &path.to_string_lossy(),
        interactivity: if args.non_interactive {
            Interactivity::NonInteractive
        } else {
            Interactivity::Unknown
        },
    });
    output::print_result(context, &json!({"instructions": text}), text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// The name of the agent that the text is for.
fn audience_name(caller: MemberName, audience: Option<Audience>) -> MemberName {
    match audience {
        Some(Audience::Lead) => MemberName::lead(),
        Some(Audience::Teammate) if caller.is_lead() => MemberName::new_unchecked("a-teammate"),
        _ => caller,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audience_is_the_caller_unless_the_option_overrides_it() {
        let (ann, lead) = (MemberName::new_unchecked("ann"), MemberName::lead());
        assert_eq!(audience_name(ann.clone(), None), ann);
        assert_eq!(audience_name(ann.clone(), Some(Audience::Teammate)), ann);
        assert_eq!(audience_name(ann, Some(Audience::Lead)), lead);
        assert!(!audience_name(lead, Some(Audience::Teammate)).is_lead());
    }
}
