//! A team's task list. Processes of ours (and tools that flock) queue on `.lock`; each then reads the list,
//! drafts its change, and takes the locks that others know only to put it in place: the list's, and inside it
//! that of each file. Whoever becomes an owner is told after all of them are released.

mod batch;
pub(crate) mod cache;
mod claim;
mod create;
mod high_water_mark;
mod new_task;
mod notify_owner;
mod task_list;
mod ticket;
mod transaction;
mod update;

pub use cache::UNREADABLE_STATUS;
pub use new_task::{BatchTask, NewTask};
pub use task_list::Tasks;
pub use update::TaskUpdate;
