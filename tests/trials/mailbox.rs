//! Many who send and many who read, beside foreign writers, while all of them are killed now and then: what each side
//! has written down is given to the checker.
//!
//! `MESSAGES=n` says how many (2,000 unless said, 20,000 in `make test`); `SEED=n` chooses who is killed when.

use harness::history::{Diary, History, Id, Look, What};
use harness::{House, Mcp, checker, figure, history, rounds, start_time};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

const SENDERS: usize = 4;
const READERS: usize = 4;

fn rng(who: usize) -> fastrand::Rng {
    fastrand::Rng::with_seed(rounds("SEED", 1) * 1_000 + who as u64)
}

fn reader(which: usize) -> String {
    format!("r{which}")
}

/// What one side writes down.
fn diary(house: &House, who: &str) -> Diary {
    Diary::open(&house.path(&format!("out/{who}.diary"))).unwrap()
}

const FILLERS: [&str; 5] =
    ["so it is", "a \"quoted\" word", "two\nlines", "\u{1f980} \u{2028} é", "</teammate_message>"];

/// Sends its share, and is killed in the middle of one in two hundred.
fn sends(house: &House, which: usize, share: u64, rings: &[Sender<()>]) {
    let (mut rng, mut diary) = (rng(which), diary(house, &format!("s{which}")));
    let mut server = Mcp::of(house, &["--team", "survey"]);
    for seq in 0..share {
        let (id, to) = (Id { sender: format!("s{which}"), seq }, rng.usize(0..READERS));
        diary.note(&What::Sends { id: id.clone(), to: reader(to) }).unwrap();
        let text = id.text(FILLERS[rng.usize(0..FILLERS.len())]);
        let message = json!({"recipient": reader(to), "content": text, "summary": "s"});
        if rng.u32(0..200) == 0 {
            server.begin("SendMessage", &message).unwrap();
            server.kill();
            server = Mcp::of(house, &["--team", "survey"]);
        } else {
            let stored = server.call("SendMessage", &message).is_ok();
            diary.note(&if stored { What::Stored { id } } else { What::Refused { id } }).unwrap();
        }
        rings[to].send(()).unwrap();
    }
    server.end();
}

/// Reads and marks what comes, and is killed with one in thirty batches in its hands; looks at its inbox now and then.
fn reads(house: &House, which: usize, bell: &Receiver<()>) -> Vec<Look> {
    let (mut rng, mut diary) = (rng(100 + which), diary(house, &reader(which)));
    let (me, mut looks, mut held) = (reader(which), Vec::new(), BTreeSet::new());
    let arguments = ["--team", "survey", "--agent", &me];
    let mut server = Mcp::of(house, &arguments);
    loop {
        let more = bell.recv().is_ok();
        bell.try_iter().for_each(drop);
        let answer = server.call("ReadInbox", &json!({"limit": 1_000_000})).unwrap();
        let messages = answer["messages"].as_array().unwrap();
        for id in messages.iter().filter_map(|message| Some(Id::of(message["text"].as_str()?)?.0)) {
            if held.insert(id.clone()) {
                diary.note(&What::Given { id, by: me.clone() }).unwrap();
            }
        }
        let marks = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
        if more && rng.u32(0..30) == 0 {
            server.begin("MarkRead", &marks).unwrap();
            server.kill();
            diary.note(&What::Killed { by: me.clone() }).unwrap();
            held.clear();
            server = Mcp::of(house, &arguments);
        } else if server.call("MarkRead", &marks).is_ok() {
            for id in std::mem::take(&mut held) {
                diary.note(&What::Done { id, by: me.clone() }).unwrap();
            }
        }
        if rng.u32(0..8) == 0 {
            looks.extend(look(house, &me));
        }
        if !more {
            server.end();
            return looks;
        }
    }
}

/// The file as it is: none where a foreign writer has it half written.
fn look(house: &House, inbox: &str) -> Option<Look> {
    let text = std::fs::read(house.root().join(format!("teams/survey/inboxes/{inbox}.json"))).ok()?;
    let messages: Vec<Value> = serde_json::from_slice(&text).ok()?;
    Some(Look::of(history::now(), inbox, &messages))
}

/// Writers that lock as Claude Code does, on the first reader's inbox; where there is no node, none.
fn foreign(house: &House, share: u64) -> Vec<Child> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/writer.js");
    if !script.with_file_name("node_modules").is_dir() {
        assert!(std::env::var_os("FOREIGN").is_none(), "the node modules are not there: run make test");
        return Vec::new();
    }
    let inbox = house.root().join("teams/survey/inboxes/r0.json");
    let writer = |(mode, prefix): (&str, &str)| {
        let mut command = Command::new("node");
        command.arg(&script).arg(mode).arg(&inbox).args([prefix, &share.to_string()]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    [("async", "f0"), ("async", "f1"), ("sync", "f2")].map(writer).into()
}

/// What a foreign writer says of itself, in the end.
fn said(writer: Child) -> Value {
    serde_json::from_slice(&writer.wait_with_output().unwrap().stdout).unwrap()
}

/// Everybody at once, until all is sent and read; what was seen meanwhile.
fn traffic(house: &House, share: u64) -> Vec<Look> {
    let (rings, bells): (Vec<_>, Vec<_>) = (0..READERS).map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        let reading = |(which, bell)| scope.spawn(move || reads(house, which, &bell));
        let readers: Vec<_> = bells.into_iter().enumerate().map(reading).collect();
        let sending = |which| {
            let rings: Vec<Sender<()>> = rings.clone();
            scope.spawn(move || sends(house, which, share, &rings))
        };
        let senders: Vec<_> = (0..SENDERS).map(sending).collect();
        for _ in 0..3 {
            house.kill_9(house.daemon());
            house.start_daemon();
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        drop(rings);
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    })
}

/// Who is on the team, and who lives.
fn roster(house: &House) -> [Vec<String>; 2] {
    let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).unwrap();
    let name = |member: &Value| member["name"].as_str().unwrap().to_owned();
    let members = config["members"].as_array().unwrap().iter().map(name).filter(|name| name != "team-lead");
    let living = (0..READERS).map(reader).filter(|name| {
        let pid = house.member(name).and_then(|member| member["pid"].as_u64());
        pid.is_some_and(|pid| start_time(pid as u32).is_some())
    });
    [members.collect(), living.collect()]
}

#[test]
fn nothing_is_lost_doubled_or_read_too_early_whoever_is_killed() {
    let house = House::with_team();
    for which in 0..READERS {
        let agent = house.agent();
        house.teamctl(["spawn", &reader(which), "--backend", "in-process", "--", &agent, "stay"]).ok();
    }
    let share = rounds("MESSAGES", 2_000) / SENDERS as u64;
    let theirs = foreign(&house, share / 10);
    let mut history = History { looks: traffic(&house, share), ..History::default() };
    let inbox: Vec<Value> = theirs.into_iter().map(said).collect();
    for who in (0..SENDERS).map(|which| format!("s{which}")).chain((0..READERS).map(reader)) {
        history.read(&house.read(&format!("out/{who}.diary")));
    }
    history.looks.extend((0..READERS).map(|which| look(&house, &reader(which)).unwrap()));
    [history.members, history.living] = roster(&house);
    let stored = history.deeds.iter().filter(|deed| matches!(deed.what, What::Stored { .. })).count();
    assert!(stored as u64 > share * SENDERS as u64 * 9 / 10, "{stored} were stored");
    assert_eq!(checker::check(&history), []);
    let file = house.inbox("survey", "r0");
    for text in inbox.iter().flat_map(|said| said["stored"].as_array().unwrap()) {
        assert_eq!(file.iter().filter(|message| message["text"] == *text).count(), 1, "{text} of theirs");
    }
    house.end();
    figure("messages", stored as u64);
}
