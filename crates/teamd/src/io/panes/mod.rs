//! The panes thread: opens, labels, hides and closes the agents' panes in tmux.

pub(crate) mod agent_panes_in_person_window;
pub(crate) mod apply_layouts;
pub(crate) mod cached_window_and_prepared_pane;
pub(crate) mod choose_close_batch;
pub(crate) mod find_dialogs_on_screens;
pub(crate) mod find_visible_panes;
pub(crate) mod hide_and_show;
pub(crate) mod iterm2_thread;
pub(crate) mod open;
mod run_it2;
pub(crate) mod run_pane_jobs;
pub(crate) mod window_space;
