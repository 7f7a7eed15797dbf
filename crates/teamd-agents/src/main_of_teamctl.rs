//! The `main` function of `teamctl`: the command line; see the library of that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    teamctl::run_teamctl()
}
