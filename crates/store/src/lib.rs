//! Reading and changing the files of a team, beside other programs that do the same.
//!
//! Blocking, and of no daemon, tmux or socket: it works with all of them dead. A file is replaced whole or
//! not at all, under the lock that others take too; what others wrote stays as they spelled it; what does not
//! parse is copied aside and left alone, but for the config of a team of ours, which `Team::mend` makes whole. `file` alone writes and renames; `pause` alone sleeps, and each wait
//! has a deadline.

mod agent_type_file;
mod answer_log;
mod backoff;
mod clock;
mod config_cache;
mod delete_team;
mod dir_handle;
mod durability;
mod environment;
mod error;
mod file;
mod foreign_settings;
mod inbox;
mod journal;
mod layout;
mod lock;
mod member_requests;
mod operations;
mod plan_files;
mod private_dir;
mod repair_config;
mod root;
mod root_handles;
mod root_path;
mod roster_file;
mod stale_files;
mod state_dir;
mod tasks;
mod team;
mod team_archive;
mod team_config;

pub use agent_type_file::read_agent_type;
pub use answer_log::AnsweredRequest;
pub use clock::now;
pub use config_cache::{BaseVersion, CachedConfig};
pub use durability::Durability;
pub use environment::{env_var, env_vars, own_program};
pub use error::Error;
pub use foreign_settings::ForeignSettings;
pub use inbox::{Inbox, InboxCursor, MESSAGE_LIMIT, message_id};
pub use journal::{InboxChange, InboxReconciler, ReaderKind};
pub use lock::{LockInfo, LockState};
pub use member_requests::{MemberRequests, OpenRequest, RequestScanResult};
pub use operations::{
    BroadcastResult, Caller, FailedRecipient, SentMessage, ShutdownDecision, check_text, require_lead,
};
pub use repair_config::ConfigDamage;
pub use root::Root;
pub use root_path::{directories_for_root, resolve_root_path};
pub use roster_file::{read_leads_file, read_roster_file};
pub use state_dir::StateDir;
pub use tasks::{BatchTask, NewTask, TaskUpdate, Tasks, UNREADABLE_STATUS};
pub use team::Team;
pub use team_archive::TeamArchive;
