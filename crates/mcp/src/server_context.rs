//! The agent, root and team that the server acts for. The server's command line sets all three. A
//! tool call cannot change the agent or the root. A lead's tool call can change the team, by
//! creating or deleting it.

use crate::args::ServerArgs;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Caller, Durability, Root, Team};

/// The state of the server. It exists as long as the server runs.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) arguments: ServerArgs,
    durability: Durability,
    /// The team that this server created. `None` if it created no team.
    created_team: Mutex<Option<TeamName>>,
    /// The team that was opened last. It caches the task list.
    open_team: Mutex<Option<Team>>,
}

impl ServerContext {
    /// Opens nothing yet, because the root or the team may be created later.
    pub(crate) fn new(arguments: ServerArgs, durability: Durability) -> ServerContext {
        ServerContext { arguments, durability, created_team: Mutex::new(None), open_team: Mutex::new(None) }
    }

    /// The agent that the server acts for.
    pub(crate) fn member(&self) -> &MemberName {
        &self.arguments.member
    }

    /// Opens the root and checks it.
    pub(crate) fn root(&self) -> Result<Root, ErrorReport> {
        Ok(Root::open(&self.arguments.root, &self.arguments.state_dir, self.durability)?)
    }

    /// The team that this server created, or the one of the arguments.
    pub(crate) fn team(&self) -> Option<TeamName> {
        lock_ignoring_poison(&self.created_team).clone().or_else(|| self.arguments.team.clone())
    }

    /// The team of [`ServerContext::team`], or an error if there is none.
    pub(crate) fn require_team(&self) -> Result<TeamName, ErrorReport> {
        self.team().ok_or_else(|| {
            let message = "no team is known: this server created none, and was started without --team";
            ErrorReport::new(ErrorKind::NotFound, message).with_help(
                "make one with TeamCreate, or let the person start this server with: teamctl mcp --team NAME",
            )
        })
    }

    /// Sets the team that this server created. `None` if it was deleted.
    pub(crate) fn set_team(&self, team: Option<TeamName>) {
        *lock_ignoring_poison(&self.created_team) = team;
    }

    /// The agent that the server acts for, with its team. The team is kept open between calls. If
    /// the team's directory was replaced by another one, the team is opened again.
    ///
    /// # Errors
    ///
    /// The errors of opening the root and the team.
    pub(crate) fn caller(&self) -> Result<Caller, ErrorReport> {
        let name = self.require_team()?;
        let mut last_opened = lock_ignoring_poison(&self.open_team);
        let team = match last_opened.take().filter(|team| *team.name() == name && team.is_current_in_root()) {
            Some(team) => team,
            None => self.root()?.team(&name)?,
        };
        *last_opened = Some(team.clone());
        Ok(Caller::new(team, self.member().clone()))
    }
}

/// Locks a mutex. A panic of another call leaves the value intact, so poisoning is ignored.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn lead_without_team_gets_a_hint() {
        let arguments = "--root /r --state-dir /s --socket /c --member team-lead";
        let arguments = ServerArgs::parse(arguments.split(' ').map(OsString::from)).unwrap();
        let context = ServerContext::new(arguments, Durability::Process);
        assert_eq!(context.require_team().map_err(|error| error.kind), Err(ErrorKind::NotFound));
        let survey = TeamName::parse("survey").unwrap();
        context.set_team(Some(survey.clone()));
        assert_eq!(context.team(), Some(survey));
    }
}
