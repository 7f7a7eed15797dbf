//! Which process runs a task now.
//!
//! While a process runs a task, it holds the kernel's lock (flock) on a file in the state
//! directory. The file contains the process's pid and the member's name. While the lock is held, no
//! other member can release, delete or reassign the task. The kernel releases the lock when the
//! process ends.

use crate::error::Error;
use crate::flock::Flock;
use crate::state_directory_handle::StateDir;
use crate::team_handle::Team;
use crate::try_flock_despite_readers::try_lock_exclusive_despite_readers;
use protocol::member_task_and_request_ids::TaskId;
use protocol::state_file_names;
use protocol::state_file_names::TASK_HOLDS_DIR;
use protocol::team_and_member_names::MemberName;
use std::fs::{File, TryLockError};
use std::io::Read;

/// The length of the text in the file of a task, in bytes. A new text replaces an old one in place.
const TEXT_LENGTH: usize = 100;

/// A task that this process runs. Dropping it lets other processes run the task.
#[derive(Debug)]
pub struct TaskHold {
    directory: StateDir,
    file_name: String,
    _flock: Flock,
}

/// The living process that runs a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHolder {
    /// The member whose task it is.
    pub member: MemberName,
    /// The process that runs the task.
    pub pid: u32,
}

impl Team {
    /// Takes the lock of the task `id` for this process, which runs the task for `member`. The lock
    /// is held until the returned value is dropped. `None` if another process runs the task, or
    /// removes the lock file during this call.
    ///
    /// # Errors
    /// `Io`; [`Error::Untrusted`] if another user owns the directory.
    pub fn hold_task(&self, id: &TaskId, member: &MemberName) -> Result<Option<TaskHold>, Error> {
        if self.task_holder(id)?.is_some() {
            return Ok(None);
        }
        let directory = StateDir::open(&self.state_dir().join(TASK_HOLDS_DIR))?;
        let file_name = state_file_names::task_hold(self.name(), id);
        let text = format!("{} {member}", std::process::id());
        directory.overwrite(&file_name, format!("{text:<TEXT_LENGTH$}").as_bytes())?;
        let Some(file) = directory.open_file(&file_name)? else { return Ok(None) };
        let Ok(flock) = try_lock_exclusive_despite_readers(file) else { return Ok(None) };
        Ok(Some(TaskHold { directory, file_name, _flock: flock }))
    }

    /// The living process that runs the task `id`. `None` if no process of teamd runs it.
    ///
    /// # Errors
    /// As [`Team::hold_task`].
    pub fn task_holder(&self, id: &TaskId) -> Result<Option<TaskHolder>, Error> {
        // `StateDir::open` would create a missing directory.
        let path = self.state_dir().join(TASK_HOLDS_DIR);
        if !path.is_dir() {
            return Ok(None);
        }
        let Some(mut file) =
            StateDir::open(&path)?.open_file(&state_file_names::task_hold(self.name(), id))?
        else {
            return Ok(None);
        };
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map(|()| None).map_err(|cause| Error::io("unlock", &path, cause)),
            Err(TryLockError::WouldBlock) => Ok(read_holder(&mut file)),
            Err(TryLockError::Error(cause)) => Err(Error::io("lock", &path, cause)),
        }
    }
}

impl Drop for TaskHold {
    fn drop(&mut self) {
        // A file that stays is not locked, so it holds nothing.
        self.directory.remove(&self.file_name).ok();
    }
}

fn read_holder(file: &mut File) -> Option<TaskHolder> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let (pid, member) = text.trim_end().split_once(' ')?;
    Some(TaskHolder { member: MemberName::parse(member).ok()?, pid: pid.parse().ok()? })
}
