//! `teamd-mcp`: the team's verbs as tools of the Model Context Protocol, on standard input and output, for one agent.
//! Started by `teamctl mcp`. Standard output is the protocol's alone; what goes wrong is told on standard error.
//!
//! Messages, tasks and inboxes are worked on straight at the files, also with the daemon dead; what only `teamctl`
//! knows is done by running that. Who it speaks for is said at its start, never by a call.

mod server;
mod server_context;
mod teamctl_command;
mod tools;

use protocol::error::{ErrorKind, ErrorReport};
use rmcp::ServiceExt;
use rmcp::transport::stdio_pipes;
use server_context::{ServerArgs, ServerContext};
use std::io::Write;
use std::process::ExitCode;
use store::Durability;

/// What `teamd-mcp` does.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let hint = fault.help.as_ref().map_or_else(String::new, |hint| format!("\n  {hint}"));
            // Nobody may be there to read it.
            writeln!(std::io::stderr(), "teamd-mcp: {}{hint}", fault.message).ok();
            ExitCode::from(fault.kind.exit_code())
        }
    }
}

fn run() -> Result<(), ErrorReport> {
    let arguments = ServerArgs::parse(std::env::args_os().skip(1))?;
    let server = server::McpServer::new(ServerContext::new(arguments, durability_from_env()?));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| ErrorReport::new(ErrorKind::Io, format!("cannot start: {error}")))?;
    let served = runtime.block_on(serve(server));
    // What still blocks at a file then ends with the process.
    runtime.shutdown_background();
    served
}

/// Until the program that started us closes our standard input.
async fn serve(server: server::McpServer) -> Result<(), ErrorReport> {
    let broken = |error: String| {
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot serve on standard input: {error}"))
    };
    let running = server.serve(stdio_pipes()).await.map_err(|error| broken(error.to_string()))?;
    running.waiting().await.map(drop).map_err(|error| broken(error.to_string()))
}

fn durability_from_env() -> Result<Durability, ErrorReport> {
    let level = std::env::var("TEAMD_DURABILITY").ok().filter(|level| !level.is_empty());
    Durability::from_env_value(level.as_deref())
}
