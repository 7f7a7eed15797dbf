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

pub use answers::Answered;
pub use caller::{Answer, Broadcast, Caller, Missed, Sent, checked, lead_only};
pub use clock::now;
pub use config::{Config, Origin};
pub use definition::definition;
pub use durability::Durability;
pub use error::Error;
pub use inbox::{Inbox, MESSAGE_LIMIT, Mark, message_id};
pub use journal::{Ledger, Looked, Reader};
pub use lock::{Held, Holding};
pub use mend::Damage;
pub use pack::Parcel;
pub use place::{place_of, root_path};
pub use requests::{Asking, OpenRequest, Requests};
pub use root::Root;
pub use settings::Settings;
pub use state::StateDir;
pub use tasks::{NewTask, Planned, TaskUpdate, Tasks, UNREADABLE};
pub use team::Team;
