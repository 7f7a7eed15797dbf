//! The handlers that the MCP library calls: server information, the list of tools, and tool calls.
//! In one form of MCP, a client begins with a handshake. In the other form, each request stands
//! alone. The library serves both forms. Because a request may stand alone, the server keeps no
//! state of its client. The server sends no requests to clients, because most clients cannot answer
//! them.

use crate::server_context::ServerContext;
use crate::tools::{self, ToolEntry};
use client::refuse_foreign_team_root_and_spawn::check_own_spawn;
use protocol::agent_instructions::{InstructionContext, Interactivity};
use protocol::error_kind_and_report::ErrorReport;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How often a long call sends a progress notification: clients end calls that are silent for long.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The MCP server of one agent.
pub(crate) struct McpServer {
    context: Arc<ServerContext>,
    tools: Vec<ToolEntry>,
}

impl McpServer {
    /// A server for the agent of `context`, with all tools.
    pub(crate) fn new(context: ServerContext) -> McpServer {
        McpServer { context: Arc::new(context), tools: tools::all_tools() }
    }

    fn find_tool(&self, name: &str) -> Option<&ToolEntry> {
        self.tools.iter().find(|entry| entry.tool.name == name)
    }

    /// Checks that the agent may call the tool, and that this server does not belong to an earlier
    /// spawn (start) of the agent.
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the agent may not call the tool, or if a newer spawn of the agent runs.
    async fn check_caller(&self, entry: &ToolEntry) -> Result<(), ErrorReport> {
        entry.allowed_callers.check(&format!("call {}", entry.tool.name), self.context.member())?;
        tools::run_blocking(&self.context, |context| check_own_spawn(&context.arguments.state_dir)).await
    }

    /// The instructions for the agent, with what is known of its team when the client connects.
    fn instructions(&self) -> String {
        let team = self.context.team();
        let config = self.context.caller().ok().and_then(|caller| caller.team().config().ok());
        protocol::agent_instructions::render(&InstructionContext {
            name: self.context.member(),
            team: team.as_ref(),
            config: config.as_ref(),
            root: &self.context.arguments.root.to_string_lossy(),
            interactivity: Interactivity::Unknown,
        })
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("teamd", env!("CARGO_PKG_VERSION"));
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(|entry| entry.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find_tool(name).map(|entry| entry.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.find_tool(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        if let Err(error) = self.check_caller(entry).await {
            return Ok(to_tool_result(Err(error)).into());
        }
        let call = (entry.run)(&self.context, request.arguments.unwrap_or_default());
        tokio::select! {
            result = call => Ok(to_tool_result(result).into()),
            () = report_progress(&context) => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }
}

/// Sends progress notifications, if the client wants them, until the client cancels the call.
async fn report_progress(context: &RequestContext<RoleServer>) {
    let mut seconds = 0.0;
    loop {
        tokio::select! {
            () = context.ct.cancelled() => return,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
        }
        seconds += PROGRESS_INTERVAL.as_secs_f64();
        if let Some(token) = context.meta.get_progress_token() {
            let mut progress = ProgressNotificationParam::new(token, seconds);
            progress.message = Some("still waiting".to_owned());
            // The call ends by itself if the client has exited.
            context.peer.notify_progress(progress).await.ok();
        }
    }
}

fn to_tool_result(result: Result<Value, ErrorReport>) -> CallToolResult {
    match result {
        Ok(value) => CallToolResult::structured(value),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error_text(&error))]),
    }
}

/// The text of an error result: what failed, why, and what to do next.
fn error_text(error: &ErrorReport) -> String {
    match &error.help {
        Some(help) => format!("{}.\nNext: {help}", error.message),
        None => format!("{}.", error.message),
    }
}
