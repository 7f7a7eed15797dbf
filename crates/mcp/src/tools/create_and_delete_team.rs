//! The tools `TeamCreate` and `TeamDelete`, for a lead. After `TeamCreate` the server's other tools
//! work on the new team.

use super::input_and_output_schemas::{NoInput, Property, optional_property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct TeamCreateTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamCreateInput {
    /// The team's name: a-z, 0-9 and -. Other characters become dashes. If the name is taken, the team is named NAME-2, NAME-3 and
    /// so on.
    team_name: String,
    /// What the team is for.
    #[serde(default)]
    description: Option<String>,
    /// The lead's agent type.
    #[serde(default)]
    agent_type: Option<String>,
}

impl ToolDefinition for TeamCreateTool {
    const NAME: &'static str = "TeamCreate";
    const TITLE: &'static str = "Create a team";
    const DESCRIPTION: &'static str = "Create a team with you as its lead. Then create its tasks with TaskCreate and start \
        its members with SpawnTeammate. You can lead one team at a time. At the end ask all members to shut down, and \
        delete the team with TeamDelete.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
    type Input = TeamCreateInput;
    const OUTPUT: &'static [Property] = &[
        required_property("team_name", "string"),
        required_property("team_file_path", "string"),
        required_property("lead_agent_id", "string"),
    ];

    async fn call(context: &Arc<ServerContext>, input: TeamCreateInput) -> Result<Value, ErrorReport> {
        run_blocking(context, check_leads_no_team).await?;
        let call =
            TeamctlCommand::new("create").flag("unique").option_from_stdin("description", input.description);
        // As in Claude Code's tool of this name, a title becomes a name.
        let name = TeamName::sanitize(&input.team_name)
            .map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
        let call =
            call.option("agent-type", input.agent_type.as_deref()).args_after_dashes([name.to_string()]);
        let created = call.run(context).await?;
        let name = created["team_name"].as_str().and_then(|name| TeamName::parse(name).ok());
        context.set_team(name);
        Ok(created)
    }
}

/// Fails if the lead has a team: a second team would make the first one a team without a lead.
fn check_leads_no_team(context: &ServerContext) -> Result<(), ErrorReport> {
    let Some(team) = context.team() else { return Ok(()) };
    if !context.root()?.teams()?.contains(&team) {
        return Ok(());
    }
    let message = format!("cannot create a team: you lead {team} already");
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help("go on with that one, or end it: ask its members to shut down, then TeamDelete"))
}

pub(super) struct TeamDeleteTool;

impl ToolDefinition for TeamDeleteTool {
    const NAME: &'static str = "TeamDelete";
    const TITLE: &'static str = "Delete the team";
    const DESCRIPTION: &'static str = "Delete your team: its configuration, messages and tasks. Not possible while members \
        run: first ask them to shut down, with SendMessage and type shutdown_request, and wait until they have exited.";
    const EFFECT: ToolEffect = ToolEffect::Destructive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::LeadOrPerson;
    type Input = NoInput;
    const OUTPUT: &'static [Property] = &[
        required_property("success", "boolean"),
        required_property("message", "string"),
        optional_property("team_name", "string"),
    ];

    async fn call(context: &Arc<ServerContext>, _: NoInput) -> Result<Value, ErrorReport> {
        let Some(team) = context.team() else {
            return Ok(json!({"success": true, "message": "No team name found, nothing to clean up"}));
        };
        match TeamctlCommand::new("delete").args_after_dashes([team.to_string()]).run(context).await {
            Err(ErrorReport { kind: ErrorKind::Refused, message, help }) => {
                let next = help.map_or_else(String::new, |help| format!(".\nNext: {help}"));
                Ok(json!({"success": false, "message": format!("{message}{next}"), "team_name": team}))
            }
            result => {
                let deleted = result?;
                context.set_team(None);
                Ok(deleted)
            }
        }
    }
}
