//! What the library asks of us: who we are, which tools there are, and the call of one. Serves both eras of the
//! protocol: the handshake, and the stateless one, in which every request stands for itself. So nothing is kept of a
//! client; and nothing is asked of one, since most can't answer.

use crate::seat::Seat;
use crate::tools::{self, Entry};
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
const PROGRESS: Duration = Duration::from_secs(5);

/// The server.
pub(crate) struct Server {
    seat: Arc<Seat>,
    tools: Vec<Entry>,
}

impl Server {
    /// At that seat.
    pub(crate) fn new(seat: Seat) -> Server {
        Server { seat: Arc::new(seat), tools: tools::all() }
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools.iter().find(|entry| entry.tool.name == name)
    }

    /// What an agent is told about its team, as far as it is known when the program connects.
    fn instructions(&self) -> String {
        let team = self.seat.team();
        let config = self.seat.caller().ok().and_then(|caller| caller.team().config().ok());
        protocol::instructions::render(&InstructionContext {
            name: self.seat.me(),
            team: team.as_ref(),
            config: config.as_ref(),
            root: &self.seat.arguments.root.to_string_lossy(),
            interactivity: Interactivity::Unknown,
        })
    }
}

impl ServerHandler for Server {
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
        self.entry(name).map(|entry| entry.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.entry(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let call = (entry.call)(&self.seat, request.arguments.unwrap_or_default());
        tokio::select! {
            result = call => Ok(answer(result).into()),
            () = telling(&context) => Err(ErrorData::internal_error("the call was given up", None)),
        }
    }
}

/// Tells of progress, where the client wants that, until the client gives the call up.
async fn telling(context: &RequestContext<RoleServer>) {
    let mut told = 0.0;
    loop {
        tokio::select! {
            () = context.ct.cancelled() => return,
            () = tokio::time::sleep(PROGRESS) => {}
        }
        told += PROGRESS.as_secs_f64();
        if let Some(token) = context.meta.get_progress_token() {
            let mut progress = ProgressNotificationParam::new(token, told);
            progress.message = Some("still waiting".to_owned());
            // A client that is gone ends the call by itself.
            context.peer.notify_progress(progress).await.ok();
        }
    }
}

fn answer(result: Result<Value, ErrorReport>) -> CallToolResult {
    match result {
        Ok(value) => CallToolResult::structured(value),
        Err(fault) => CallToolResult::error(vec![ContentBlock::text(told(&fault))]),
    }
}

/// What could not be done, why, and what to do next.
fn told(fault: &ErrorReport) -> String {
    match &fault.help {
        Some(hint) => format!("{}.\nNext: {hint}.", fault.message),
        None => format!("{}.", fault.message),
    }
}
