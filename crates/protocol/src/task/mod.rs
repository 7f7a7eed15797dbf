//! Tasks: the files of single tasks, and the choice of a member's next task.

mod deserialize_task;
mod edit_task_file;
mod find_wait_cycles;
mod select_next_task;
mod task_and_task_status;

pub(crate) use deserialize_task::deserialize_task;
pub use edit_task_file::{with_fields, with_metadata};
pub use find_wait_cycles::{WaitCycle, find_cycle, wait_cycles};
pub use select_next_task::{next_task, resumable_task};
pub use task_and_task_status::{
    ABANDONED_KEY, ANSWER_KEY, ONCE_KEY, RETRIES_KEY, RUN_OWNER_KEY, Task, TaskError, TaskStatus, dependents,
    find_task,
};
