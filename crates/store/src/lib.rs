//! Reading and changing the files of a team, beside other programs that do the same.
//!
//! Blocking, and of no daemon, tmux or socket: it works with all of them dead. A file is replaced whole or
//! not at all, under the lock that others take too; what others wrote stays as they spelled it; what does not
//! parse is copied aside and left alone, but for the config of a team of ours, which [`Team::mend`] makes whole. `file` alone writes and renames; `pause` alone sleeps, and each wait
//! has a deadline.

mod answers;
mod aside;
mod caller;
mod clock;
mod config;
mod definition;
mod delete;
mod directory;
mod durability;
mod error;
mod file;
mod inbox;
mod journal;
mod leftover;
mod lock;
mod mend;
mod pack;
mod pause;
mod place;
mod plan;
mod requests;
mod root;
mod settings;
mod state;
mod tasks;
mod team;

pub use answers::AnsweredRequest;
pub use caller::{
    BroadcastResult, Caller, FailedRecipient, SentMessage, ShutdownDecision, check_text, require_lead,
};
pub use clock::now;
pub use config::{BaseVersion, CachedConfig};
pub use definition::read_agent_type;
pub use durability::Durability;
pub use error::Error;
pub use inbox::{Inbox, InboxCursor, MESSAGE_LIMIT, message_id};
pub use journal::{InboxChange, InboxReconciler, ReaderKind};
pub use lock::{LockInfo, LockState};
pub use mend::ConfigDamage;
pub use pack::TeamArchive;
pub use place::{directories_for_root, resolve_root_path};
pub use requests::{MemberRequests, OpenRequest, RequestScanResult};
pub use root::Root;
pub use settings::ForeignSettings;
pub use state::StateDir;
pub use tasks::{BatchTask, NewTask, TaskUpdate, Tasks, UNREADABLE_STATUS};
pub use team::Team;
