//! The tool `Wait`, which waits for a message, for members or for tasks. Its default timeout is
//! shorter than the time after which clients end a tool call. During the wait the server sends
//! progress notifications.

use super::input_and_output_schemas::{Property, optional_property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use crate::teamctl_command::TeamctlCommand;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The default timeout in seconds: less than clients give a tool.
const DEFAULT_SECONDS: u32 = 45;
/// The longest timeout in seconds.
const MAX_SECONDS: u32 = 600;

pub(super) struct WaitTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitInput {
    /// What to wait for. message (default): you have an unread message. idle: members have ended
    /// their turns. exit: members have exited. tasks-done: every task is completed.
    #[serde(default)]
    #[schemars(extend("enum" = ["message", "idle", "exit", "tasks-done"]))]
    r#for: Option<String>,
    /// The senders or members to wait for; by default any sender, or every teammate.
    #[serde(default)]
    names: Option<Vec<String>>,
    /// The timeout: 45 by default, 600 at most. Your program may end a tool earlier.
    #[serde(default)]
    timeout_seconds: Option<u32>,
}

impl ToolDefinition for WaitTool {
    const NAME: &'static str = "Wait";
    const TITLE: &'static str = "Wait";
    const DESCRIPTION: &'static str = "Wait until you have a message, until members are idle or have exited, or until all \
        tasks are done; returns at once if that is so already. If the time is over first, happened is false: call it \
        again, or end your turn if your program wakes you by itself.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = WaitInput;
    const OUTPUT: &'static [Property] = &[
        required_property("happened", "boolean"),
        required_property("for", "string"),
        optional_property("message", "string"),
    ];

    async fn call(context: &Arc<ServerContext>, input: WaitInput) -> Result<Value, ErrorReport> {
        let condition = input.r#for.unwrap_or_else(|| "message".to_owned());
        let timeout = format!("{}s", input.timeout_seconds.unwrap_or(DEFAULT_SECONDS).clamp(1, MAX_SECONDS));
        run_blocking(context, |context| context.caller().map(drop)).await?;
        let call = TeamctlCommand::new("wait")
            .flag("exit-with-reader")
            .option("for", Some(&condition))
            .option("timeout", Some(&timeout));
        match call.args_after_dashes(input.names.unwrap_or_default()).run(context).await {
            Ok(_) => Ok(json!({"happened": true, "for": condition})),
            Err(ErrorReport { kind: ErrorKind::Timeout, message, .. }) => {
                Ok(json!({"happened": false, "for": condition, "message": message}))
            }
            Err(error) => Err(error),
        }
    }
}
