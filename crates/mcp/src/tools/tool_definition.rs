//! What each tool implements, and what it changes.

use super::input_and_output_schemas::Property;
use crate::server_context::ServerContext;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// What a tool changes, in the protocol's terms. No tool reaches beyond the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolEffect {
    /// The tool changes nothing.
    ReadOnly,
    /// The tool only adds something, such as a message.
    Additive,
    /// The tool changes something. The same call twice has the same effect as once.
    Idempotent,
    /// The tool removes something.
    Destructive,
}

/// One tool: its description for clients and its implementation.
pub(super) trait ToolDefinition {
    /// The name by which clients call the tool.
    const NAME: &'static str;
    /// The title, for people.
    const TITLE: &'static str;
    /// The description, for models.
    const DESCRIPTION: &'static str;
    /// What the tool changes, for clients that decide whether to ask a person.
    const EFFECT: ToolEffect;
    /// Who may call the tool, in the caller's own team. The lead and a person may call every tool.
    const ALLOWED_CALLERS: AllowedCallers<'static>;
    /// The arguments.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The properties of the result.
    const OUTPUT: &'static [Property];

    /// Runs the tool for the agent of `context`.
    fn call(
        context: &Arc<ServerContext>,
        input: Self::Input,
    ) -> impl Future<Output = Result<Value, ErrorReport>> + Send;
}

/// The annotations of a tool, which tell clients what it changes.
pub(super) fn annotations(title: &str, effect: ToolEffect) -> ToolAnnotations {
    let is_read_only = effect == ToolEffect::ReadOnly;
    let is_idempotent = matches!(effect, ToolEffect::ReadOnly | ToolEffect::Idempotent);
    ToolAnnotations::from_raw(
        Some(title.to_owned()),
        Some(is_read_only),
        Some(effect == ToolEffect::Destructive),
        Some(is_idempotent),
        Some(false),
    )
}

/// Runs blocking file operations on another thread, so that the server stays responsive.
pub(crate) async fn run_blocking<T: Send + 'static>(
    context: &Arc<ServerContext>,
    operation: impl FnOnce(&ServerContext) -> Result<T, ErrorReport> + Send + 'static,
) -> Result<T, ErrorReport> {
    let context = Arc::clone(context);
    let joined = tokio::task::spawn_blocking(move || operation(&context)).await;
    joined
        .unwrap_or_else(|_| Err(ErrorReport::new(ErrorKind::Internal, "cannot finish the call: it panicked")))
}
