//! Panes of a tmux server: this crate creates, tags, reads, hides and kills them.
//!
//! All calls are methods of [`TmuxServer`]. It sends commands over a control-mode client. If there
//! is no such client, it starts one tmux process per command list.
//!
//! This crate does not know teams or agents. A pane belongs to a [`PaneTag`], which is the value of
//! a pane option. Every call that kills, reads or labels a pane names the tag that the pane must
//! have.
//!
//! - Invariant: a command goes only to the server whose [`ServerEpoch`] was read by the first
//!   connection. `pane_ids_of_another_server_are_rejected` checks this.
//! - Invariant: a command names a pane always by its id. Sessions that this crate creates are also
//!   named by their exact name, which contains only plain characters. `invalid_names_are_rejected`
//!   checks the names.
//! - Invariant: text from other programs or people reaches tmux only as an option's value or in an
//!   argument vector. tmux never expands formats there. The tests in `injection.rs` check this.
//! - This crate uses only commands and formats that the manual of tmux 3.2 describes.

#![warn(missing_docs)]

mod apply_layout;
mod border_label;
mod capture_pane;
mod command_list;
mod command_reply;
mod connect;
mod control_client_process;
mod control_connection;
mod control_parser;
mod create_pane;
mod deadline;
mod error;
mod guarded_command;
mod hide_and_show_panes;
mod if_shell;
mod invalid_argument;
mod keep_window_zoomed;
mod kill_pane;
mod list_panes;
mod move_out_foreign_windows_and_clients;
mod nonce;
mod pane_place;
mod pane_tag;
mod pane_window_and_session_ids;
mod panes_in_person_window;
mod pipe_pane;
mod quote_for_command_parser;
mod read_process_output_until_deadline;
mod report_disconnect_or_foreign_use;
mod run_commands_of_one_call;
mod run_tmux_process;
mod server;
mod server_address_and_program;
mod server_epoch;
mod status_message;
mod tag_and_label_pane;
mod validate_names_and_commands;
mod version;
mod wait_for_stale_control_clients;

pub use apply_layout::MAIN_PANE_PERCENT;
pub use border_label::BorderLabel;
pub use capture_pane::TaggedPane;
pub use create_pane::CreatedPane;
pub use error::Error;
pub use invalid_argument::InvalidArgument;
pub use kill_pane::{KillOutcome, PaneToKill};
pub use list_panes::PaneRow;
pub use pane_place::PanePlace;
pub use pane_tag::PaneTag;
pub use pane_window_and_session_ids::{PaneId, SessionId, WindowId};
pub use report_disconnect_or_foreign_use::ServerNotice;
pub use server::TmuxServer;
pub use server_address_and_program::{ServerAddress, TmuxProgram};
pub use server_epoch::ServerEpoch;
pub use status_message::{MAX_MESSAGE_BYTES, is_valid_message};
pub use tag_and_label_pane::{NextPane, TagOutcome};
pub use version::TmuxVersion;

/// Runs all parsers of tmux output on `bytes`. The fuzz target `reply` calls it.
#[cfg(fuzzing)]
pub fn fuzz_reply(bytes: &[u8]) {
    let mut parser = control_parser::ControlParser::default();
    let mut reply = command_reply::CommandReply::new("fuzz");
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(control_parser::ControlEvent::Block(block)) = parser.push_line(line) {
            reply.add_block(block);
        }
    }
    for line in reply.text().unwrap_or_default().lines() {
        list_panes::parse_row(line);
    }
}
