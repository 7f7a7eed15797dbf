//! The `main` function of `teamd-shim`: the first process of every agent; see the library `shim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    shim::main()
}
