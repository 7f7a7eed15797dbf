//! `teamd-mcp`: the verbs as tools for agents; see the library `mcp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp::main()
}
