//! What people and scripts are shown of teams, and the wait for a change of it: for `teamctl` and the screen alike.
//!
//! Reads the files, with what the daemon has told beside them; asks nobody, changes nothing. Texts of others come out as
//! they are, but for a program's output: whoever shows them cleans them.

pub mod directory_watcher;
pub mod request_view;
pub mod suggested_commands;
pub mod team_view;
pub mod terminal_text;
pub mod text;
