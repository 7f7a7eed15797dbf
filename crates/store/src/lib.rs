//! Reads and changes the files of a team safely, while other programs change the same files.
//!
//! The crate is synchronous and needs neither the daemon nor tmux nor a socket. A file is replaced
//! whole, under the lock that other programs take too. JSON text that other programs wrote is kept
//! byte for byte. An invalid file is copied to the state directory and left unchanged. The
//! exception is the config of a team, which [`Team::repair_config`] rewrites.
//!
//! Invariant: only the module `file` writes and renames files, and only the module `backoff`
//! sleeps; `clippy.toml` checks it. Every wait has a deadline.

mod agent_log;
mod agent_type_file;
mod answer_log;
mod backoff;
mod clock;
mod config_cache;
mod delete_team;
mod dir_handle;
mod directories_from_environment;
mod durability;
mod error;
mod export_import;
mod file;
mod foreign_settings;
mod inbox;
mod journal;
mod lock;
mod member_requests;
mod operations;
mod own_access;
mod plan_files;
mod private_dir;
mod process_environment;
mod process_limits;
mod read_daemon_files;
mod repair_config;
mod root;
mod shared_root_state;
mod stale_files;
mod state_dir_handle;
mod task_hold_files;
mod tasks;
mod team_config;
mod team_file_names;
mod team_handle;

pub use agent_log::{agent_log_dir, agent_log_path};
pub use agent_type_file::read_agent_type;
pub use answer_log::AnsweredRequest;
pub use clock::now;
pub use config_cache::{BaseVersion, CachedConfig};
pub use directories_from_environment::{directories_for_root, resolve_root_path};
pub use durability::Durability;
pub use error::{Error, MORE_DESCRIPTORS_HELP};
pub use export_import::TeamArchive;
pub use foreign_settings::ForeignSettings;
pub use inbox::{EntrySelection, Inbox, InboxCursor, LastEntries, MESSAGE_LIMIT, message_id};
pub use journal::{InboxChange, InboxReconciler, ReaderKind};
pub use lock::flock::Flock;
pub use lock::try_lock_exclusive_despite_readers::try_lock_exclusive_despite_readers;
pub use lock::{LockInfo, LockState};
pub use member_requests::{MemberRequests, OpenRequest, RequestScanResult};
pub use operations::{BroadcastResult, Caller, FailedRecipient, SentMessage, ShutdownDecision, check_text};
pub use private_dir::{check_not_replaceable, check_own_link};
pub use process_environment::{env_var, env_vars, own_program};
pub use process_limits::{process_limit_error, process_limits, reached_process_limit};
pub use read_daemon_files::{read_leads_file, read_roster_file};
pub use repair_config::ConfigDamage;
pub use root::{
    CORRUPT_DIR, ENVIRONMENTS_DIR, Root, check_own_path, check_root_trusted, has_teams_directory,
};
pub use state_dir_handle::StateDir;
pub use tasks::{BatchTask, NewTask, TaskHold, TaskHolder, TaskUpdate, Tasks, UNREADABLE_STATUS};
pub use team_handle::Team;
