//! Panes on real tmux servers.
//!
//! Every test has a server of its own, in a directory of its own, and kills it by its own socket. Most run on a plain
//! server and on one whose user has changed whatever can hurt; and all of that once for each program in
//! `TEAMD_TEST_TMUX` (a list as in `PATH`), else for the one tmux in `PATH`.

// clippy lets tests unwrap and print, but not what they share.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod control_parser;
mod hidden_panes;
mod injection;
mod ownership;
mod pane_lifecycle;
mod server_failures;
mod test_server;
mod user_state;
