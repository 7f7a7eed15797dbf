//! Finds the agent that started an MCP server, among the parent processes of the server. Needed if
//! the environment of the server does not name the agent.
//!
//! Many programs start their MCP servers with an empty environment. The program's settings cannot
//! name the agent either, because all sessions of the program share them.

use platform::process_tree::self_and_ancestors;
use protocol::control_socket::shim_subcommands;
use protocol::teamctl_ask_setup_and_record::ASK_VARIABLE;
use std::collections::BTreeMap;
use std::path::Path;
use store::env_var;

/// Environment variables of an agent, by name.
pub(super) type AgentEnvironment = BTreeMap<String, String>;

/// Environment variables that determine teamd's directories. If this process lacks one, it takes
/// the value from the agent that it found among its parent processes.
const DIRECTORY_VARIABLES: [&str; 4] = ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"];

/// The result of the search for an agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParentAgent {
    /// No parent process belongs to an agent.
    NotFound,
    /// A parent process belongs to an agent with these variables.
    Known(AgentEnvironment),
    /// A parent process belongs to an agent, but its name is unknown.
    Unidentified,
}

/// The root that the agent must belong to, and the socket of its daemon.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedRoot<'a> {
    pub(super) root: &'a Path,
    pub(super) socket: &'a Path,
}

/// Finds the nearest parent process that belongs to an agent, and returns that agent. Only agents
/// of the root in `expected` count, or agents of any root if `expected` is `None`.
pub(super) fn parent_agent(expected: Option<ExpectedRoot<'_>>) -> ParentAgent {
    let chain = self_and_ancestors().into_iter().skip(1).map(|process| process.pid);
    nearest_agent(chain.map(ProcessText::read), expected)
}

/// What the system shows of a process.
struct ProcessText {
    environ: Vec<u8>,
    cmdline: Vec<u8>,
}

impl ProcessText {
    /// Empty for a process that has exited or belongs to another user.
    fn read(pid: u32) -> ProcessText {
        let system = platform::system();
        ProcessText {
            environ: system.environment(pid).unwrap_or_default(),
            cmdline: system.command_line(pid),
        }
    }
}

/// Finds the first agent among `processes`, which are ordered from child to parent.
fn nearest_agent(
    processes: impl Iterator<Item = ProcessText>,
    expected_root: Option<ExpectedRoot<'_>>,
) -> ParentAgent {
    for process in processes {
        let variables = parse_variables(&process.environ);
        if variables.contains_key("TEAMD_MEMBER") && variables.contains_key("TEAMD_TEAM") {
            let is_other_root = |root: &String| {
                expected_root.is_some_and(|expected_root| !is_same_path(expected_root.root, Path::new(root)))
            };
            return match variables.get("TEAMD_ROOT") {
                Some(root) if is_other_root(root) => ParentAgent::NotFound,
                _ => ParentAgent::Known(variables_to_pass(variables)),
            };
        }
        if variables.contains_key(ASK_VARIABLE) || asks_a_program(&process.cmdline) {
            // A program that `teamctl ask` has started is no member of a team. The error must not
            // be `NotFound`, because the caller would then treat the program as a person.
            return ParentAgent::Unidentified;
        }
        if let Some(socket) = shim_socket(&process.cmdline)
            && expected_root.is_none_or(|expected_root| is_same_path(expected_root.socket, socket))
        {
            return ParentAgent::Unidentified;
        }
    }
    ParentAgent::NotFound
}

/// Selects those of the agent's environment variables that this process takes over. `TEAMD_WAKE_FD`
/// is left out: it is the number of a file descriptor that only the first process of the agent has.
fn variables_to_pass(variables: AgentEnvironment) -> AgentEnvironment {
    let is_teamd_variable = |name: &str| name.starts_with("TEAMD_") && name != "TEAMD_WAKE_FD";
    let is_directory = |name: &str| DIRECTORY_VARIABLES.contains(&name) && env_var(name).is_none();
    variables.into_iter().filter(|(name, _)| is_teamd_variable(name) || is_directory(name)).collect()
}

/// The variables that are not empty.
fn parse_variables(environ: &[u8]) -> AgentEnvironment {
    let pairs = split_nul(environ).filter_map(|pair| pair.split_once('='));
    let pairs = pairs.filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The daemon's socket, if the process is a shim that runs an agent.
fn shim_socket(cmdline: &[u8]) -> Option<&Path> {
    let mut arguments = split_nul(cmdline);
    let is_shim = Path::new(arguments.next()?).file_name().is_some_and(|name| name == "teamd-shim");
    let runs_agent = is_shim && arguments.next() == Some(shim_subcommands::RUN);
    arguments.skip_while(|argument| *argument != "--socket").nth(1).filter(|_| runs_agent).map(Path::new)
}

/// Whether the process is a shim that asks a program one question.
fn asks_a_program(cmdline: &[u8]) -> bool {
    let mut arguments = split_nul(cmdline);
    let is_shim = arguments.next().is_some_and(|program| program.ends_with("teamd-shim"));
    is_shim && arguments.next() == Some(shim_subcommands::ASK)
}

/// Splits a list whose entries end with a NUL. Entries that are not UTF-8 are skipped: teamd sets
/// none.
fn split_nul(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok())
}

fn is_same_path(first: &Path, second: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    canonical(first) == canonical(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: &[u8] = b"PATH=/bin\0TEAMD_MEMBER=ann\0TEAMD_TEAM=survey\0TEAMD_ROOT=/r\0TEAMD_WAKE_FD=7\0";
    const BOB: &[u8] = b"TEAMD_MEMBER=bob\0TEAMD_TEAM=survey\0TEAMD_ROOT=/r\0";
    const SHIM: &[u8] = b"/usr/bin/teamd-shim\0run\0c93b\0--socket\0/run/its\0";
    const OTHER_SHIM: &[u8] = b"/usr/bin/teamd-shim\0run\0c93b\0--socket\0/run/another\0";

    fn parent_agent_of(processes: &[(&[u8], &[u8])], root: Option<&str>) -> ParentAgent {
        let processes = processes
            .iter()
            .map(|(environ, cmdline)| ProcessText { environ: environ.to_vec(), cmdline: cmdline.to_vec() });
        let socket = Path::new("/run/its");
        nearest_agent(processes, root.map(|root| ExpectedRoot { root: Path::new(root), socket }))
    }

    #[test]
    fn nearest_agent_is_found() {
        let ParentAgent::Known(ann) = parent_agent_of(&[(b"", b"sh\0"), (ANN, b"x\0"), (BOB, b"y\0")], None)
        else {
            panic!()
        };
        assert_eq!((ann["TEAMD_MEMBER"].as_str(), ann["TEAMD_ROOT"].as_str()), ("ann", "/r"));
        assert!(!ann.contains_key("TEAMD_WAKE_FD") && !ann.contains_key("PATH"), "{ann:?}");
        assert!(matches!(parent_agent_of(&[(ANN, b"x\0")], Some("/r")), ParentAgent::Known(_)));
        assert_eq!(
            parent_agent_of(&[(b"A=b\0\xff", b"bash\0"), (b"TEAMD_MEMBER=\0TEAMD_TEAM=t\0", b"x\0")], None),
            ParentAgent::NotFound
        );
    }

    #[test]
    fn agent_of_another_root_is_ignored_and_an_agent_without_variables_is_unidentified() {
        assert_eq!(parent_agent_of(&[(ANN, b"x\0")], Some("/other")), ParentAgent::NotFound);
        assert_eq!(parent_agent_of(&[(b"", b"x\0"), (b"", SHIM)], None), ParentAgent::Unidentified);
        assert_eq!(parent_agent_of(&[(b"", OTHER_SHIM)], None), ParentAgent::Unidentified);
        assert_eq!(parent_agent_of(&[(b"", SHIM)], Some("/r")), ParentAgent::Unidentified);
        assert_eq!(parent_agent_of(&[(b"", OTHER_SHIM)], Some("/r")), ParentAgent::NotFound);
        assert_eq!(parent_agent_of(&[(b"", b"teamd-shim\0log\0")], None), ParentAgent::NotFound);
    }
}
