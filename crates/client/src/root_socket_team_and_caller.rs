//! Determines which root, control socket and team a program uses, and the name of its caller. All
//! programs that work on a team use this module.
//!
//! The environment of an agent contains all these values. Any other caller acts as the lead.

use crate::ask_daemon_for_next_task::NextTaskClient;
use crate::confirm_claimed_task::confirm_task_in_progress;
use crate::connect_to_daemon::DaemonAddress;
use crate::connection::Connection;
use crate::daemon_call_error::Error;
use crate::find_lead_session_of_caller::find_lead_session;
use crate::find_other_socket_of_root::find_other_socket;
use crate::refuse_foreign_team_root_and_spawn::{check_own_root, check_own_spawn, check_own_team};
use crate::reply_payload::{ReplyPayload, payload_of};
use crate::reply_timeout::reply_timeout;
use crate::team_not_found_errors::{missing_config_error, missing_team_error, no_team_error};
use protocol::control_socket::{Call, Reply, Request, Response, StatusReply, WorktreeReply, WorktreeRequest};
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_and_runtime_directories::Directories;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use store::{Caller, Durability, Root, StateDir, Team, env_var};

/// Options of the user. `None` stands for the default.
#[derive(Debug, Clone, Default)]
pub struct TeamOptions {
    /// The root: the directory with `teams/` and `tasks/`.
    pub root: Option<PathBuf>,
    /// Path of the control socket.
    pub socket: Option<PathBuf>,
    /// Name of the team.
    pub team: Option<String>,
}

impl TeamOptions {
    /// The options in the environment. The daemon sets them for every agent.
    pub fn from_env() -> TeamOptions {
        TeamOptions {
            root: env_var("TEAMD_ROOT").map(PathBuf::from),
            socket: env_var("TEAMD_SOCKET").map(PathBuf::from),
            team: env_var("TEAMD_TEAM"),
        }
    }
}

/// Root, socket, team and name of the caller. Each value is determined on first use.
#[derive(Debug)]
pub struct TeamContext {
    options: TeamOptions,
    /// The canonical path of the root. It is cached, because computing it takes a system call for
    /// each parent directory.
    root: OnceLock<PathBuf>,
}

impl TeamContext {
    /// Creates a context. It reads nothing yet.
    pub fn new(options: TeamOptions) -> TeamContext {
        TeamContext { options, root: OnceLock::new() }
    }

    /// A context with the same root and socket and another team.
    pub fn for_team(&self, team: &TeamName) -> TeamContext {
        TeamContext::new(TeamOptions { team: Some(team.to_string()), ..self.options.clone() })
    }

    /// The options of the user.
    pub fn options(&self) -> &TeamOptions {
        &self.options
    }

    /// The canonical path of the root. The root need not exist.
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the caller is an agent of another root.
    pub fn root_path(&self) -> Result<PathBuf, ErrorReport> {
        if let Some(path) = self.root.get() {
            return Ok(path.clone());
        }
        let absolute = absolute(&store::resolve_root_path(self.options.root.as_deref())?)?;
        check_own_root(&absolute)?;
        store::check_own_link(&absolute)?;
        // The path is cached only if the root exists. If it does not exist yet, it may be created
        // later as a symbolic link, which would change its canonical path.
        match absolute.canonicalize() {
            Ok(path) => Ok(self.root.get_or_init(|| path).clone()),
            Err(_) => Ok(path_before_creation(&absolute)),
        }
    }

    /// The directories of teamd's own files for this root.
    pub fn directories(&self) -> Result<Directories, ErrorReport> {
        Ok(store::directories_for_root(&self.root_path()?))
    }

    /// Path of the control socket of a daemon that is started from this environment.
    pub fn socket(&self) -> Result<PathBuf, ErrorReport> {
        match &self.options.socket {
            Some(path) => absolute(path),
            None => Ok(self.directories()?.control_socket()),
        }
    }

    /// Path of the control socket of the running daemon, which may have been started from another
    /// environment (see [`find_other_socket`]).
    pub fn daemon_socket(&self) -> Result<PathBuf, ErrorReport> {
        let expected = self.socket()?;
        // A daemon that was killed leaves its socket.
        let other_socket = match Connection::open_without_blocking(&expected) {
            Err(Error::NotRunning { .. }) => self.other_socket()?,
            _ => None,
        };
        Ok(other_socket.unwrap_or(expected))
    }

    /// The socket of the running daemon, if it differs from [`Self::socket`], for example because
    /// the daemon was started from another environment. `None` if there is no such daemon, or if
    /// the user has named a socket with `--socket`.
    ///
    /// A socket in `TEAMD_SOCKET` does not count as named by the user. The daemon sets this
    /// variable for its agents, and a later daemon may use another socket.
    fn other_socket(&self) -> Result<Option<PathBuf>, ErrorReport> {
        match &self.options.socket {
            Some(socket) if env_var("TEAMD_SOCKET").map(PathBuf::from).as_ref() != Some(socket) => Ok(None),
            _ => Ok(find_other_socket(&self.root_path()?, &self.directories()?, &self.socket()?)),
        }
    }

    /// Connects to the running daemon.
    fn connect(&self) -> Result<Connection, ErrorReport> {
        match Connection::open(&self.socket()?) {
            Err(error @ Error::NotRunning { .. }) => match self.other_socket()? {
                Some(other_socket) => Ok(Connection::open(&other_socket)?),
                None => Err(error.into()),
            },
            connection => Ok(connection?),
        }
    }

    /// A client that asks the daemon for a member's next task.
    pub fn next_task_client(&self) -> Result<NextTaskClient, ErrorReport> {
        Ok(NextTaskClient::new(self.daemon_address()?))
    }

    /// The places where a process looks for the daemon if it connects to the daemon often.
    pub fn daemon_address(&self) -> Result<DaemonAddress, ErrorReport> {
        Ok(DaemonAddress { socket: self.socket()?, state_dir: self.state_dir_path()? })
    }

    /// Waits until the home of `team` (the host with its true files) has confirmed that the owner
    /// of `task` has the task. Returns at once if the home is this host, or if the task is not in
    /// progress.
    ///
    /// # Errors
    ///
    /// The reason why the owner does not have the task, or why this is not known. In both cases the
    /// caller must not begin the task.
    pub fn confirm_task(&self, team: &Team, task: &Task) -> Result<(), ErrorReport> {
        confirm_task_in_progress(&self.daemon_address()?, team, task)
    }

    /// Path of the state directory, which need not exist. Commands that only read use it.
    pub fn state_dir_path(&self) -> Result<PathBuf, ErrorReport> {
        Ok(self.directories()?.state_dir)
    }

    /// The state directory: teamd's own files for this root. It is created if it is missing.
    pub fn state_dir(&self) -> Result<StateDir, ErrorReport> {
        StateDir::open(&self.directories()?.state_dir).map_err(ErrorReport::from)
    }

    /// Opens an existing root and checks it.
    ///
    /// # Errors
    ///
    /// `NotFound` if the root does not exist yet, or has no directory `teams`.
    pub fn root(&self) -> Result<Root, ErrorReport> {
        if let Some(root) = self.existing_root()? {
            return Ok(root);
        }
        let path = self.root_path()?;
        Err(match &self.options.team {
            Some(name) => missing_team_error(&path, name, &[]),
            None => no_team_error(&path),
        })
    }

    /// Like [`TeamContext::root`], but returns `None` and creates nothing if the root has no
    /// directory `teams` yet.
    pub fn existing_root(&self) -> Result<Option<Root>, ErrorReport> {
        let root = self.root_path()?;
        if store::has_teams_directory(&root) {
            return self.open_or_create_root().map(Some);
        }
        store::check_root_trusted(&root)?;
        Ok(None)
    }

    /// Opens the root and checks it. Creates what is missing.
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the caller belongs to an earlier spawn of its member, and a newer spawn
    /// runs; also the errors of [`Root::open`].
    pub fn open_or_create_root(&self) -> Result<Root, ErrorReport> {
        check_own_spawn(&self.directories()?.state_dir)?;
        let durability = Durability::from_env_value(env_var("TEAMD_DURABILITY").as_deref())?;
        Root::open(&self.root_path()?, &self.directories()?.state_dir, durability).map_err(ErrorReport::from)
    }

    /// Name of the selected team: the team that the options name, or else the only candidate
    /// ([`Self::candidate_teams`]).
    ///
    /// # Errors
    ///
    /// `Usage` if there are several candidates.
    pub fn team_name(&self, root: &Root) -> Result<TeamName, ErrorReport> {
        only_team(&self.candidate_teams(root)?)
    }

    /// Like [`TeamContext::team_name`], for a team that is to be deleted. A team that the options
    /// name need not have a `config.json`, because a crash may have interrupted the deletion of the
    /// team.
    ///
    /// # Errors
    ///
    /// As [`TeamContext::team_name`].
    pub fn team_name_for_deletion(&self, root: &Root) -> Result<TeamName, ErrorReport> {
        let named_team = self.options.team.as_ref().and_then(|name| TeamName::parse(name).ok());
        match named_team {
            Some(name) if root.open_team_without_config(&name)?.is_some() => {
                check_own_team(&name)?;
                Ok(name)
            }
            _ => self.team_name(root),
        }
    }

    /// The teams that this caller's command may mean. If the options name a team, only that team.
    /// Otherwise all teams except session teams, which sessions of Claude Code create for
    /// themselves. But if these are several and the caller runs in a lead session, only the team
    /// that this session leads.
    pub fn candidate_teams(&self, root: &Root) -> Result<Vec<TeamName>, ErrorReport> {
        if let Some(name) = &self.options.team {
            let team = team_by_name(root, name)?;
            check_own_team(&team)?;
            return Ok(vec![team]);
        }
        let teams: Vec<TeamName> = root.teams()?.into_iter().filter(|t| !t.is_claude_session()).collect();
        match teams.as_slice() {
            [_] => Ok(teams),
            [] => match root.teams_without_config()?.iter().find(|team| !team.is_claude_session()) {
                Some(team) => Err(missing_config_error(root, team)),
                None => Err(no_team_error(root.path())),
            },
            _ => match find_lead_session(&self.directories()?) {
                Some(lead) => Ok(vec![team_by_name(root, lead.team.as_str())?]),
                None => Ok(teams),
            },
        }
    }

    /// Checks that the caller may act in `team`. Used by commands that do not open the root.
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the caller is a member of another team, or belongs to an earlier spawn of
    /// its member while a newer spawn runs.
    pub fn check_acts_in(&self, team: Option<&TeamName>) -> Result<(), ErrorReport> {
        team.map_or(Ok(()), check_own_team)?;
        check_own_spawn(&self.directories()?.state_dir)
    }

    /// Opens the selected team.
    pub fn team(&self) -> Result<Team, ErrorReport> {
        let root = self.root()?;
        root.team(&self.team_name(&root)?).map_err(ErrorReport::from)
    }

    /// Opens the selected team as the caller.
    pub fn caller(&self) -> Result<Caller, ErrorReport> {
        Ok(self.caller_in(self.team()?))
    }

    /// The caller in a team that is already open.
    pub fn caller_in(&self, team: Team) -> Caller {
        Caller::new(team, self.caller_name())
    }

    /// Name of the caller in its team. `team-lead` outside of agents.
    pub fn caller_name(&self) -> MemberName {
        env_var("TEAMD_MEMBER").map_or_else(MemberName::lead, |name| MemberName::new_unchecked(&name))
    }

    /// The caller's token, which proves to the daemon which agent the caller is. `None` if the
    /// caller is not an agent.
    pub fn token(&self) -> Option<String> {
        env_var("TEAMD_TOKEN")
    }

    /// Sends a request to the daemon and waits for the reply. Fails at once if the daemon dies.
    pub fn call_daemon(&self, request: Request) -> Result<Reply, ErrorReport> {
        self.call_daemon_with(self.token(), request)
    }

    /// Sends a request to the daemon and returns the payload of the reply.
    ///
    /// # Errors
    ///
    /// As [`Self::call_daemon`], and `Internal` if the reply has another kind of payload.
    pub fn request<T: ReplyPayload>(&self, request: Request) -> Result<T, ErrorReport> {
        payload_of(self.call_daemon(request)?)
    }

    /// Requests the daemon's status without the caller's token. The daemon would reject a token
    /// that it does not know, for example the token of an agent whose record was lost.
    pub fn daemon_status(&self) -> Result<StatusReply, ErrorReport> {
        self.call_daemon_with(None, Request::Status).and_then(payload_of)
    }

    /// Has the daemon make a git worktree for a member.
    pub fn create_worktree(&self, request: WorktreeRequest) -> Result<WorktreeReply, ErrorReport> {
        self.request(Request::CreateWorktree(request))
    }

    /// Sends a request, as [`Self::request`] does, and also returns the connection. The caller
    /// keeps the connection open to keep what the request has reserved, such as a slot on a host.
    /// The reservation ends when the connection closes.
    ///
    /// # Errors
    ///
    /// As [`Self::request`].
    pub fn request_on_open_connection<T: ReplyPayload>(
        &self,
        request: Request,
    ) -> Result<(T, Connection), ErrorReport> {
        let mut connection = self.connect()?;
        let reply = self.call_on(&mut connection, self.token(), request)?;
        Ok((payload_of(reply)?, connection))
    }

    fn call_daemon_with(&self, token: Option<String>, request: Request) -> Result<Reply, ErrorReport> {
        self.call_on(&mut self.connect()?, token, request)
    }

    fn call_on(
        &self,
        connection: &mut Connection,
        token: Option<String>,
        request: Request,
    ) -> Result<Reply, ErrorReport> {
        connection.set_timeout(reply_timeout(&request))?;
        let idempotency_key = Some(uuid::Uuid::new_v4().to_string());
        // The user may have named the socket of another root's daemon by mistake. So the call names
        // the caller's own root, and a daemon of another root refuses the call. A call with a token
        // needs no root, because only the daemon of the agent's root knows the token.
        let root = match token {
            Some(_) => None,
            None => Some(self.root_path()?.to_string_lossy().into_owned()),
        };
        match connection.call(&Call { root, token, idempotency_key, ..Call::new(request) })? {
            Response::Done(reply) => Ok(*reply),
            Response::Failed(error) => Err(error),
        }
    }
}

/// Returns the only team in `candidates`.
///
/// # Errors
///
/// `Usage` if `candidates` has several teams.
pub(crate) fn only_team(candidates: &[TeamName]) -> Result<TeamName, ErrorReport> {
    match candidates {
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(TeamName::as_str).collect();
            let message = format!("cannot tell which team is meant: there are {}", names.join(", "));
            Err(ErrorReport::new(ErrorKind::Usage, message).with_help("name one with -t TEAM"))
        }
    }
}

/// Finds the team `name`. An invalid name is first converted to a valid one.
pub fn team_by_name(root: &Root, name: &str) -> Result<TeamName, ErrorReport> {
    let team = TeamName::parse(name).or_else(|_| TeamName::sanitize(name));
    let team = team.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
    let teams = root.teams()?;
    if teams.contains(&team) {
        return Ok(team);
    }
    if !team.is_claude_session() && root.teams_without_config()?.contains(&team) {
        return Err(missing_config_error(root, &team));
    }
    let suggestion = did_you_mean(team.as_str(), teams.iter().map(TeamName::as_str));
    let error = missing_team_error(root.path(), team.as_str(), &teams);
    Err(match suggestion {
        Some(suggestion) => error.with_help(suggestion),
        None => error,
    })
}

/// The canonical path that `path` will have once its directory is created. Symbolic links in the
/// nearest ancestor that exists are resolved.
fn path_before_creation(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors().skip(1);
    let resolved_path = ancestors
        .find_map(|ancestor| Some(ancestor.canonicalize().ok()?.join(path.strip_prefix(ancestor).ok()?)));
    resolved_path.unwrap_or_else(|| path.to_owned())
}

fn absolute(path: &Path) -> Result<PathBuf, ErrorReport> {
    std::path::absolute(path).map_err(|error| ErrorReport::from_io("find", path, &error))
}

/// The name of a member as spelled in the team's config.
pub fn member_name(team: &Team, name: &str) -> Result<MemberName, ErrorReport> {
    team.member(name).map(|member| member.name).map_err(ErrorReport::from)
}
