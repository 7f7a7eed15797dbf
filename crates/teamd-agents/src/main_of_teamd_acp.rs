//! The `main` function of `teamd-acp`: the driver of agents that speak the Agent Client Protocol;
//! see the library `acp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    acp::main()
}
