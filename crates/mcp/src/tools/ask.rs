//! `Ask`: gets one answer from an agent that is on no team.

use super::input_and_output_schemas::{Property, optional_property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::ErrorReport;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

pub(super) struct AskTool;

/// How long the agent may take without `timeout_seconds`. Clients end a call that takes much longer.
const DEFAULT_TIMEOUT_SECONDS: u32 = 600;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskInput {
    /// The question. Say in it all that the agent must know, because the agent has not seen your
    /// conversation.
    prompt: String,
    /// The agent's program: claude, codex, gemini… By default the configured default_profile, else
    /// claude.
    #[serde(default)]
    profile: Option<String>,
    /// The agent type: general-purpose (default), Explore or Plan (read-only), or one that is defined
    /// in this project.
    #[serde(default)]
    subagent_type: Option<String>,
    /// The agent's model.
    #[serde(default)]
    model: Option<String>,
    /// The agent's permission mode: default, acceptEdits, plan (read-only), bypassPermissions, dontAsk,
    /// auto.
    #[serde(default)]
    mode: Option<String>,
    /// The directory in which the agent works; yours by default.
    #[serde(default)]
    cwd: Option<String>,
    /// Work in a new git worktree and on a new branch, which are kept if they have changes.
    #[serde(default)]
    worktree: bool,
    /// The id of an earlier answer. The question continues the conversation of that answer, with
    /// the same program and options.
    #[serde(default)]
    resume: Option<String>,
    /// How long the agent may take; 600 by default.
    #[serde(default)]
    timeout_seconds: Option<u32>,
    /// Return at once, with an id instead of the answer. `teamctl wait ID` prints the answer, and
    /// `teamctl ask --end ID` ends the agent.
    #[serde(default)]
    run_in_background: bool,
}

impl ToolDefinition for AskTool {
    const NAME: &'static str = "Ask";
    const TITLE: &'static str = "Ask an agent";
    const DESCRIPTION: &'static str = "Ask an agent outside the team one question; for the lead. The agent works on its own \
        and ends with its answer, which is the result. For work that takes messages or several tasks, start a teammate.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
    type Input = AskInput;
    const OUTPUT: &'static [Property] = &[
        required_property("id", "string"),
        optional_property("answer", "string"),
        optional_property("outcome", "string"),
        optional_property("worktree", "object"),
    ];

    async fn call(context: &Arc<ServerContext>, input: AskInput) -> Result<Value, ErrorReport> {
        let mut result = ask_command(input).run(context).await?;
        if let Value::Object(fields) = &mut result {
            fields.retain(|_, value| !value.is_null());
        }
        Ok(result)
    }
}

/// The question is on standard input, because it may be longer than an argument can be.
fn ask_command(input: AskInput) -> TeamctlCommand {
    let timeout = format!("{}s", input.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS));
    let command = TeamctlCommand::new("ask");
    let command = if input.run_in_background { command.flag("background") } else { command };
    let command = if input.worktree { command.flag("worktree") } else { command };
    command
        // The ask ends with this server, also if the server is killed.
        .option("starter", Some(&std::process::id().to_string()))
        .option("timeout", Some(&timeout))
        .option("profile", input.profile.as_deref())
        .option("agent-type", input.subagent_type.as_deref())
        .option("model", input.model.as_deref())
        .option("mode", input.mode.as_deref())
        .option("cwd", input.cwd.as_deref())
        .option("resume", input.resume.as_deref())
        .arg("-")
        .with_stdin(input.prompt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn question_is_on_standard_input_and_values_are_no_flags() {
        let input = json!({"prompt": "--all", "profile": "--json", "timeout_seconds": 5});
        let command = format!("{:?}", ask_command(serde_json::from_value(input).unwrap()));
        assert!(command.contains(r#""--timeout=5s", "--profile=--json", "-"], stdin: "--all""#), "{command}");
    }
}
