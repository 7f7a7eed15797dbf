//! From the program's first word to its session: who speaks with whom, an earlier session or a new one, the mode to
//! begin in.

use crate::args::Args;
use crate::client::{answered, in_words};
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
use std::path::PathBuf;

/// What of our environment the server of the team's tools needs, beside all that is called TEAMD_.
const TO_THE_TOOLS: [&str; 6] =
    ["PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"];

/// An open session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) modes: Modes,
    pub(crate) is_new: bool,
    /// For the pane: why it is not the session that was asked for.
    pub(crate) note: Option<String>,
}

/// How the program changes its mode.
#[derive(Debug, PartialEq)]
pub(crate) enum Modes {
    /// It can't.
    None,
    /// By modes of the session; their ids.
    Ids(Vec<String>),
    /// By an option of the session that is called so; its values.
    Option(String, Vec<String>),
}

/// All of it; the text of an error is a sentence without its subject's end.
pub(crate) async fn open(agent: &ConnectionTo<Agent>, args: &Args) -> Result<Session, String> {
    let initialized = initialize(agent).await?;
    let cwd = std::env::current_dir().map_err(|error| format!("cannot find its directory: {error}"))?;
    let session = session(agent, args, &initialized, cwd).await?;
    if let Some(mode) = &args.mode {
        let set = set_mode(agent, &session, mode).await;
        set.map_err(|why| format!("cannot begin in the mode {mode}: {why}"))?;
    }
    Ok(session)
}

async fn initialize(agent: &ConnectionTo<Agent>) -> Result<InitializeResponse, String> {
    let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let request = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files))
        .client_info(Implementation::new("teamd", env!("CARGO_PKG_VERSION")));
    // The library sees to it that the answer is of the same version.
    let response = answered(agent, request).await;
    response.map_err(|error| format!("cannot initialize: {}", in_words(&error)))
}

async fn session(
    agent: &ConnectionTo<Agent>,
    args: &Args,
    program: &InitializeResponse,
    cwd: PathBuf,
) -> Result<Session, String> {
    let mut note = None;
    if let Some(id) = &args.session {
        let before = if program.agent_capabilities.load_session {
            load(agent, id, cwd.clone()).await.map_err(|error| in_words(&error))
        } else {
            Err("the program keeps none".to_owned())
        };
        match before {
            Ok(session) => return Ok(session),
            Err(why) => note = Some(format!("The earlier session is gone ({why}): a new one.")),
        }
    }
    let new = answered(agent, NewSessionRequest::new(cwd).mcp_servers(tools())).await;
    let new = new.map_err(|error| no_session(&error, &program.auth_methods))?;
    let modes = Modes::of(new.modes.as_ref(), new.config_options.as_deref());
    Ok(Session { id: new.session_id, modes, is_new: true, note })
}

async fn load(agent: &ConnectionTo<Agent>, id: &str, cwd: PathBuf) -> Result<Session, Error> {
    let request = LoadSessionRequest::new(id.to_owned(), cwd).mcp_servers(tools());
    let loaded = answered(agent, request).await?;
    let modes = Modes::of(loaded.modes.as_ref(), loaded.config_options.as_deref());
    Ok(Session { id: SessionId::new(id), modes, is_new: false, note: None })
}

fn no_session(error: &Error, methods: &[AuthMethod]) -> String {
    let why = in_words(error);
    if error.code != ErrorCode::AuthRequired {
        return format!("cannot open a session: {why}");
    }
    let methods: Vec<&str> = methods.iter().map(AuthMethod::name).collect();
    format!("wants you to log in first ({}): {why}", methods.join(", "))
}

/// The team's tools: `teamctl mcp`, where teamctl lies beside us.
fn tools() -> Vec<McpServer> {
    let own = std::env::current_exe().ok().map(|own| own.with_file_name("teamctl"));
    let Some(teamctl) = own.filter(|teamctl| teamctl.is_file()) else { return Vec::new() };
    let known = |name: &str| name.starts_with("TEAMD_") || TO_THE_TOOLS.contains(&name);
    let env = std::env::vars().filter(|(name, _)| known(name));
    let env = env.map(|(name, value)| EnvVariable::new(name, value)).collect();
    vec![McpServer::Stdio(McpServerStdio::new("team", teamctl).args(vec!["mcp".to_owned()]).env(env))]
}

/// Goes on in the mode; else why not.
pub(crate) async fn set_mode(
    agent: &ConnectionTo<Agent>,
    session: &Session,
    mode: &str,
) -> Result<(), String> {
    let known = session.modes.known();
    if !known.iter().any(|known| known == mode) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!("it has no such mode; it has: {known}"));
    }
    let set = match &session.modes {
        Modes::Option(option, _) => {
            let value = SessionConfigOptionValue::value_id(mode.to_owned());
            let request = SetSessionConfigOptionRequest::new(session.id.clone(), option.clone(), value);
            answered(agent, request).await.map(drop)
        }
        _ => answered(agent, SetSessionModeRequest::new(session.id.clone(), mode.to_owned())).await.map(drop),
    };
    set.map_err(|error| in_words(&error))
}

impl Modes {
    fn of(modes: Option<&SessionModeState>, options: Option<&[SessionConfigOption]>) -> Modes {
        if let Some(modes) = modes {
            return Modes::Ids(modes.available_modes.iter().map(|mode| mode.id.to_string()).collect());
        }
        let is_mode =
            |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Mode);
        match options.unwrap_or_default().iter().find(is_mode) {
            Some(option) => Modes::Option(option.id.to_string(), values(option)),
            None => Modes::None,
        }
    }

    /// What it calls them.
    pub(crate) fn known(&self) -> &[String] {
        match self {
            Modes::None => &[],
            Modes::Ids(ids) | Modes::Option(_, ids) => ids,
        }
    }
}

fn values(option: &SessionConfigOption) -> Vec<String> {
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
