//! Root, socket, team and identity of the caller.
//!
//! An agent has all of them in its environment; elsewhere the caller is the lead.

use crate::connection::Connection;
use crate::error::unexpected_reply;
use crate::lead_session::led_by_this_session;
use crate::next_task_client::NextTaskClient;
use crate::request_timeout::request_timeout;
use protocol::control::{Call, PROTOCOL_VERSION, Reply, Request, Response, WorktreeReply, WorktreeRequest};
use protocol::did_you_mean::did_you_mean;
use protocol::directories::Directories;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use store::{Caller, Durability, Root, StateDir, Team, env_var};

/// What the user named; None stands for the default.
#[derive(Debug, Clone, Default)]
pub struct TeamOptions {
    /// The directory with teams/ and tasks/.
    pub root: Option<PathBuf>,
    /// The daemon's control socket.
    pub socket: Option<PathBuf>,
    /// The team.
    pub team: Option<String>,
}

impl TeamOptions {
    /// What the daemon sets in the environment of an agent.
    pub fn from_env() -> TeamOptions {
        TeamOptions {
            root: env_var("TEAMD_ROOT").map(PathBuf::from),
            socket: env_var("TEAMD_SOCKET").map(PathBuf::from),
            team: env_var("TEAMD_TEAM"),
        }
    }
}

/// Root, socket, team and identity of the caller.
#[derive(Debug)]
pub struct TeamContext {
    options: TeamOptions,
    /// The resolved root, kept because resolving a path costs a system call for each of its parents.
    root: OnceLock<PathBuf>,
}

impl TeamContext {
    /// Reads nothing yet: each value is resolved when it is first needed.
    pub fn new(options: TeamOptions) -> TeamContext {
        TeamContext { options, root: OnceLock::new() }
    }

    /// The same root and socket with another team.
    pub fn for_team(&self, team: &TeamName) -> TeamContext {
        TeamContext::new(TeamOptions { team: Some(team.to_string()), ..self.options.clone() })
    }

    /// What the user named.
    pub fn options(&self) -> &TeamOptions {
        &self.options
    }

    /// The root's path as it was given or found; it need not exist.
    pub fn root_path(&self) -> Result<PathBuf, ErrorReport> {
        if let Some(path) = self.root.get() {
            return Ok(path.clone());
        }
        let absolute = absolute(&store::resolve_root_path(self.options.root.as_deref())?)?;
        // One that does not exist yet may be a link when it was made.
        match absolute.canonicalize() {
            Ok(path) => Ok(self.root.get_or_init(|| path).clone()),
            Err(_) => Ok(path_before_creation(&absolute)),
        }
    }

    /// Our own directories for this root.
    pub fn directories(&self) -> Result<Directories, ErrorReport> {
        Ok(store::directories_for_root(&self.root_path()?))
    }

    /// The daemon's socket.
    pub fn socket(&self) -> Result<PathBuf, ErrorReport> {
        match &self.options.socket {
            Some(path) => absolute(path),
            None => Ok(self.directories()?.control_socket()),
        }
    }

    /// Where to ask which task is next.
    pub fn next_task_client(&self) -> Result<NextTaskClient, ErrorReport> {
        Ok(NextTaskClient::new(self.socket()?))
    }

    /// Our own files for this root, outside of it.
    pub fn state_dir(&self) -> Result<StateDir, ErrorReport> {
        StateDir::open(&self.directories()?.state_dir).map_err(ErrorReport::from)
    }

    /// The root, checked and open.
    pub fn root(&self) -> Result<Root, ErrorReport> {
        let durability = Durability::from_env_value(env_var("TEAMD_DURABILITY").as_deref())?;
        Root::open(&self.root_path()?, &self.directories()?.state_dir, durability).map_err(ErrorReport::from)
    }

    /// The team that was named, or the only one there is.
    pub fn team_name(&self, root: &Root) -> Result<TeamName, ErrorReport> {
        match self.candidate_teams(root)?.as_slice() {
            [only] => Ok(only.clone()),
            several => {
                let names: Vec<&str> = several.iter().map(TeamName::as_str).collect();
                let message = format!("cannot tell which team is meant: there are {}", names.join(", "));
                Err(ErrorReport::new(ErrorKind::Usage, message).with_help("name one with -t TEAM"))
            }
        }
    }

    /// That one; or all that may be meant, where there are several.
    pub fn candidate_teams(&self, root: &Root) -> Result<Vec<TeamName>, ErrorReport> {
        if let Some(name) = &self.options.team {
            return Ok(vec![team_by_name(root, name)?]);
        }
        let teams: Vec<TeamName> = root.teams()?.into_iter().filter(|t| !t.is_claude_session()).collect();
        match teams.as_slice() {
            [_] => Ok(teams),
            [] => Err(ErrorReport::new(ErrorKind::NotFound, "cannot find a team: there is none")
                .with_help("make one with: teamctl create NAME")),
            _ => match led_by_this_session(&self.directories()?) {
                Some(lead) => Ok(vec![team_by_name(root, lead.team.as_str())?]),
                None => Ok(teams),
            },
        }
    }

    /// The same, opened.
    pub fn team(&self) -> Result<Team, ErrorReport> {
        let root = self.root()?;
        root.team(&self.team_name(&root)?).map_err(ErrorReport::from)
    }

    /// The caller at its team's files.
    pub fn caller(&self) -> Result<Caller, ErrorReport> {
        self.caller_in(self.team()?)
    }

    /// The same at a team that was found another way.
    pub fn caller_in(&self, team: Team) -> Result<Caller, ErrorReport> {
        Ok(Caller::new(team, self.caller_name(), self.directories()?.state_dir))
    }

    /// Who the caller is on its team.
    pub fn caller_name(&self) -> AgentName {
        env_var("TEAMD_AGENT").map_or_else(AgentName::lead, |name| AgentName::new_unchecked(&name))
    }

    /// Refuses what is for the lead or a person alone.
    pub fn require_lead(&self, what: &str) -> Result<(), ErrorReport> {
        store::require_lead(&self.caller_name(), what)
    }

    /// Proves to the daemon that the caller is the agent of this pane.
    pub fn token(&self) -> Option<String> {
        env_var("TEAMD_TOKEN")
    }

    /// Asks the daemon; its death is told at once.
    pub fn call_daemon(&self, request: Request) -> Result<Reply, ErrorReport> {
        self.call_daemon_with(self.token(), request)
    }

    /// Asks who runs there, which anybody may know: also an agent that this daemon knows nothing of, since its life is
    /// over or what the daemon before knew is lost.
    pub fn daemon_status(&self) -> Result<Reply, ErrorReport> {
        self.call_daemon_with(None, Request::Status)
    }

    /// Has the daemon make a git worktree for a member.
    pub fn create_worktree(&self, request: WorktreeRequest) -> Result<WorktreeReply, ErrorReport> {
        match self.call_daemon(Request::CreateWorktree(request))? {
            Reply::CreateWorktree(reply) => Ok(reply),
            _ => Err(unexpected_reply()),
        }
    }

    fn call_daemon_with(&self, token: Option<String>, request: Request) -> Result<Reply, ErrorReport> {
        let mut connection = Connection::open(&self.socket()?)?;
        connection.set_timeout(request_timeout(&request))?;
        let once = Some(uuid::Uuid::new_v4().to_string());
        match connection.call(&Call { version: PROTOCOL_VERSION, token, idempotency_key: once, request })? {
            Response::Done(reply) => Ok(*reply),
            Response::Failed(fault) => Err(fault),
        }
    }
}

pub fn team_by_name(root: &Root, name: &str) -> Result<TeamName, ErrorReport> {
    let wanted = TeamName::parse(name).or_else(|_| TeamName::sanitize(name));
    let wanted = wanted.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    let teams = root.teams()?;
    if teams.contains(&wanted) {
        return Ok(wanted);
    }
    let near = did_you_mean(wanted.as_str(), teams.iter().map(TeamName::as_str));
    Err(ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {wanted}"))
        .with_help(near.unwrap_or_else(|| missing_team_help(&wanted, &teams))))
}

fn missing_team_help(wanted: &TeamName, teams: &[TeamName]) -> String {
    let ours = teams.iter().filter(|team| !team.is_claude_session()).map(TeamName::as_str);
    let ours: Vec<&str> = ours.collect();
    let there = if ours.is_empty() { String::new() } else { format!("there is: {}; ", ours.join(", ")) };
    format!("{there}make it with: teamctl create {wanted}")
}

/// Where a directory will lie once it was made: what is above it may be behind a link already, and the one who makes it
/// is told by another path then.
fn path_before_creation(path: &Path) -> PathBuf {
    let mut above = path.ancestors().skip(1);
    let found = above.find_map(|above| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?)));
    found.unwrap_or_else(|| path.to_owned())
}

fn absolute(path: &Path) -> Result<PathBuf, ErrorReport> {
    std::path::absolute(path).map_err(|error| ErrorReport::from_io("find", path, &error))
}

/// The member of that name, as the team spells it.
pub fn member_name(team: &Team, name: &str) -> Result<AgentName, ErrorReport> {
    team.member(name).map(|member| member.name).map_err(ErrorReport::from)
}
