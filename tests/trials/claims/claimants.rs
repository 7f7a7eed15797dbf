//! Those who take tasks: one by the command line, three by the MCP server, one a foreign program with the two locks of its
//! kind, the others by the library. A server is killed now and then in the middle of it.

use super::Round;
use harness::{Mcp, moment};
use protocol::id::TaskId;
use protocol::name::AgentName;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use store::Tasks;

/// The member that one is.
pub(super) fn name(which: usize) -> String {
    format!("w{which:02}")
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Became {
    Won,
    /// With the words of the refusal.
    Lost(String),
    /// Without a word of who has it.
    LostSilently,
    /// It was killed: it may have won.
    Killed,
}

/// By what one claims.
pub(super) enum Claimant {
    Command(String),
    Server { mcp: Mcp, rng: fastrand::Rng, me: String },
    Foreign(Foreign),
    Library { tasks: Tasks, me: AgentName },
}

/// It reads ids, and says won or lost.
pub(super) struct Foreign {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Claimant {
    pub(super) fn new(round: &Round, which: usize) -> Claimant {
        let me = name(which);
        match which {
            0 => Claimant::Command(me),
            1..4 => Claimant::Server { mcp: server(round, &me), rng: round.rng(100 + which), me },
            4 => Foreign::start(round, &me).map_or_else(|| library(round, &me), Claimant::Foreign),
            _ => library(round, &me),
        }
    }

    pub(super) fn claim(&mut self, round: &Round, id: u64) -> Became {
        match self {
            Claimant::Command(me) => by_command(round, me, id),
            Claimant::Server { mcp, rng, me } => {
                let change = json!({"taskId": id.to_string(), "status": "in_progress"});
                if rng.u32(0..10) == 0 {
                    mcp.kill_amid("TaskUpdate", &change, moment(rng));
                    *mcp = server(round, me);
                    return Became::Killed;
                }
                mcp.call("TaskUpdate", &change).map_or_else(Became::Lost, |_| Became::Won)
            }
            Claimant::Foreign(foreign) => foreign.claim(id),
            Claimant::Library { tasks, me } => {
                let id = TaskId::from_number(u32::try_from(id).unwrap()).unwrap();
                tasks
                    .claim(Some(&id), me)
                    .map_or_else(|error| Became::Lost(error.to_string()), |_| Became::Won)
            }
        }
    }

    pub(super) fn end(self) {
        match self {
            Claimant::Server { mcp, .. } => drop(mcp.end()),
            Claimant::Foreign(Foreign { mut child, input, .. }) => {
                drop(input);
                assert!(child.wait().unwrap().success());
            }
            Claimant::Command(_) | Claimant::Library { .. } => {}
        }
    }
}

fn library(round: &Round, me: &str) -> Claimant {
    Claimant::Library { tasks: round.open().tasks(), me: AgentName::new_unchecked(me) }
}

fn server(round: &Round, me: &str) -> Mcp {
    Mcp::with(round.house, &[], &[("TEAMD_AGENT", me), ("TEAMD_TEAM", round.team.as_str())])
}

fn by_command(round: &Round, me: &str, id: u64) -> Became {
    let words = ["-t", round.team.as_str(), "task", "claim", &id.to_string()];
    let ran = round.house.teamctl_with(&words, &[("TEAMD_AGENT", me)]);
    match ran.code {
        0 => Became::Won,
        // 65: it is half written for longer than anybody waits.
        65 | 73 => Became::Lost(ran.stderr),
        _ => panic!("{ran:#?}"),
    }
}

impl Foreign {
    /// None where this machine has not what it needs: said by its fellow that makes tasks.
    fn start(round: &Round, me: &str) -> Option<Foreign> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
        if !scripts.join("node_modules").is_dir() {
            assert!(std::env::var_os("FOREIGN").is_none(), "the node modules are not there: run make test");
            return None;
        }
        let mut command = Command::new("node");
        command
            .arg(scripts.join("claimant.js"))
            .arg(round.tasks())
            .arg(me)
            .env("HOUSE", round.house.path(""));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(Foreign { child, input, output })
    }

    fn claim(&mut self, id: u64) -> Became {
        writeln!(self.input, "{id}").unwrap();
        let mut said = String::new();
        self.output.read_line(&mut said).unwrap();
        match said.trim() {
            "won" => Became::Won,
            "lost" => Became::LostSilently,
            _ => panic!("the foreign claimant is gone"),
        }
    }
}
