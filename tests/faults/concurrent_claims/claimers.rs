//! The claimers. One of them runs `teamctl task claim`, three use the MCP server, one is a foreign
//! program that takes both locks, and the others call the `store` crate. MCP servers are sometimes
//! killed while they claim.

use super::ClaimRound;
use harness::{McpClient, random_delay};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use store::Tasks;

/// The member for which a claimer claims.
pub(super) fn claimer_name(index: usize) -> String {
    format!("w{index:02}")
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimResult {
    Won,
    /// With the error text.
    Lost(String),
    /// The foreign program does not report who owns the task.
    LostUnexplained,
    /// The server was killed, so the claim may have won or not.
    Killed,
}

/// The program or library that a claimer uses.
pub(super) enum Claimer {
    Command(String),
    McpServer { mcp: McpClient, rng: fastrand::Rng, name: String },
    Foreign(ForeignClaimer),
    Library { tasks: Tasks, name: MemberName },
}

/// A foreign program that reads task ids from its input and prints `won` or `lost` for each.
pub(super) struct ForeignClaimer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Claimer {
    pub(super) fn new(round: &ClaimRound, index: usize) -> Claimer {
        let name = claimer_name(index);
        match index {
            0 => Claimer::Command(name),
            1..4 => {
                let mcp = start_mcp_server(round, &name);
                Claimer::McpServer { mcp, rng: round.rng(100 + index), name }
            }
            4 => ForeignClaimer::start(round, &name)
                .map_or_else(|| library_claimer(round, &name), Claimer::Foreign),
            _ => library_claimer(round, &name),
        }
    }

    pub(super) fn claim(&mut self, round: &ClaimRound, id: u64) -> ClaimResult {
        match self {
            Claimer::Command(name) => claim_by_command(round, name, id),
            Claimer::McpServer { mcp, rng, name } => {
                let change = json!({"taskId": id.to_string(), "status": "in_progress"});
                if rng.u32(0..10) == 0 {
                    mcp.call_and_kill("TaskUpdate", &change, || harness::sleep(random_delay(rng)));
                    *mcp = start_mcp_server(round, name);
                    return ClaimResult::Killed;
                }
                mcp.call("TaskUpdate", &change).map_or_else(ClaimResult::Lost, |_| ClaimResult::Won)
            }
            Claimer::Foreign(foreign) => foreign.claim(id),
            Claimer::Library { tasks, name } => {
                let id = TaskId::from_number(u32::try_from(id).unwrap()).unwrap();
                tasks
                    .claim(Some(&id), name)
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

fn library_claimer(round: &ClaimRound, name: &str) -> Claimer {
    Claimer::Library { tasks: round.open_team().tasks(), name: MemberName::new_unchecked(name) }
}

fn start_mcp_server(round: &ClaimRound, name: &str) -> McpClient {
    McpClient::connect_with_env(
        round.env,
        &[],
        &[("TEAMD_MEMBER", name), ("TEAMD_TEAM", round.team.as_str())],
    )
}

fn claim_by_command(round: &ClaimRound, name: &str, id: u64) -> ClaimResult {
    let args = ["-t", round.team.as_str(), "task", "claim", &id.to_string()];
    let output = round.env.teamctl_with(&args, &[("TEAMD_MEMBER", name)]);
    match output.code {
        0 => ClaimResult::Won,
        // 65: a foreign program has half written the task's file, for longer than teamctl waits.
        65 | 73 => ClaimResult::Lost(output.stderr),
        _ => panic!("{output:#?}"),
    }
}

impl ForeignClaimer {
    /// Starts the program. `None` if its node modules are missing. The foreign creator has recorded
    /// this skip already.
    fn start(round: &ClaimRound, name: &str) -> Option<ForeignClaimer> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers");
        if !scripts.join("node_modules").is_dir() {
            assert!(std::env::var_os("FOREIGN").is_none(), "the node modules are not there: run make test");
            return None;
        }
        let mut command = Command::new("node");
        command
            .arg(scripts.join("task_claimer.js"))
            .arg(round.tasks_dir())
            .arg(name)
            .env("TEST_DIR", round.env.path(""));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(ForeignClaimer { child, input, output })
    }

    fn claim(&mut self, id: u64) -> ClaimResult {
        writeln!(self.input, "{id}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        match line.trim() {
            "won" => ClaimResult::Won,
            "lost" => ClaimResult::LostUnexplained,
            _ => panic!("the foreign claimer has ended"),
        }
    }
}
