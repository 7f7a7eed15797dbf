//! Those who take tasks: one by the command line, three by the MCP server, one a foreign program with the two locks of its
//! kind, the others by the library. A server is killed now and then in the middle of it.

use super::ClaimRound;
use harness::{McpClient, random_delay};
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
pub(super) enum ClaimResult {
    Won,
    /// With the words of the refusal.
    Lost(String),
    /// Without a word of who has it.
    LostUnexplained,
    /// It was killed: it may have won.
    Killed,
}

/// By what one claims.
pub(super) enum Claimer {
    Command(String),
    McpServer { mcp: McpClient, rng: fastrand::Rng, me: String },
    Foreign(ForeignClaimer),
    Library { tasks: Tasks, me: AgentName },
}

/// It reads ids, and says won or lost.
pub(super) struct ForeignClaimer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Claimer {
    pub(super) fn new(round: &ClaimRound, which: usize) -> Claimer {
        let me = name(which);
        match which {
            0 => Claimer::Command(me),
            1..4 => Claimer::McpServer { mcp: start_mcp_server(round, &me), rng: round.rng(100 + which), me },
            4 => ForeignClaimer::start(round, &me)
                .map_or_else(|| library_claimer(round, &me), Claimer::Foreign),
            _ => library_claimer(round, &me),
        }
    }

    pub(super) fn claim(&mut self, round: &ClaimRound, id: u64) -> ClaimResult {
        match self {
            Claimer::Command(me) => claim_by_command(round, me, id),
            Claimer::McpServer { mcp, rng, me } => {
                let change = json!({"taskId": id.to_string(), "status": "in_progress"});
                if rng.u32(0..10) == 0 {
                    mcp.call_and_kill("TaskUpdate", &change, random_delay(rng));
                    *mcp = start_mcp_server(round, me);
                    return ClaimResult::Killed;
                }
                mcp.call("TaskUpdate", &change).map_or_else(ClaimResult::Lost, |_| ClaimResult::Won)
            }
            Claimer::Foreign(foreign) => foreign.claim(id),
            Claimer::Library { tasks, me } => {
                let id = TaskId::from_number(u32::try_from(id).unwrap()).unwrap();
                tasks
                    .claim(Some(&id), me)
                    .map_or_else(|error| ClaimResult::Lost(error.to_string()), |_| ClaimResult::Won)
            }
        }
    }

    pub(super) fn close(self) {
        match self {
            Claimer::McpServer { mcp, .. } => drop(mcp.close()),
            Claimer::Foreign(ForeignClaimer { mut child, input, .. }) => {
                drop(input);
                assert!(child.wait().unwrap().success());
            }
            Claimer::Command(_) | Claimer::Library { .. } => {}
        }
    }
}

fn library_claimer(round: &ClaimRound, me: &str) -> Claimer {
    Claimer::Library { tasks: round.open().tasks(), me: AgentName::new_unchecked(me) }
}

fn start_mcp_server(round: &ClaimRound, me: &str) -> McpClient {
    McpClient::connect_with_env(round.env, &[], &[("TEAMD_MEMBER", me), ("TEAMD_TEAM", round.team.as_str())])
}

fn claim_by_command(round: &ClaimRound, me: &str, id: u64) -> ClaimResult {
    let words = ["-t", round.team.as_str(), "task", "claim", &id.to_string()];
    let ran = round.env.teamctl_with(&words, &[("TEAMD_MEMBER", me)]);
    match ran.code {
        0 => ClaimResult::Won,
        // 65: it is half written for longer than anybody waits.
        65 | 73 => ClaimResult::Lost(ran.stderr),
        _ => panic!("{ran:#?}"),
    }
}

impl ForeignClaimer {
    /// None where this machine has not what it needs: said by its fellow that makes tasks.
    fn start(round: &ClaimRound, me: &str) -> Option<ForeignClaimer> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers");
        if !scripts.join("node_modules").is_dir() {
            assert!(std::env::var_os("FOREIGN").is_none(), "the node modules are not there: run make test");
            return None;
        }
        let mut command = Command::new("node");
        command
            .arg(scripts.join("task_claimer.js"))
            .arg(round.tasks())
            .arg(me)
            .env("TEST_DIR", round.env.path(""));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(ForeignClaimer { child, input, output })
    }

    fn claim(&mut self, id: u64) -> ClaimResult {
        writeln!(self.input, "{id}").unwrap();
        let mut said = String::new();
        self.output.read_line(&mut said).unwrap();
        match said.trim() {
            "won" => ClaimResult::Won,
            "lost" => ClaimResult::LostUnexplained,
            _ => panic!("the foreign claimant is gone"),
        }
    }
}
