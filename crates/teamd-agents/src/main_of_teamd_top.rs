//! The `main` function of `teamd-top`: the screen; see the library `top`.

use std::process::ExitCode;

fn main() -> ExitCode {
    top::main()
}
