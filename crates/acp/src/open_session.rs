//! Opens the program's session: initializes the connection, loads an earlier session or creates a
//! new one, and sets the session's first mode.

use crate::agent_connection::{error_text, send_request};
use crate::args::DriverArgs;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthMethod, ClientCapabilities, EnvVariable, ErrorCode, FileSystemCapabilities, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, McpServer, McpServerStdio, NewSessionRequest,
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOptions, SessionId, SessionModeState, SetSessionConfigOptionRequest,
    SetSessionModeRequest,
};
use agent_client_protocol::{Agent, Error};
use protocol::find_sibling_program::installed_program;
use std::path::{Path, PathBuf};

/// Environment variables that are passed to the team's MCP server, in addition to all variables
/// that begin with `TEAMD_`.
const MCP_VARIABLES: [&str; 6] =
    ["PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"];

/// An open session.
#[derive(Debug)]
pub(crate) struct AcpSession {
    pub(crate) id: SessionId,
    pub(crate) modes: ModeSupport,
    pub(crate) history: SessionHistory,
    /// Why the earlier session was not loaded, as a text for the pane. `None` if the session was
    /// loaded, or if no earlier session was requested.
    pub(crate) load_failure: Option<String>,
}

/// Whether the session has had a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionHistory {
    /// The session was created and had no prompt yet.
    Empty,
    HasPrompts,
}

/// How the program's mode is changed.
#[derive(Debug, PartialEq)]
pub(crate) enum ModeSupport {
    /// The program has no modes.
    Unsupported,
    /// By `session/set_mode`; the ids of the modes.
    SessionModes(Vec<String>),
    /// By `session/set_config_option`: the id of the option and its values.
    ConfigOption(String, Vec<String>),
}

/// Initializes the connection to the program, opens a session and sets the session's first mode.
///
/// # Errors
///
/// What went wrong, as a text for people, without the program's name. The caller puts the name
/// before the text.
pub(crate) async fn open_session(
    agent: &ConnectionTo<Agent>,
    args: &DriverArgs,
) -> Result<AcpSession, String> {
    let initialized = initialize(agent).await?;
    let cwd = std::env::current_dir().map_err(|error| format!("cannot find its directory: {error}"))?;
    let session = load_or_create(agent, args, &initialized, cwd).await?;
    if let Some(mode) = &args.mode {
        let set = set_mode(agent, &session, mode).await;
        set.map_err(|error| format!("cannot begin in the mode {mode}: {error}"))?;
    }
    Ok(session)
}

async fn initialize(agent: &ConnectionTo<Agent>) -> Result<InitializeResponse, String> {
    let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let request = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files))
        .client_info(Implementation::new("teamd", env!("CARGO_PKG_VERSION")));
    // The library checks the protocol version of the answer.
    let response = send_request(agent, request).await;
    response.map_err(|error| format!("cannot initialize: {}", error_text(&error)))
}

async fn load_or_create(
    agent: &ConnectionTo<Agent>,
    args: &DriverArgs,
    program: &InitializeResponse,
    cwd: PathBuf,
) -> Result<AcpSession, String> {
    let mut load_failure = None;
    if let Some(id) = &args.session {
        let loaded = if program.agent_capabilities.load_session {
            load_session(agent, id, cwd.clone()).await.map_err(|error| error_text(&error))
        } else {
            Err("the program cannot load sessions".to_owned())
        };
        match loaded {
            Ok(session) => return Ok(session),
            Err(error) => {
                load_failure = Some(format!("cannot load the earlier session: {error}; created a new one"));
            }
        }
    }
    let new = send_request(agent, NewSessionRequest::new(cwd).mcp_servers(team_mcp_server())).await;
    let new = new.map_err(|error| session_error(&error, &program.auth_methods))?;
    let modes = ModeSupport::new(new.modes.as_ref(), new.config_options.as_deref());
    Ok(AcpSession { id: new.session_id, modes, history: SessionHistory::Empty, load_failure })
}

async fn load_session(agent: &ConnectionTo<Agent>, id: &str, cwd: PathBuf) -> Result<AcpSession, Error> {
    let request = LoadSessionRequest::new(id.to_owned(), cwd).mcp_servers(team_mcp_server());
    let loaded = send_request(agent, request).await?;
    let modes = ModeSupport::new(loaded.modes.as_ref(), loaded.config_options.as_deref());
    Ok(AcpSession { id: SessionId::new(id), modes, history: SessionHistory::HasPrompts, load_failure: None })
}

fn session_error(error: &Error, methods: &[AuthMethod]) -> String {
    let text = error_text(error);
    if error.code != ErrorCode::AuthRequired {
        return format!("cannot open a session: {text}");
    }
    let methods: Vec<&str> = methods.iter().map(AuthMethod::name).collect();
    format!("wants you to log in first ({}): {text}", methods.join(", "))
}

/// The team's MCP server, `teamctl mcp`, as a list with one element. The list is empty if this
/// installation has no `teamctl`.
fn team_mcp_server() -> Vec<McpServer> {
    let teamctl = std::env::current_exe().ok().map(|own| installed_program(&own, "teamctl", Path::is_file));
    let Some(teamctl) = teamctl.filter(|teamctl| teamctl.is_file()) else { return Vec::new() };
    let is_passed = |name: &str| name.starts_with("TEAMD_") || MCP_VARIABLES.contains(&name);
    let env = std::env::vars().filter(|(name, _)| is_passed(name));
    let env = env.map(|(name, value)| EnvVariable::new(name, value)).collect();
    vec![McpServer::Stdio(McpServerStdio::new("team", teamctl).args(vec!["mcp".to_owned()]).env(env))]
}

/// Changes the session's mode. An error is the reason, for people.
pub(crate) async fn set_mode(
    agent: &ConnectionTo<Agent>,
    session: &AcpSession,
    mode: &str,
) -> Result<(), String> {
    let known = session.modes.mode_ids();
    if !known.iter().any(|known| known == mode) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!("it has no such mode; it has: {known}"));
    }
    let set = match &session.modes {
        ModeSupport::ConfigOption(option, _) => {
            let value = SessionConfigOptionValue::value_id(mode.to_owned());
            let request = SetSessionConfigOptionRequest::new(session.id.clone(), option.clone(), value);
            send_request(agent, request).await.map(drop)
        }
        _ => send_request(agent, SetSessionModeRequest::new(session.id.clone(), mode.to_owned()))
            .await
            .map(drop),
    };
    set.map_err(|error| error_text(&error))
}

impl ModeSupport {
    fn new(modes: Option<&SessionModeState>, options: Option<&[SessionConfigOption]>) -> ModeSupport {
        if let Some(modes) = modes {
            return ModeSupport::SessionModes(
                modes.available_modes.iter().map(|mode| mode.id.to_string()).collect(),
            );
        }
        let is_mode =
            |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Mode);
        match options.unwrap_or_default().iter().find(is_mode) {
            Some(option) => ModeSupport::ConfigOption(option.id.to_string(), option_values(option)),
            None => ModeSupport::Unsupported,
        }
    }

    /// The ids of the modes, as the program names them.
    pub(crate) fn mode_ids(&self) -> &[String] {
        match self {
            ModeSupport::Unsupported => &[],
            ModeSupport::SessionModes(ids) | ModeSupport::ConfigOption(_, ids) => ids,
        }
    }
}

fn option_values(option: &SessionConfigOption) -> Vec<String> {
    let SessionConfigKind::Select(select) = &option.kind else { return Vec::new() };
    match &select.options {
        SessionConfigSelectOptions::Ungrouped(options) => {
            options.iter().map(|option| option.value.to_string()).collect()
        }
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).map(|option| option.value.to_string()).collect()
        }
        _ => Vec::new(),
    }
}
