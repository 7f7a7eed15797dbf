//! Reads and changes the files of a team safely, while other programs change the same files.
//!
//! The crate is synchronous and needs neither the daemon nor tmux nor a socket. A file is replaced
//! whole, under the lock that other programs take too. JSON text that other programs wrote is kept
//! byte for byte. An invalid file is copied to the state directory and left unchanged. The
//! exception is the config of a team, which [`Team::repair_config`] rewrites.
//!
//! Invariant: only the module `file_io` writes and renames files, and only the module `backoff`
//! sleeps; `clippy.toml` checks it. Every wait has a deadline.

mod answer_log;
mod backoff;
mod check_no_other_user_can_write;
mod clock;
mod config_difference;
mod delete_team;
mod directories_from_environment;
mod directory_handle;
mod durability;
mod env_vars_and_own_program_path;
mod error;
mod file_io;
mod find_and_answer_member_requests;
mod find_limit_of_failed_start;
mod flock;
mod inbox;
mod keep_copy_of_team;
mod member_operations;
mod message_journal;
mod mkdir_lock;
mod open_request_and_possible_answers;
mod plan_files_and_approval_requests;
mod private_directory;
mod read_agent_type_file;
mod read_roster_and_leads_files;
mod remove_stale_files;
mod repair_team_config;
mod root_directory_handle;
mod settings_files_of_other_programs;
mod state_directory_handle;
mod state_shared_by_root_handles;
mod task_execution_lock_files;
mod task_list;
mod team_config;
mod team_config_cache;
mod team_export_import;
mod team_file_names;
mod team_handle;
mod team_home;
mod try_flock_despite_readers;
mod usage_limit_in_local_time;

pub use answer_log::AnsweredRequest;
pub use clock::now;
pub use config_difference::MemberDifference;
pub use directories_from_environment::{directories_for_root, resolve_root_path};
pub use durability::Durability;
pub use env_vars_and_own_program_path::{env_var, env_vars, own_program};
pub use error::{Error, MORE_DESCRIPTORS_HELP};
pub use file_io::AppendOnlyFile;
pub use find_and_answer_member_requests::{MemberRequests, RequestScanResult};
pub use find_limit_of_failed_start::{process_limit_error, process_limits, reached_process_limit};
pub use flock::Flock;
pub use inbox::{EntrySelection, Inbox, InboxCursor, LastEntries, MESSAGE_LIMIT, message_id};
pub use member_operations::{
    BroadcastResult, Caller, FailedRecipient, SentMessage, ShutdownDecision, check_text,
};
pub use message_journal::{InboxChange, InboxReconciler, ReaderKind};
pub use mkdir_lock::{LockInfo, LockState};
pub use open_request_and_possible_answers::OpenRequest;
pub use private_directory::{check_not_replaceable, check_own_link};
pub use read_agent_type_file::read_agent_type;
pub use read_roster_and_leads_files::{read_existing_roster, read_leads_file, read_roster_file};
pub use repair_team_config::ConfigDamage;
pub use root_directory_handle::{Root, check_own_path, check_root_trusted, has_teams_directory};
pub use settings_files_of_other_programs::ForeignSettings;
pub use state_directory_handle::StateDir;
pub use task_list::{
    BatchTask, NewTask, RewriteRules, TaskHold, TaskHolder, TaskUpdate, Tasks, UNREADABLE_STATUS,
};
pub use team_config_cache::{BaseVersion, CachedConfig};
pub use team_export_import::TeamArchive;
pub use team_handle::Team;
pub use try_flock_despite_readers::try_lock_exclusive_despite_readers;
pub use usage_limit_in_local_time::read_usage_limit;
