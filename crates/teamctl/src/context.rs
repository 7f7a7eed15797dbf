//! Where the caller stands: which root, which socket, which team, and who it is.
//!
//! Inside a pane that join started, all of it comes from the environment; elsewhere the caller is the lead.

pub(crate) use store::now;

use crate::cli::GlobalArgs;
use crate::next_task_client::NextTaskClient;
use client::connection::Connection;
use protocol::control::{Call, PROTOCOL_VERSION, Reply, Request, Response};
use protocol::directories::Directories;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName, did_you_mean};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use store::{Caller, Durability, Root, StateDir, Team};

/// The caller's place.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) args: GlobalArgs,
    /// As it was resolved first: each look at a path asks the kernel for all that is above it.
    root: OnceLock<PathBuf>,
}

impl CommandContext {
    pub(crate) fn new(global: GlobalArgs) -> CommandContext {
        CommandContext { args: global, root: OnceLock::new() }
    }

    /// The root's path as it was given or found; it need not exist.
    pub(crate) fn root_path(&self) -> Result<PathBuf, ErrorReport> {
        if let Some(path) = self.root.get() {
            return Ok(path.clone());
        }
        let absolute = absolute(&store::resolve_root_path(self.args.root.as_deref())?)?;
        // One that does not exist yet may be a link when it was made.
        match absolute.canonicalize() {
            Ok(path) => Ok(self.root.get_or_init(|| path).clone()),
            Err(_) => Ok(path_before_creation(&absolute)),
        }
    }

    /// Our own directories for this root.
    pub(crate) fn directories(&self) -> Result<Directories, ErrorReport> {
        Ok(store::directories_for_root(&self.root_path()?))
    }

    /// The daemon's socket.
    pub(crate) fn socket(&self) -> Result<PathBuf, ErrorReport> {
        match &self.args.socket {
            Some(path) => absolute(path),
            None => Ok(self.directories()?.control_socket()),
        }
    }

    /// Where to ask which task is next.
    pub(crate) fn next_task_client(&self) -> Result<NextTaskClient, ErrorReport> {
        Ok(NextTaskClient::new(self.socket()?))
    }

    /// Our own files for this root, outside of it.
    pub(crate) fn state_dir(&self) -> Result<StateDir, ErrorReport> {
        StateDir::open(&self.directories()?.state_dir).map_err(into_error)
    }

    /// The root, checked and open.
    pub(crate) fn root(&self) -> Result<Root, ErrorReport> {
        let durability = Durability::from_env_value(env_var("TEAMD_DURABILITY").as_deref())?;
        Root::open(&self.root_path()?, &self.directories()?.state_dir.join("aside"), durability)
            .map_err(into_error)
    }

    /// The team that was named, or the only one there is.
    pub(crate) fn team_name(&self, root: &Root) -> Result<TeamName, ErrorReport> {
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
    pub(crate) fn candidate_teams(&self, root: &Root) -> Result<Vec<TeamName>, ErrorReport> {
        if let Some(name) = &self.args.team {
            return Ok(vec![team_by_name(root, name)?]);
        }
        let teams: Vec<TeamName> =
            root.teams().map_err(into_error)?.into_iter().filter(|t| !t.is_claude_session()).collect();
        match teams.as_slice() {
            [_] => Ok(teams),
            [] => Err(ErrorReport::new(ErrorKind::NotFound, "cannot find a team: there is none")
                .with_help("make one with: teamctl create NAME")),
            _ => match crate::hook::led_by_this_session(self)? {
                Some(lead) => Ok(vec![team_by_name(root, lead.team.as_str())?]),
                None => Ok(teams),
            },
        }
    }

    /// The same, opened.
    pub(crate) fn team(&self) -> Result<Team, ErrorReport> {
        let root = self.root()?;
        root.team(&self.team_name(&root)?).map_err(into_error)
    }

    /// The caller at its team's files.
    pub(crate) fn caller(&self) -> Result<Caller, ErrorReport> {
        self.caller_in(self.team()?)
    }

    /// The same at a team that was found another way.
    pub(crate) fn caller_in(&self, team: Team) -> Result<Caller, ErrorReport> {
        Ok(Caller::new(team, self.caller_name(), self.directories()?.state_dir))
    }

    /// Who the caller is on its team.
    pub(crate) fn caller_name(&self) -> AgentName {
        env_var("TEAMD_AGENT").map_or_else(AgentName::lead, |name| AgentName::new_unchecked(&name))
    }

    /// Refuses what is for the lead or a person alone.
    pub(crate) fn require_lead(&self, what: &str) -> Result<(), ErrorReport> {
        store::require_lead(&self.caller_name(), what)
    }

    /// Proves to the daemon that the caller is the agent of this pane.
    pub(crate) fn token(&self) -> Option<String> {
        env_var("TEAMD_TOKEN")
    }

    /// Asks the daemon; its death is told at once.
    pub(crate) fn call_daemon(&self, request: Request) -> Result<Reply, ErrorReport> {
        self.call_daemon_with(self.token(), request)
    }

    /// Asks who runs there, which anybody may know: also an agent that this daemon knows nothing of, since its life is
    /// over or what the daemon before knew is lost.
    pub(crate) fn daemon_status(&self) -> Result<Reply, ErrorReport> {
        self.call_daemon_with(None, Request::Status)
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

/// How long the daemon may take for this. It has deadlines of its own, and these are longer: what they catch is a
/// daemon that is stopped.
fn request_timeout(request: &Request) -> Duration {
    match request {
        Request::Status
        | Request::StatusWithScreens
        | Request::NextTask(_)
        | Request::ReportActivity(_)
        | Request::LocatePane(_)
        | Request::ReportHook(_)
        | Request::SetLead(_) => Duration::from_secs(5),
        // It is a wait: its caller has a deadline of its own.
        Request::LongPoll(_) => Duration::from_secs(24 * 3600),
        Request::SetMode(_) => Duration::from_secs(20),
        // Its pane, the green light, and the session that its program may have to open.
        Request::Spawn(_) => Duration::from_secs(90),
        Request::Interrupt(_)
        | Request::Kill(_)
        | Request::StopDaemon
        | Request::StopDaemonAndSuspend
        | Request::ConnectShim(_) => Duration::from_secs(60),
        // Git's own deadline, and the user's hooks and filters: several calls, one after the other.
        Request::CreateWorktree(_) | Request::DeleteTeam(_) => Duration::from_secs(900),
        Request::CreateTeam(_)
        | Request::CapturePane(_)
        | Request::TypeInPane(_)
        | Request::HidePane(_)
        | Request::ShowPane(_)
        | Request::SetLayout(_)
        | Request::ResumeMembers(_)
        | Request::SetPolicy(_) => Duration::from_secs(20),
        Request::Shutdown(order) => {
            Duration::from_millis(order.grace_ms).saturating_add(Duration::from_secs(60))
        }
    }
}

pub(crate) fn team_by_name(root: &Root, name: &str) -> Result<TeamName, ErrorReport> {
    let wanted = TeamName::parse(name).or_else(|_| TeamName::sanitize(name));
    let wanted = wanted.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    let teams = root.teams().map_err(into_error)?;
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
pub(crate) fn member_name(team: &Team, name: &str) -> Result<AgentName, ErrorReport> {
    team.member(name).map(|member| member.name).map_err(into_error)
}

/// Where our own program lies, for what is installed beside it.
pub(crate) fn own_program() -> Result<PathBuf, ErrorReport> {
    std::env::current_exe().map_err(|error| {
        ErrorReport::new(ErrorKind::Internal, format!("cannot find our own program: {error}"))
    })
}

/// The daemon answered something else than what it was asked.
pub(crate) fn unexpected_reply() -> ErrorReport {
    ErrorReport::new(ErrorKind::Internal, "cannot understand the daemon's answer")
        .with_help("is teamd of another release? see: teamctl doctor")
}

/// An environment variable that is set to something.
pub(crate) fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The whole environment, but for what is no text.
pub(crate) fn env_vars() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// A failure of the store, as the command line tells it.
pub(crate) fn into_error(error: store::Error) -> ErrorReport {
    ErrorReport::from(error)
}
