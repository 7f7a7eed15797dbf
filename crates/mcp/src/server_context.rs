//! Where the server sits: for which agent it speaks, at which root, on which team. Said once, in its arguments; what
//! a call says changes none of it, but that a lead may make its team.

use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Caller, Durability, Root, Team};

/// The server's arguments, as `teamctl mcp` writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerArgs {
    /// The directory that holds teams/ and tasks/.
    pub(crate) root: PathBuf,
    /// Our own files for it.
    pub(crate) state_dir: PathBuf,
    /// The daemon's socket.
    pub(crate) socket: PathBuf,
    /// For whom it speaks.
    pub(crate) member: AgentName,
    /// None: a lead that has no team yet.
    pub(crate) team: Option<TeamName>,
}

impl ServerArgs {
    /// Reads them; each flag has a value.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<ServerArgs, ErrorReport> {
        let (mut root, mut state, mut socket, mut agent, mut team) = (None, None, None, None, None);
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let place = match flag.to_str() {
                Some("--root") => &mut root,
                Some("--state") => &mut state,
                Some("--socket") => &mut socket,
                Some("--agent") => &mut agent,
                Some("--team") => &mut team,
                _ => return Err(invalid_argument(&flag.to_string_lossy())),
            };
            *place = Some(words.next().ok_or_else(|| invalid_argument(&flag.to_string_lossy()))?);
        }
        let needed = |value: Option<OsString>, flag: &str| value.ok_or_else(|| invalid_argument(flag));
        let team = team.map(|team| TeamName::parse(&team.to_string_lossy())).transpose();
        Ok(ServerArgs {
            root: needed(root, "--root")?.into(),
            state_dir: needed(state, "--state")?.into(),
            socket: needed(socket, "--socket")?.into(),
            member: AgentName::new_unchecked(&needed(agent, "--agent")?.to_string_lossy()),
            team: team.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?,
        })
    }
}

fn invalid_argument(flag: &str) -> ErrorReport {
    let message = format!("cannot read the arguments: {flag} is missing, not known, or has no value");
    ErrorReport::new(ErrorKind::Usage, message).with_help("this program is started by: teamctl mcp")
}

/// The server's place, for as long as it runs.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) arguments: ServerArgs,
    durability: Durability,
    /// The team that was made here, if one was.
    created_team: Mutex<Option<TeamName>>,
    /// The team as it was last opened: it remembers the task list.
    open_team: Mutex<Option<Team>>,
}

impl ServerContext {
    /// Takes the place; nothing is opened yet, since a root or a team may come later.
    pub(crate) fn new(arguments: ServerArgs, durability: Durability) -> ServerContext {
        ServerContext { arguments, durability, created_team: Mutex::new(None), open_team: Mutex::new(None) }
    }

    /// For whom it speaks.
    pub(crate) fn member(&self) -> &AgentName {
        &self.arguments.member
    }

    /// The root, checked and open.
    pub(crate) fn root(&self) -> Result<Root, ErrorReport> {
        Ok(Root::open(&self.arguments.root, &self.arguments.state_dir, self.durability)?)
    }

    /// The team that was said or made here.
    pub(crate) fn team(&self) -> Option<TeamName> {
        lock_ignoring_poison(&self.created_team).clone().or_else(|| self.arguments.team.clone())
    }

    /// The same, for what can't be done without one.
    pub(crate) fn require_team(&self) -> Result<TeamName, ErrorReport> {
        self.team().ok_or_else(|| {
            let message =
                "cannot tell which team is meant: none was made here, and none was named at the start";
            ErrorReport::new(ErrorKind::NotFound, message).with_help(
                "make one with TeamCreate, or let the person start this server with: teamctl mcp --team NAME",
            )
        })
    }

    /// From now on this is the team, or none that was made here.
    pub(crate) fn set_team(&self, team: Option<TeamName>) {
        *lock_ignoring_poison(&self.created_team) = team;
    }

    /// The agent at its team's files.
    pub(crate) fn caller(&self) -> Result<Caller, ErrorReport> {
        let name = self.require_team()?;
        let mut opened = lock_ignoring_poison(&self.open_team);
        let team = match opened.take().filter(|team| *team.name() == name && team.is_current_in_root()) {
            Some(team) => team,
            None => self.root()?.team(&name)?,
        };
        *opened = Some(team.clone());
        Ok(Caller::new(team, self.member().clone(), self.arguments.state_dir.clone()))
    }
}

/// What a call that panicked left is as good as any.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<ServerArgs, ErrorKind> {
        ServerArgs::parse(line.split(' ').map(OsString::from)).map_err(|fault| fault.kind)
    }

    #[test]
    fn all_arguments_are_required_and_no_others() {
        let whole = "--root /r --state /s --socket /c --agent ann --team survey";
        let arguments = parse(whole).unwrap();
        assert_eq!((arguments.member.as_str(), arguments.root), ("ann", PathBuf::from("/r")));
        for broken in [
            "--root /r --state /s --socket /c",
            "--root /r --state /s --socket /c --agent",
            "--root /r --state /s --socket /c --agent ann --from bob",
            "--root /r --state /s --socket /c --agent ann --team ../x",
        ] {
            assert_eq!(parse(broken), Err(ErrorKind::Usage), "{broken}");
        }
    }

    #[test]
    fn lead_without_team_gets_a_hint() {
        let arguments = parse("--root /r --state /s --socket /c --agent team-lead").unwrap();
        let seat = ServerContext::new(arguments, Durability::Process);
        assert_eq!(seat.require_team().map_err(|fault| fault.kind), Err(ErrorKind::NotFound));
        let survey = TeamName::parse("survey").unwrap();
        seat.set_team(Some(survey.clone()));
        assert_eq!(seat.team(), Some(survey));
    }
}
