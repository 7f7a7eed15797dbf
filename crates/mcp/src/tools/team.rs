//! `TeamCreate` and `TeamDelete`: a lead's team. The team that is made here is this server's from then on.

use super::schema::{Property, always, maybe};
use super::{Described, Effect, at_files};
use crate::program::Call;
use crate::seat::Seat;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use store::require_lead;

/// The tool.
pub(super) struct TeamCreate;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    /// The team's name: a-z, 0-9 and -. Where it is taken, the team gets -2, -3 behind it.
    team_name: String,
    /// What the team is for.
    #[serde(default)]
    description: Option<String>,
    /// The lead's agent type.
    #[serde(default)]
    agent_type: Option<String>,
}

impl Described for TeamCreate {
    const NAME: &'static str = "TeamCreate";
    const TITLE: &'static str = "Make a team";
    const TEXT: &'static str = "Make a team with you as its lead. Then make its tasks with TaskCreate and start its \
        members with SpawnTeammate. One team at a time: a lead that has one is refused. At the end ask everybody to \
        shut down, and remove the team with TeamDelete.";
    const EFFECT: Effect = Effect::Adds;
    type Input = New;
    const OUTPUT: &'static [Property] = &[
        always("team_name", "string"),
        always("team_file_path", "string"),
        always("lead_agent_id", "string"),
    ];

    async fn call(seat: &Arc<Seat>, input: New) -> Result<Value, ErrorReport> {
        require_lead(seat.me(), "create a team")?;
        at_files(seat, refuse_second).await?;
        let call = Call::of("create").flag("unique").text("description", input.description);
        let call = call.option("agent-type", input.agent_type.as_deref()).rest([input.team_name]);
        let made = call.run(seat).await?;
        let name = made["team_name"].as_str().and_then(|name| TeamName::parse(name).ok());
        seat.settle(name);
        Ok(made)
    }
}

/// One team each: a second would be led by nobody.
fn refuse_second(seat: &Seat) -> Result<(), ErrorReport> {
    let Some(team) = seat.team() else { return Ok(()) };
    if !seat.root()?.teams()?.contains(&team) {
        return Ok(());
    }
    let message = format!("cannot create a team: you lead {team} already");
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help("go on with that one, or end it: ask its members to shut down, then TeamDelete"))
}

/// The tool.
pub(super) struct TeamDelete;

/// It takes none.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl Described for TeamDelete {
    const NAME: &'static str = "TeamDelete";
    const TITLE: &'static str = "Remove the team";
    const TEXT: &'static str = "Remove your team: its configuration, messages and tasks. Refused while members live: \
        ask them to shut down first, with SendMessage and type shutdown_request, and wait until they are gone.";
    const EFFECT: Effect = Effect::Removes;
    type Input = Nothing;
    const OUTPUT: &'static [Property] =
        &[always("success", "boolean"), always("message", "string"), maybe("team_name", "string")];

    async fn call(seat: &Arc<Seat>, _: Nothing) -> Result<Value, ErrorReport> {
        require_lead(seat.me(), "delete a team")?;
        let Some(team) = seat.team() else {
            return Ok(json!({"success": true, "message": "No team name found, nothing to clean up"}));
        };
        match Call::of("delete").rest([team.to_string()]).run(seat).await {
            Err(ErrorReport { kind: ErrorKind::Refused, message, help: hint }) => {
                let next = hint.map_or_else(String::new, |hint| format!(".\nNext: {hint}"));
                Ok(json!({"success": false, "message": format!("{message}{next}"), "team_name": team}))
            }
            done => {
                let done = done?;
                seat.settle(None);
                Ok(done)
            }
        }
    }
}
