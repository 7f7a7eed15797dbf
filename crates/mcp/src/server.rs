//! What the library asks of us: who we are, which tools there are, and the call of one. Serves both eras of the
//! protocol: the handshake, and the stateless one, in which every request stands for itself. So nothing is kept of a
//! client; and nothing is asked of one, since most can't answer.

use crate::server_context::ServerContext;
use crate::tools::{self, ToolEntry};
use protocol::error::ErrorReport;
use protocol::instructions::{InstructionContext, Interactivity};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How often a call that takes its time says so: programs give up on a silent one.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The server.
pub(crate) struct McpServer {
    context: Arc<ServerContext>,
    tools: Vec<ToolEntry>,
}

impl McpServer {
    /// At that seat.
    pub(crate) fn new(seat: ServerContext) -> McpServer {
        McpServer { context: Arc::new(seat), tools: tools::all_tools() }
    }

    fn find_tool(&self, name: &str) -> Option<&ToolEntry> {
        self.tools.iter().find(|entry| entry.tool.name == name)
    }

    /// What an agent is told about its team, as far as it is known when the program connects.
    fn instructions(&self) -> String {
        let team = self.context.team();
        let config = self.context.caller().ok().and_then(|caller| caller.team().config().ok());
        protocol::instructions::render(&InstructionContext {
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
        let us = Implementation::new("teamd", env!("CARGO_PKG_VERSION"));
        let able = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(able).with_server_info(us).with_instructions(self.instructions())
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
        let call = (entry.run)(&self.context, request.arguments.unwrap_or_default());
        tokio::select! {
            result = call => Ok(to_tool_result(result).into()),
            () = report_progress(&context) => Err(ErrorData::internal_error("the call was given up", None)),
        }
    }
}

/// Tells of progress, where the client wants that, until the client gives the call up.
async fn report_progress(context: &RequestContext<RoleServer>) {
    let mut told = 0.0;
    loop {
        tokio::select! {
            () = context.ct.cancelled() => return,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
        }
        told += PROGRESS_INTERVAL.as_secs_f64();
        if let Some(token) = context.meta.get_progress_token() {
            let mut progress = ProgressNotificationParam::new(token, told);
            progress.message = Some("still waiting".to_owned());
            // A client that is gone ends the call by itself.
            context.peer.notify_progress(progress).await.ok();
        }
    }
}

fn to_tool_result(result: Result<Value, ErrorReport>) -> CallToolResult {
    match result {
        Ok(value) => CallToolResult::structured(value),
        Err(fault) => CallToolResult::error(vec![ContentBlock::text(error_text(&fault))]),
    }
}

/// What could not be done, why, and what to do next.
fn error_text(fault: &ErrorReport) -> String {
    match &fault.help {
        Some(hint) => format!("{}.\nNext: {hint}.", fault.message),
        None => format!("{}.", fault.message),
    }
}
