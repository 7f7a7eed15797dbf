//! The task list of a team.
//!
//! A program that changes the list takes two kinds of locks. The first is a ticket
//! ([`lock_queue_ticket`]), a flock on the file `.lock`, for which programs wait in a queue. With
//! the ticket, the program reads the list and prepares the new files. To put them in place, it
//! takes lock directories, which all programs respect: the list's lock and, while holding it, the
//! lock of one changed file after another. New owners are notified after all locks are released.

pub(crate) mod cache;
mod claim;
mod create;
mod high_water_mark;
mod lock_queue_ticket;
mod new_task;
mod new_task_batch;
mod notify_owner;
mod rewrite;
mod task_execution_lock;
mod task_list_handle;
mod transaction;
mod update;

pub use cache::UNREADABLE_STATUS;
pub use new_task::NewTask;
pub use new_task_batch::BatchTask;
pub use rewrite::RewriteRules;
pub use task_execution_lock::{TaskHold, TaskHolder};
pub use task_list_handle::Tasks;
pub use update::TaskUpdate;
