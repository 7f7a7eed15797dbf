//! Under whose process this one runs, where its own environment does not say: many programs start their MCP servers
//! with a bare one, and settings that all sessions of a program share can't name an agent.

use client::process_table::self_and_ancestors;
use protocol::control::shim_command;
use std::collections::BTreeMap;
use std::path::Path;
use store::env_var;

/// What an agent's processes know of themselves.
pub(super) type AgentEnvironment = BTreeMap<String, String>;

/// Where our own files are, as the agent has it; taken over where it is not said here.
const DIRECTORY_VARIABLES: [&str; 4] = ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"];

/// Whose processes are above this one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParentAgent {
    /// No agent's.
    NotFound,
    /// An agent's, which would find these here too.
    Known(AgentEnvironment),
    /// An agent's, and none of them tells which one.
    Unidentified,
}

/// Of which root, and so of which daemon, an agent must be; none: of any.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedRoot<'a> {
    pub(super) root: &'a Path,
    pub(super) socket: &'a Path,
}

/// The nearest agent. One of another root than was named here is nobody: it works on a team that is not its own.
pub(super) fn parent_agent(named: Option<ExpectedRoot<'_>>) -> ParentAgent {
    let chain = self_and_ancestors().into_iter().skip(1).map(|process| process.pid);
    nearest_agent(chain.map(|pid| (read_proc(pid, "environ"), read_proc(pid, "cmdline"))), named)
}

/// Of processes from the inner to the outer, each with its environment and its arguments, as /proc has them.
fn nearest_agent(
    processes: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    named: Option<ExpectedRoot<'_>>,
) -> ParentAgent {
    for (environ, cmdline) in processes {
        let all = variables(&environ);
        if all.contains_key("TEAMD_MEMBER") && all.contains_key("TEAMD_TEAM") {
            let other = |its: &String| named.is_some_and(|named| !is_same_path(named.root, Path::new(its)));
            return match all.get("TEAMD_ROOT") {
                Some(its) if other(its) => ParentAgent::NotFound,
                _ => ParentAgent::Known(variables_to_pass(all)),
            };
        }
        if let Some(its) = shim_socket(&cmdline)
            && named.is_none_or(|named| is_same_path(named.socket, its))
        {
            return ParentAgent::Unidentified;
        }
    }
    ParentAgent::NotFound
}

/// All but the descriptor that its first process alone has.
fn variables_to_pass(all: AgentEnvironment) -> AgentEnvironment {
    let ours = |name: &str| name.starts_with("TEAMD_") && name != "TEAMD_WAKE_FD";
    let place = |name: &str| DIRECTORY_VARIABLES.contains(&name) && env_var(name).is_none();
    all.into_iter().filter(|(name, _)| ours(name) || place(name)).collect()
}

fn variables(environ: &[u8]) -> AgentEnvironment {
    let pairs = split_nul(environ).filter_map(|pair| pair.split_once('='));
    let set = pairs.filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The socket that the first process of every agent is given.
fn shim_socket(cmdline: &[u8]) -> Option<&Path> {
    let mut words = split_nul(cmdline);
    let is_ours = Path::new(words.next()?).file_name().is_some_and(|name| name == "teamd-shim");
    let joins = is_ours && words.next() == Some(shim_command::RUN);
    words.skip_while(|word| *word != "--socket").nth(1).filter(|_| joins).map(Path::new)
}

/// What is no text is none of ours.
fn split_nul(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok())
}

fn is_same_path(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

/// Nothing of a process that has gone, or is not the user's.
fn read_proc(pid: u32, what: &str) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: &[u8] = b"PATH=/bin\0TEAMD_MEMBER=ann\0TEAMD_TEAM=survey\0TEAMD_ROOT=/r\0TEAMD_WAKE_FD=7\0";
    const BOB: &[u8] = b"TEAMD_MEMBER=bob\0TEAMD_TEAM=survey\0TEAMD_ROOT=/r\0";
    const JOIN: &[u8] = b"/usr/bin/teamd-shim\0run\0c93b\0--socket\0/run/its\0";
    const OTHER: &[u8] = b"/usr/bin/teamd-shim\0run\0c93b\0--socket\0/run/another\0";

    fn parent_agent_of(processes: &[(&[u8], &[u8])], root: Option<&str>) -> ParentAgent {
        let processes = processes.iter().map(|(environ, cmdline)| (environ.to_vec(), cmdline.to_vec()));
        let socket = Path::new("/run/its");
        nearest_agent(processes, root.map(|root| ExpectedRoot { root: Path::new(root), socket }))
    }

    #[test]
    fn the_nearest_agent_is_whose_process_it_is() {
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
    fn one_of_another_root_is_nobody_and_one_that_nobody_names_is_hidden() {
        assert_eq!(parent_agent_of(&[(ANN, b"x\0")], Some("/other")), ParentAgent::NotFound);
        assert_eq!(parent_agent_of(&[(b"", b"x\0"), (b"", JOIN)], None), ParentAgent::Unidentified);
        assert_eq!(parent_agent_of(&[(b"", OTHER)], None), ParentAgent::Unidentified);
        assert_eq!(parent_agent_of(&[(b"", JOIN)], Some("/r")), ParentAgent::Unidentified);
        assert_eq!(parent_agent_of(&[(b"", OTHER)], Some("/r")), ParentAgent::NotFound);
        assert_eq!(parent_agent_of(&[(b"", b"teamd-shim\0log\0")], None), ParentAgent::NotFound);
    }
}
