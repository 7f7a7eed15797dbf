//! The senders. One of them runs `teamctl send`, one calls the `store` crate in this process, and
//! the others use the MCP server. Commands and servers are sometimes killed while they send.

use super::{MessageRound, READERS};
use harness::history::{HistoryEventKind, TestMessageId};
use harness::{McpClient, random_delay, sleep};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;
use store::{Caller, Durability, Root};

pub(super) const SENDERS: usize = 6;
const FILLERS: [&str; 5] =
    ["so it is", "a \"quoted\" word", "two\nlines", "\u{1f980} \u{2028} é", "</teammate_message>"];

/// The sender's name in message ids and in the name of its history file.
pub(super) fn sender_name(index: usize) -> String {
    format!("s{index}")
}

/// The result of an attempt to send. A killed one may have stored the message or not.
enum SendResult {
    Stored,
    Refused(String),
    Killed,
}

/// The program or library that a sender uses.
enum SendMethod<'r> {
    McpServer(McpClient),
    Command,
    Library(&'r Caller),
}

/// Sends messages to random readers until `share` messages are stored. Each attempt has a new
/// message. Signals the reader after each attempt.
pub(super) fn run_sender(round: &MessageRound, index: usize, share: u64, reader_signals: &[Sender<()>]) {
    let name = sender_name(index);
    let (mut rng, mut history_file) = (round.rng(index), round.open_history_file(&name));
    let caller = library_caller(round);
    let mut method = match index {
        0 => SendMethod::Command,
        1 => SendMethod::Library(&caller),
        _ => SendMethod::McpServer(start_mcp_server(round)),
    };
    // `teamctl send` is slower, because each message starts a process.
    let share = if index == 0 { share / 8 } else { share };
    let (mut stored, mut errors) = (0, Vec::new());
    for seq in 0.. {
        if stored == share {
            break;
        }
        let (id, to) = (TestMessageId { sender: name.clone(), seq }, rng.usize(0..READERS));
        let reader = round.reader_name(to);
        history_file.append(&HistoryEventKind::SendStarted { id: id.clone(), to: reader.clone() }).unwrap();
        let text = id.message_text(FILLERS[rng.usize(0..FILLERS.len())]);
        match method.send(round, &reader, &text, &mut rng) {
            SendResult::Stored => {
                stored += 1;
                history_file.append(&HistoryEventKind::Stored { id }).unwrap();
            }
            SendResult::Refused(error) => {
                // The cause goes away within milliseconds: a foreign writer has dropped the member
                // from config.json, or a file is half written.
                sleep(Duration::from_millis(25));
                errors.push(error);
                history_file.append(&HistoryEventKind::Refused { id }).unwrap();
            }
            SendResult::Killed => {}
        }
        let too_many = errors.len() as u64 > 20 + share / 5;
        assert!(!too_many, "{} of {seq} messages failed, the last: {:?}", errors.len(), errors.last());
        reader_signals[to].send(()).unwrap();
    }
    if let SendMethod::McpServer(server) = method {
        server.close();
    }
}

fn start_mcp_server(round: &MessageRound) -> McpClient {
    McpClient::connect(round.env, &["--team", &round.team])
}

fn library_caller(round: &MessageRound) -> Caller {
    // The state directory is that of the daemon. It has the journal from which the daemon restores
    // dropped messages.
    let state = std::fs::read_dir(round.env.path("state/teamd")).unwrap().flatten().next().unwrap();
    let root = Root::open(&round.env.root(), &state.path(), Durability::Process).unwrap();
    let team = root.team(&TeamName::parse(&round.team).unwrap()).unwrap();
    Caller::new(team, MemberName::lead())
}

impl SendMethod<'_> {
    fn send(&mut self, round: &MessageRound, to: &str, text: &str, rng: &mut fastrand::Rng) -> SendResult {
        let to_send_result =
            |result: Result<(), String>| result.map_or_else(SendResult::Refused, |()| SendResult::Stored);
        match self {
            SendMethod::Library(caller) => {
                let result = caller.send(to, text.to_owned(), Some("s"), store::now());
                to_send_result(result.map(drop).map_err(|error| error.to_string()))
            }
            SendMethod::Command => send_by_command(round, to, text, rng),
            SendMethod::McpServer(mcp) => {
                let message = json!({"recipient": to, "content": text, "summary": "s"});
                if rng.u32(0..200) != 0 {
                    return to_send_result(mcp.call("SendMessage", &message).map(drop));
                }
                mcp.call_and_kill("SendMessage", &message, || harness::sleep(random_delay(rng)));
                *mcp = start_mcp_server(round);
                SendResult::Killed
            }
        }
    }
}

/// Runs `teamctl send`. One of twenty commands is killed within 20 ms of its start.
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
    let output = child.wait_with_output().unwrap();
    match output.status.success() {
        true => SendResult::Stored,
        false => SendResult::Refused(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
