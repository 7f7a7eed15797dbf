//! Tests on real tmux servers.
//!
//! Every test has its own server and directory, and kills the server by its socket. Most tests run
//! on a server with the default configuration and on a server with a hostile configuration, which
//! has all user settings that may cause failures.
//!
//! Every test runs once for each program in `TEAMD_TEST_TMUX`, a list in the format of `PATH`. If
//! the variable is not set, the tests run with the tmux in `PATH`.

// clippy allows unwrap and print in test functions only, not in their helper functions.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod control_connection_replies;
mod hide_and_show_panes;
mod injection;
mod layouts;
mod move_out_foreign_windows_and_clients;
mod pane_lifecycle;
mod pane_ownership_by_tag;
mod server_failures;
mod test_server;
mod user_sessions_unchanged;
