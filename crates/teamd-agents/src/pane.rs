//! `teamd-pane`: the first process of every agent; see the library `teamctl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    teamctl::run_shim()
}
