//! Notifications to people (notices): which ones wait, their texts, and how they are shown.

pub(crate) mod compose_text;
pub(crate) mod notice;
pub(crate) mod queue;
pub(crate) mod show;
