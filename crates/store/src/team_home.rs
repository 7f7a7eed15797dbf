//! What a move of a team's home means for the team's files.

use crate::answer_log::AnsweredRequest;
use crate::error::Error;
use crate::root_directory_handle::read_team_home;
use crate::state_directory_handle::StateDir;
use crate::team_handle::Team;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::Policy;
use protocol::state_file_names;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::team_home::TeamHome;

impl Team {
    /// Reads the record that says whether the team's home was moved to another host, or is being
    /// moved. If the record is about a deleted team of the same name, returns the default: no move.
    ///
    /// # Errors
    /// `Untrusted`, `Malformed`, `Io`.
    pub fn home(&self) -> Result<TeamHome, Error> {
        let home = read_team_home(self.state_dir(), self.name())?;
        let is_same =
            |created_at| self.config_if_valid().is_none_or(|config| config.created_at == created_at);
        match home.created_at().is_none_or(is_same) {
            true => Ok(home),
            false => Ok(TeamHome::default()),
        }
    }

    /// Checks that the team's home was not moved away from here, and is not being moved.
    ///
    /// # Errors
    /// `Refused` if the home was moved or is being moved; the error names the new home. Errors of
    /// [`Team::home`].
    pub fn check_home_is_here(&self) -> Result<(), ErrorReport> {
        self.home()?.check(self.name())
    }

    /// Calls `change`, which changes the team. Checks before and after the change that the team's
    /// home is here. If a move of the home begins during the change, the new home may not get the
    /// change.
    ///
    /// # Errors
    /// As [`Team::check_home_is_here`]; `Partial` if a move has begun during the change; errors of
    /// the change.
    pub fn change_at_home<T>(
        &self,
        change: impl FnOnce() -> Result<T, ErrorReport>,
    ) -> Result<T, ErrorReport> {
        self.check_home_is_here()?;
        let result = change()?;
        self.check_home_is_here().map_err(|error| {
            let message = format!("{}; this change may not have arrived there", error.message);
            ErrorReport { kind: ErrorKind::Partial, message, ..error }
        })?;
        Ok(result)
    }

    /// Stores the team's policy. Called when the team's home moves to this host: the old home has
    /// sent the policy.
    ///
    /// # Errors
    /// `Untrusted`, `Io`.
    pub fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        let bytes = serde_json::to_vec(policy).expect("a policy has nothing that JSON cannot hold");
        StateDir::open(self.state_dir())?.replace(&state_file_names::policy(self.name()), &bytes)
    }

    /// Adds answers to the answer log, except those that the log already has. Called when the
    /// team's home moves to this host: the old home has sent the answers.
    ///
    /// # Errors
    /// `Untrusted`, `Io`. Some of the answers may have been added; the caller can repeat the call.
    pub fn add_answers(&self, answers: &[AnsweredRequest]) -> Result<(), Error> {
        let known = self.answer_log().read_team(self.name());
        let new = answers.iter().filter(|answer| !known.contains(answer));
        new.into_iter().try_for_each(|answer| self.answer_log().append(self.name(), answer))
    }

    /// Removes members whose host is gone for good. Their open tasks become pending, without an
    /// owner. Tasks with a recorded failure stay as they are.
    ///
    /// # Errors
    /// Errors of the files. After an error the caller can repeat the call, because the tasks are
    /// changed before the members are removed.
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
