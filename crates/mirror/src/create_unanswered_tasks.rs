//! At the annex that becomes the home: decides about the new tasks that the old home has not
//! answered.

use crate::team_mirror::TeamMirror;
use protocol::annex_link::TaskChange;
use protocol::member_task_and_request_ids::TaskId;
use store::Error;

impl TeamMirror {
    /// Gives new ids to tasks that were created here, if the old home has used their ids for other
    /// tasks. Each such task is created again with a free id. A repeated call creates no task
    /// twice.
    ///
    /// # Errors
    ///
    /// If files can't be read or written. A later call creates the remaining tasks.
    pub(crate) fn create_unanswered_tasks(&mut self) -> Result<(), Error> {
        let replaced = self.tasks.iter().filter_map(|(id, task)| {
            let (created, at_home) = (task.changes.created()?, task.at_home.as_ref()?);
            let is_equal = |key: &str| created.get(key) == at_home.get(key);
            let is_same = is_equal("subject") && is_equal("description");
            (!is_same).then(|| (*id, created.clone()))
        });
        for (id, task) in replaced.collect::<Vec<(TaskId, _)>>() {
            let change = TaskChange::Create { task: task.clone() };
            self.create_once(id, &change, &task)?;
        }
        Ok(())
    }
}
