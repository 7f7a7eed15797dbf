//! Notifications to people (notices). `notice` lists the reasons for a notice, `queue` has those that wait,
//! `compose_text` writes their texts, and `show` sends them to the attached tmux clients, the daemon's
//! terminal and the user's command.

pub(crate) mod compose_text;
pub(crate) mod notice;
pub(crate) mod queue;
pub(crate) mod show;
