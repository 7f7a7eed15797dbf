//! The task list of a team.
//!
//! A change of the list takes two kinds of locks. The first is a [`lock_queue_ticket`], a flock on
//! the file `.lock`: teamd's programs and other programs that use flock wait for it in a queue.
//! With the ticket, the change reads the list and prepares the new files. To put the files in
//! place, the change takes the locks that all programs use, which are directories. It takes the
//! list's lock and, while holding it, the lock of one changed file after another. New owners are
//! notified after all locks are released.

pub(crate) mod cache;
mod claim;
mod create;
mod high_water_mark;
mod lock_queue_ticket;
mod new_task;
mod new_task_batch;
mod notify_owner;
mod task_hold;
mod task_list;
mod transaction;
mod update;

pub use cache::UNREADABLE_STATUS;
pub use new_task::{BatchTask, NewTask};
pub use task_hold::{TaskHold, TaskHolder};
pub use task_list::Tasks;
pub use update::TaskUpdate;
