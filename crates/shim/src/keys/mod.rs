//! Delivery by keys: messages are typed into the pane of a program that nothing better reaches.

mod pane_activity;
mod prompt_screen;
pub(crate) mod typist;
