//! The panes thread: opens, labels, hides and closes the agents' panes in tmux.

pub(crate) mod choose_close_batch;
pub(crate) mod dialogs;
pub(crate) mod layout;
pub(crate) mod open;
pub(crate) mod person_window;
pub(crate) mod thread;
pub(crate) mod visibility;
pub(crate) mod window_rows_cache;
pub(crate) mod window_space;
