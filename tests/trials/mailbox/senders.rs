//! Those who send: most by the MCP server, one by `teamctl send`, one by the library in this process. All but the last
//! are killed now and then in the middle of it.

use super::{READERS, Round};
use harness::history::{Id, What};
use harness::{Mcp, moment, pause};
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
enum Became {
    Stored,
    Refused(String),
    Killed,
}

/// By what one sends.
enum Door<'r> {
    Server(Mcp),
    Command,
    Library(&'r Caller),
}

/// Sends until its share is stored, each attempt a message of its own.
pub(super) fn sends(round: &Round, which: usize, share: u64, rings: &[Sender<()>]) {
    let (mut rng, mut diary) = (round.rng(which), round.diary(&name(which)));
    let caller = library(round);
    let mut door = match which {
        0 => Door::Command,
        1 => Door::Library(&caller),
        _ => Door::Server(server(round)),
    };
    // A process for each takes its time.
    let share = if which == 0 { share / 8 } else { share };
    let (mut stored, mut refused) = (0, Vec::new());
    for seq in 0.. {
        if stored == share {
            break;
        }
        let (id, to) = (Id { sender: name(which), seq }, rng.usize(0..READERS));
        diary.note(&What::Sends { id: id.clone(), to: round.reader(to) }).unwrap();
        let text = id.text(FILLERS[rng.usize(0..FILLERS.len())]);
        match door.send(round, &round.reader(to), &text, &mut rng) {
            Became::Stored => {
                stored += 1;
                diary.note(&What::Stored { id }).unwrap();
            }
            Became::Refused(why) => {
                // What is in the way lasts some milliseconds: a member that was dropped, half a file.
                pause(Duration::from_millis(25));
                refused.push(why);
                diary.note(&What::Refused { id }).unwrap();
            }
            Became::Killed => {}
        }
        let many = refused.len() as u64 > 20 + share / 5;
        assert!(!many, "{} of {seq} are refused, the last: {:?}", refused.len(), refused.last());
        rings[to].send(()).unwrap();
    }
    if let Door::Server(server) = door {
        server.end();
    }
}

fn server(round: &Round) -> Mcp {
    Mcp::of(round.house, &["--team", &round.team])
}

fn library(round: &Round) -> Caller {
    // Where the others note what they send: what somebody drops of it is put back by the daemon.
    let state = std::fs::read_dir(round.house.path("state/teamd")).unwrap().flatten().next().unwrap();
    let root = Root::open(&round.house.root(), &state.path().join("aside"), Durability::Process).unwrap();
    let team = root.team(&TeamName::parse(&round.team).unwrap()).unwrap();
    Caller::new(team, AgentName::lead(), round.house.path("state"))
}

impl Door<'_> {
    fn send(&mut self, round: &Round, to: &str, text: &str, rng: &mut fastrand::Rng) -> Became {
        let became = |result: Result<(), String>| result.map_or_else(Became::Refused, |()| Became::Stored);
        match self {
            Door::Library(caller) => {
                let sent = caller.send(to, text.to_owned(), Some("s"), store::now());
                became(sent.map(drop).map_err(|fault| fault.to_string()))
            }
            Door::Command => by_command(round, to, text, rng),
            Door::Server(mcp) => {
                let message = json!({"recipient": to, "content": text, "summary": "s"});
                if rng.u32(0..200) != 0 {
                    return became(mcp.call("SendMessage", &message).map(drop));
                }
                mcp.kill_amid("SendMessage", &message, moment(rng));
                *mcp = server(round);
                Became::Killed
            }
        }
    }
}

/// One in twenty is killed some milliseconds after its start.
fn by_command(round: &Round, to: &str, text: &str, rng: &mut fastrand::Rng) -> Became {
    let mut command: Command = round.house.command(harness::programs().join("teamctl"));
    command.args(["-t", &round.team, "send", to, text, "--summary", "s"]);
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    if rng.u32(0..20) == 0 {
        pause(Duration::from_micros(rng.u64(0..20_000)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        return if status.success() { Became::Stored } else { Became::Killed };
    }
    let ran = child.wait_with_output().unwrap();
    match ran.status.success() {
        true => Became::Stored,
        false => Became::Refused(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}
