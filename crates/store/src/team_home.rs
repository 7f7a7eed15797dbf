//! What a move of a team's home means for the team's files.

use crate::error::Error;
use crate::root_directory_handle::read_team_home;
use crate::team_handle::Team;
use protocol::error_kind_and_report::ErrorReport;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::team_home::MovedHome;

impl Team {
    /// Where the team's home is now. `None` if it was not moved away from here.
    ///
    /// # Errors
    /// `Untrusted`, `Malformed`, `Io`.
    pub fn moved_home(&self) -> Result<Option<MovedHome>, Error> {
        Ok(read_team_home(self.state_dir(), self.name())?.moved)
    }

    /// Checks that the team's home was not moved away from here.
    ///
    /// # Errors
    /// `Refused`, with the new home; errors of the record.
    pub fn check_home_is_here(&self) -> Result<(), ErrorReport> {
        self.moved_home()?.map_or(Ok(()), |moved| Err(moved.error(self.name())))
    }

    /// Removes members whose host is gone for good, and releases their unfinished tasks. A failed
    /// task stays failed.
    ///
    /// # Errors Errors of the files. A later call completes the work, because the members are
    /// removed last.
    pub fn remove_lost_members(&self, members: &[MemberName]) -> Result<(), Error> {
        let is_held = |task: &Task| {
            let is_open = matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress);
            let is_theirs = task.owner.as_ref().is_some_and(|owner| members.contains(owner));
            is_open && is_theirs && task.failure().is_none()
        };
        let tasks = self.tasks();
        for task in tasks.list()?.into_iter().filter(is_held) {
            match tasks.release(&task.id, &MemberName::lead()) {
                Ok(_) | Err(Error::NoSuchTask { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if members.is_empty() { Ok(()) } else { self.remove_members(members) }
    }
}
