//! Whom the server acts for: the agent, the root and the team. The arguments of the server fix
//! them. No call changes them, except that a lead may create its team.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Caller, Durability, Root, Team};

/// The arguments of the server, as `teamctl mcp` writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerArgs {
    /// The directory with `teams/` and `tasks/`.
    pub(crate) root: PathBuf,
    /// The state directory of this root.
    pub(crate) state_dir: PathBuf,
    /// The control socket of the daemon.
    pub(crate) socket: PathBuf,
    /// The agent that the server acts for.
    pub(crate) member: AgentName,
    /// `None` for a lead that has no team yet.
    pub(crate) team: Option<TeamName>,
}

impl ServerArgs {
    /// Parses the arguments. Each flag has a value.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<ServerArgs, ErrorReport> {
        let (mut root, mut state, mut socket, mut agent, mut team) = (None, None, None, None, None);
        let mut arguments = arguments.into_iter();
        while let Some(flag) = arguments.next() {
            let value = match flag.to_str() {
                Some("--root") => &mut root,
                Some("--state") => &mut state,
                Some("--socket") => &mut socket,
                Some("--agent") => &mut agent,
                Some("--team") => &mut team,
                _ => return Err(invalid_argument(&flag.to_string_lossy())),
            };
            *value = Some(arguments.next().ok_or_else(|| invalid_argument(&flag.to_string_lossy()))?);
        }
        let require = |value: Option<OsString>, flag: &str| value.ok_or_else(|| invalid_argument(flag));
        let team = team.map(|team| TeamName::parse(&team.to_string_lossy())).transpose();
        Ok(ServerArgs {
            root: require(root, "--root")?.into(),
            state_dir: require(state, "--state")?.into(),
            socket: require(socket, "--socket")?.into(),
            member: AgentName::new_unchecked(&require(agent, "--agent")?.to_string_lossy()),
            team: team.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?,
        })
    }
}

fn invalid_argument(flag: &str) -> ErrorReport {
    let message = format!("cannot read the arguments: {flag} is missing, not known, or has no value");
    ErrorReport::new(ErrorKind::Usage, message).with_help("this program is started by: teamctl mcp")
}

/// The state of the server, as long as it runs.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) arguments: ServerArgs,
    durability: Durability,
    /// The team that this server created, if any.
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
    pub(crate) fn member(&self) -> &AgentName {
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

    /// The same team, or an error if there is none.
    pub(crate) fn require_team(&self) -> Result<TeamName, ErrorReport> {
        self.team().ok_or_else(|| {
            let message =
                "cannot tell which team is meant: none was made here, and none was named at the start";
            ErrorReport::new(ErrorKind::NotFound, message).with_help(
                "make one with TeamCreate, or let the person start this server with: teamctl mcp --team NAME",
            )
        })
    }

    /// Sets the team that this server created. `None` if it was deleted.
    pub(crate) fn set_team(&self, team: Option<TeamName>) {
        *lock_ignoring_poison(&self.created_team) = team;
    }

    /// The agent as a caller of its team's operations. Opens the team again if another directory
    /// has taken its place.
    pub(crate) fn caller(&self) -> Result<Caller, ErrorReport> {
        let name = self.require_team()?;
        let mut last_opened = lock_ignoring_poison(&self.open_team);
        let team = match last_opened.take().filter(|team| *team.name() == name && team.is_current_in_root()) {
            Some(team) => team,
            None => self.root()?.team(&name)?,
        };
        *last_opened = Some(team.clone());
        Ok(Caller::new(team, self.member().clone(), self.arguments.state_dir.clone()))
    }
}

/// Locks a mutex. A panic of another call leaves the value intact, so poisoning is ignored.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<ServerArgs, ErrorKind> {
        ServerArgs::parse(line.split(' ').map(OsString::from)).map_err(|error| error.kind)
    }

    #[test]
    fn all_arguments_are_required_and_no_others() {
        let complete = "--root /r --state /s --socket /c --agent ann --team survey";
        let arguments = parse(complete).unwrap();
        assert_eq!((arguments.member.as_str(), arguments.root), ("ann", PathBuf::from("/r")));
        for invalid in [
            "--root /r --state /s --socket /c",
            "--root /r --state /s --socket /c --agent",
            "--root /r --state /s --socket /c --agent ann --from bob",
            "--root /r --state /s --socket /c --agent ann --team ../x",
        ] {
            assert_eq!(parse(invalid), Err(ErrorKind::Usage), "{invalid}");
        }
    }

    #[test]
    fn lead_without_team_gets_a_hint() {
        let arguments = parse("--root /r --state /s --socket /c --agent team-lead").unwrap();
        let context = ServerContext::new(arguments, Durability::Process);
        assert_eq!(context.require_team().map_err(|error| error.kind), Err(ErrorKind::NotFound));
        let survey = TeamName::parse("survey").unwrap();
        context.set_team(Some(survey.clone()));
        assert_eq!(context.team(), Some(survey));
    }
}
