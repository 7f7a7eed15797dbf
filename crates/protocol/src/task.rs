//! Tasks: the files of single tasks, and the choice of a member's next task.

mod select_next_task;
mod task_file;
mod wait_cycle;

pub use select_next_task::{next_task, resumable_task};
pub use task_file::{
    RUN_OWNER_KEY, Task, TaskError, TaskStatus, dependents, find_cycle, find_task, with_fields, with_metadata,
};
pub use wait_cycle::{WaitCycle, wait_cycles};
