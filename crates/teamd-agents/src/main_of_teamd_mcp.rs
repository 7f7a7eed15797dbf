//! The `main` function of `teamd-mcp`: the commands of `teamctl` as MCP tools for agents; see the
//! library `mcp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp::main()
}
