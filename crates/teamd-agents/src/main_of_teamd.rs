//! The `main` function of `teamd`: the daemon; see the library of that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    teamd::main()
}
