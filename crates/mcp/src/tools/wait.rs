//! `Wait`: sleeps until something is so, for as long as programs let a tool run; meanwhile it tells of its progress.

use super::schema::{Property, optional_property, required_property};
use super::{ToolDefinition, ToolEffect};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::error::{ErrorKind, ErrorReport};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Seconds, where nobody says how long: less than programs give a tool.
const DEFAULT_SECONDS: u32 = 45;
/// Seconds at most.
const MAX_SECONDS: u32 = 600;

/// The tool.
pub(super) struct WaitTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitInput {
    /// message (default): an unread one for you; idle: members have ended their turns; exit: they are gone;
    /// tasks-done: every task is completed.
    #[serde(default)]
    #[schemars(extend("enum" = ["message", "idle", "exit", "tasks-done"]))]
    r#for: Option<String>,
    /// Of whom; without it anybody's message, or every teammate.
    #[serde(default)]
    names: Option<Vec<String>>,
    /// How long at most: 45 where it is left out, 600 at most. Your program may give a tool less.
    #[serde(default)]
    timeout_seconds: Option<u32>,
}

impl ToolDefinition for WaitTool {
    const NAME: &'static str = "Wait";
    const TITLE: &'static str = "Wait";
    const DESCRIPTION: &'static str = "Sleep until there is a message for you, until members are idle or gone, or until all \
        tasks are done; returns at once where it is so already. Where the time is over first, happened is false: call \
        it again, or end your turn if your program wakes you by itself.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    type Input = WaitInput;
    const OUTPUT: &'static [Property] = &[
        required_property("happened", "boolean"),
        required_property("for", "string"),
        optional_property("message", "string"),
    ];

    async fn call(seat: &Arc<ServerContext>, input: WaitInput) -> Result<Value, ErrorReport> {
        let what = input.r#for.unwrap_or_else(|| "message".to_owned());
        let timeout = format!("{}s", input.timeout_seconds.unwrap_or(DEFAULT_SECONDS).clamp(1, MAX_SECONDS));
        seat.require_team()?;
        let call = TeamctlCommand::new("wait")
            .flag("while-read")
            .option("for", Some(&what))
            .option("timeout", Some(&timeout));
        match call.args_after_dashes(input.names.unwrap_or_default()).run(seat).await {
            Ok(_) => Ok(json!({"happened": true, "for": what})),
            Err(ErrorReport { kind: ErrorKind::Timeout, message, .. }) => {
                Ok(json!({"happened": false, "for": what, "message": message}))
            }
            Err(fault) => Err(fault),
        }
    }
}
