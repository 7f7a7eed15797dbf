//! Tests on real tmux servers.
//!
//! Every test has a server and a directory of its own, and kills the server by its socket. Most
//! tests run on a server with the default configuration and on one with a hostile configuration:
//! every setting of a user that may cause failures.
//!
//! All of that runs once for each program in `TEAMD_TEST_TMUX`, a list in the format of `PATH`. If
//! it is not set, the tests run with the tmux in `PATH`.

// clippy allows unwrap and print in test functions only, not in their helper functions.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod control_parser;
mod hidden_panes;
mod injection;
mod move_out_foreigners;
mod ownership;
mod pane_lifecycle;
mod server_failures;
mod test_server;
mod user_state;
