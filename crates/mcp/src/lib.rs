//! `teamd-mcp`: a server of the Model Context Protocol (MCP) that gives one agent tools to work
//! with its team. `teamctl mcp` starts the server. It serves on standard input and output, and
//! writes errors to standard error.
//!
//! The tools for messages, tasks and inboxes use the team's files directly, so they work without
//! the daemon. The other tools run `teamctl`. The server's command line names the agent, and a tool
//! call cannot act for another agent.

mod args;
mod handle_mcp_requests;
mod server_context;
mod teamctl_command;
mod tools;

use args::ServerArgs;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rmcp::ServiceExt;
use rmcp::transport::stdio_pipes;
use server_context::ServerContext;
use std::io::Write;
use std::process::ExitCode;
use store::Durability;

/// The program `teamd-mcp`. Returns its exit code.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let help = error.help.as_ref().map_or_else(String::new, |help| format!("\n  {help}"));
            // Standard error may be closed.
            writeln!(std::io::stderr(), "teamd-mcp: {}{help}", error.message).ok();
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn run() -> Result<(), ErrorReport> {
    let arguments = ServerArgs::parse(std::env::args_os().skip(1))?;
    let server = handle_mcp_requests::McpServer::new(ServerContext::new(arguments, durability_from_env()?));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| ErrorReport::new(ErrorKind::Io, format!("cannot start: {error}")))?;
    let served = runtime.block_on(serve(server));
    // A file operation that still blocks must not delay the exit.
    runtime.shutdown_background();
    served
}

/// Serves until the client closes standard input.
async fn serve(server: handle_mcp_requests::McpServer) -> Result<(), ErrorReport> {
    let serve_error = |error: String| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot serve on standard input: {error}"))
    };
    let running = server.serve(stdio_pipes()).await.map_err(|error| serve_error(error.to_string()))?;
    running.waiting().await.map(drop).map_err(|error| serve_error(error.to_string()))
}

fn durability_from_env() -> Result<Durability, ErrorReport> {
    let level = std::env::var("TEAMD_DURABILITY").ok().filter(|level| !level.is_empty());
    Durability::from_env_value(level.as_deref())
}
