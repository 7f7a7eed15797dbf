//! Those who send: most by the MCP server, one by `teamctl send`, one by the library in this process. All but the last
//! are killed now and then in the middle of it.

use super::{MessageRound, READERS};
use harness::history::{HistoryEventKind, TestMessageId};
use harness::{McpClient, random_delay, sleep};
use protocol::name::{AgentName, TeamName};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;
use store::{Caller, Durability, Root};

/// How many.
pub(super) const ALL: usize = 6;
const FILLERS: [&str; 5] =
    ["so it is", "a \"quoted\" word", "two\nlines", "\u{1f980} \u{2028} é", "</teammate_message>"];

/// The name under which one writes its messages.
pub(super) fn name(which: usize) -> String {
    format!("s{which}")
}

/// What became of a send: its answer, or it was killed.
enum SendResult {
    Stored,
    Refused(String),
    Killed,
}

/// By what one sends.
enum SendMethod<'r> {
    McpServer(McpClient),
    Command,
    Library(&'r Caller),
}

/// Sends until its share is stored, each attempt a message of its own.
pub(super) fn run_sender(round: &MessageRound, which: usize, share: u64, rings: &[Sender<()>]) {
    let (mut rng, mut diary) = (round.rng(which), round.open_history_file(&name(which)));
    let caller = library_caller(round);
    let mut door = match which {
        0 => SendMethod::Command,
        1 => SendMethod::Library(&caller),
        _ => SendMethod::McpServer(start_mcp_server(round)),
    };
    // A process for each takes its time.
    let share = if which == 0 { share / 8 } else { share };
    let (mut stored, mut refused) = (0, Vec::new());
    for seq in 0.. {
        if stored == share {
            break;
        }
        let (id, to) = (TestMessageId { sender: name(which), seq }, rng.usize(0..READERS));
        diary.append(&HistoryEventKind::SendStarted { id: id.clone(), to: round.reader(to) }).unwrap();
        let text = id.message_text(FILLERS[rng.usize(0..FILLERS.len())]);
        match door.send(round, &round.reader(to), &text, &mut rng) {
            SendResult::Stored => {
                stored += 1;
                diary.append(&HistoryEventKind::Stored { id }).unwrap();
            }
            SendResult::Refused(why) => {
                // What is in the way lasts some milliseconds: a member that was dropped, half a file.
                sleep(Duration::from_millis(25));
                refused.push(why);
                diary.append(&HistoryEventKind::Refused { id }).unwrap();
            }
            SendResult::Killed => {}
        }
        let many = refused.len() as u64 > 20 + share / 5;
        assert!(!many, "{} of {seq} are refused, the last: {:?}", refused.len(), refused.last());
        rings[to].send(()).unwrap();
    }
    if let SendMethod::McpServer(server) = door {
        server.close();
    }
}

fn start_mcp_server(round: &MessageRound) -> McpClient {
    McpClient::connect(round.env, &["--team", &round.team])
}

fn library_caller(round: &MessageRound) -> Caller {
    // Where the others note what they send: what somebody drops of it is put back by the daemon.
    let state = std::fs::read_dir(round.env.path("state/teamd")).unwrap().flatten().next().unwrap();
    let root = Root::open(&round.env.root(), &state.path(), Durability::Process).unwrap();
    let team = root.team(&TeamName::parse(&round.team).unwrap()).unwrap();
    Caller::new(team, AgentName::lead(), round.env.path("state"))
}

impl SendMethod<'_> {
    fn send(&mut self, round: &MessageRound, to: &str, text: &str, rng: &mut fastrand::Rng) -> SendResult {
        let became =
            |result: Result<(), String>| result.map_or_else(SendResult::Refused, |()| SendResult::Stored);
        match self {
            SendMethod::Library(caller) => {
                let sent = caller.send(to, text.to_owned(), Some("s"), store::now());
                became(sent.map(drop).map_err(|fault| fault.to_string()))
            }
            SendMethod::Command => send_by_command(round, to, text, rng),
            SendMethod::McpServer(mcp) => {
                let message = json!({"recipient": to, "content": text, "summary": "s"});
                if rng.u32(0..200) != 0 {
                    return became(mcp.call("SendMessage", &message).map(drop));
                }
                mcp.call_and_kill("SendMessage", &message, random_delay(rng));
                *mcp = start_mcp_server(round);
                SendResult::Killed
            }
        }
    }
}

/// One in twenty is killed some milliseconds after its start.
fn send_by_command(round: &MessageRound, to: &str, text: &str, rng: &mut fastrand::Rng) -> SendResult {
    let mut command: Command = round.env.command(harness::programs().join("teamctl"));
    command.args(["-t", &round.team, "send", to, text, "--summary", "s"]);
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    if rng.u32(0..20) == 0 {
        sleep(Duration::from_micros(rng.u64(0..20_000)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        return if status.success() { SendResult::Stored } else { SendResult::Killed };
    }
    let ran = child.wait_with_output().unwrap();
    match ran.status.success() {
        true => SendResult::Stored,
        false => SendResult::Refused(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}
