//! Keeps the mirror of a team on an annex equal to the files at the team's home.
//!
//! The home's files are true. The annex has a mirror: the team's config, its tasks, and the
//! messages to and from the members that run there. Programs on the annex read and write these
//! files as they would at the home. Each end has one [`Mirror`] for each link. The `Mirror`
//! compares the files with what the other end has, and returns the items to send
//! ([`MirrorOutput`]).
//!
//! The link *keeps* an item, or *accepts* it, once its spool file has the item. A kept item arrives
//! also after a crash.
//!
//! - **Messages** are known by their ids. Each end stores each message once.
//! - **Tasks** change at the home. A change in the mirror is a proposal ([`TaskChange`]). Until the
//!   home has answered, the mirror has the home's task with the proposal on top.
//! - **Events** of the annex's members are in the event log of the annex, and come into that of the
//!   home.
//! - **Members:** the annex says which members it runs. The home lists them with the key `host`. Of
//!   its config, the home sends what has changed. An annex that lacks the config before the change
//!   asks for all of it.
//!
//! After a crash, both ends compare all files again ([`Mirror::compare_all`]). An item has no
//! effect at an end that already has it.
//!
//! [`TaskChange`]: protocol::annex_link::TaskChange

mod apply_items;
mod barriers;
mod become_annex_of_moved_home;
mod compare_files;
mod config_changes;
mod config_of_home;
mod create_unanswered_tasks;
mod created_tasks;
mod damaged_files;
mod decline_home;
mod hand_over_inboxes;
mod home_budget_file;
mod items_awaiting_acceptance;
mod json_fields;
mod known_messages;
mod log_events;
mod members;
mod messages;
mod mirror;
mod mirrored_task;
mod mirrored_team_state;
mod mirrored_teams;
mod move_team;
mod output;
mod received_events;
mod record_kept_items;
mod send_and_store_team_budget;
mod send_events;
mod sent_events;
mod stored_answers_to_task_changes;
mod take_team;
mod tasks_at_annex;
mod tasks_at_home;
mod team_mirror;
mod two_homes;
mod unanswered_task_changes;
mod unread_messages;

pub use apply_items::are_messages_to_one_inbox;
pub use compare_files::{FileChange, TaskCheck};
pub use mirror::{Mirror, MirrorSide};
pub use mirrored_team_state::MirroredTeamState;
pub use output::{MirrorNotice, MirrorOutput};
