//! `TeamCreate` and `TeamDelete`: a lead's team. The team that is made here is this server's from then on.

use super::schema::{Property, optional_property, required_property};
use super::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use store::require_lead;

/// The tool.
pub(super) struct TeamCreateTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamCreateInput {
    /// The team's name: a-z, 0-9 and -. Where it is taken, the team gets -2, -3 behind it.
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
    const TITLE: &'static str = "Make a team";
    const DESCRIPTION: &'static str = "Make a team with you as its lead. Then make its tasks with TaskCreate and start its \
        members with SpawnTeammate. One team at a time: a lead that has one is refused. At the end ask everybody to \
        shut down, and remove the team with TeamDelete.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    type Input = TeamCreateInput;
    const OUTPUT: &'static [Property] = &[
        required_property("team_name", "string"),
        required_property("team_file_path", "string"),
        required_property("lead_agent_id", "string"),
    ];

    async fn call(seat: &Arc<ServerContext>, input: TeamCreateInput) -> Result<Value, ErrorReport> {
        require_lead(seat.member(), "create a team")?;
        run_blocking(seat, check_leads_no_team).await?;
        let call =
            TeamctlCommand::new("create").flag("unique").option_from_stdin("description", input.description);
        let call =
            call.option("agent-type", input.agent_type.as_deref()).args_after_dashes([input.team_name]);
        let made = call.run(seat).await?;
        let name = made["team_name"].as_str().and_then(|name| TeamName::parse(name).ok());
        seat.set_team(name);
        Ok(made)
    }
}

/// One team each: a second would be led by nobody.
fn check_leads_no_team(seat: &ServerContext) -> Result<(), ErrorReport> {
    let Some(team) = seat.team() else { return Ok(()) };
    if !seat.root()?.teams()?.contains(&team) {
        return Ok(());
    }
    let message = format!("cannot create a team: you lead {team} already");
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help("go on with that one, or end it: ask its members to shut down, then TeamDelete"))
}

/// The tool.
pub(super) struct TeamDeleteTool;

/// It takes none.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoInput {}

impl ToolDefinition for TeamDeleteTool {
    const NAME: &'static str = "TeamDelete";
    const TITLE: &'static str = "Remove the team";
    const DESCRIPTION: &'static str = "Remove your team: its configuration, messages and tasks. Refused while members live: \
        ask them to shut down first, with SendMessage and type shutdown_request, and wait until they are gone.";
    const EFFECT: ToolEffect = ToolEffect::Destructive;
    type Input = NoInput;
    const OUTPUT: &'static [Property] = &[
        required_property("success", "boolean"),
        required_property("message", "string"),
        optional_property("team_name", "string"),
    ];

    async fn call(seat: &Arc<ServerContext>, _: NoInput) -> Result<Value, ErrorReport> {
        require_lead(seat.member(), "delete a team")?;
        let Some(team) = seat.team() else {
            return Ok(json!({"success": true, "message": "No team name found, nothing to clean up"}));
        };
        match TeamctlCommand::new("delete").args_after_dashes([team.to_string()]).run(seat).await {
            Err(ErrorReport { kind: ErrorKind::Refused, message, help: hint }) => {
                let next = hint.map_or_else(String::new, |hint| format!(".\nNext: {hint}"));
                Ok(json!({"success": false, "message": format!("{message}{next}"), "team_name": team}))
            }
            done => {
                let done = done?;
                seat.set_team(None);
                Ok(done)
            }
        }
    }
}
