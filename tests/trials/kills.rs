//! Anybody is killed at any instant: the daemon, the first process of an agent, an agent, a call, the tmux server, one
//! after the other by a seed. After each there is a daemon again, who is on the team is who lives, and no stranger was
//! touched; and beside it mail goes, which is given to the checker.
//!
//! `KILLS=n` says how many; after each hundred comes a house of its own.

use harness::history::{Diary, History, Id, Look, What};
use harness::{House, Mcp, Nemesis, Whom, checker, figure, history, rounds};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};

/// So many kills in one house: its inboxes grow, and what is done to them with it.
const SEASON: u64 = 100;
/// The members, and whether they have a pane.
const MEMBERS: [(&str, bool); 5] = [("r0", false), ("r1", true), ("k0", false), ("k1", true), ("k2", true)];
/// Those whose inboxes are read.
const READERS: [&str; 2] = ["r0", "r1"];
/// Messages of one sender beside one kill.
const BESIDE: u64 = 2;

fn diary(house: &House, who: &str) -> Diary {
    Diary::open(&house.path(&format!("out/{who}.diary"))).unwrap()
}

/// Sends a few at each word, to readers who may just not be on the team.
fn sends(house: &House, me: &str, mut rng: fastrand::Rng, bell: &Receiver<()>, rings: &[Sender<()>]) {
    let (mut diary, mut seq) = (diary(house, me), 0);
    let mut server = Mcp::of(house, &["--team", "survey"]);
    while bell.recv().is_ok() {
        for _ in 0..BESIDE {
            let (id, to) = (Id { sender: me.to_owned(), seq }, rng.usize(0..READERS.len()));
            seq += 1;
            diary.note(&What::Sends { id: id.clone(), to: READERS[to].to_owned() }).unwrap();
            let message = json!({"recipient": READERS[to], "content": id.text("as it is"), "summary": "s"});
            let stored = server.call("SendMessage", &message).is_ok();
            diary.note(&if stored { What::Stored { id } } else { What::Refused { id } }).unwrap();
            rings[to].send(()).unwrap();
        }
    }
    server.end();
}

/// Reads and marks whatever comes.
fn reads(house: &House, me: &str, bell: &Receiver<()>) -> Vec<Look> {
    let (mut diary, mut looks, mut held) = (diary(house, me), Vec::new(), BTreeSet::new());
    let mut server = Mcp::of(house, &["--team", "survey", "--agent", me]);
    loop {
        let more = bell.recv().is_ok();
        bell.try_iter().for_each(drop);
        let Ok(answer) = server.call("ReadInbox", &json!({"limit": 1_000_000})) else {
            // It has no seat on the team before it is spawned again.
            assert!(more, "in the end it has a seat");
            continue;
        };
        let messages = answer["messages"].as_array().unwrap();
        for id in messages.iter().filter_map(|message| Some(Id::of(message["text"].as_str()?)?.0)) {
            if held.insert(id.clone()) {
                diary.note(&What::Given { id, by: me.to_owned() }).unwrap();
            }
        }
        let marks = json!({"ids": messages.iter().map(|message| &message["id"]).collect::<Vec<_>>()});
        if server.call("MarkRead", &marks).is_ok() {
            for id in std::mem::take(&mut held) {
                diary.note(&What::Done { id, by: me.to_owned() }).unwrap();
            }
        }
        looks.extend(look(house, me));
        if !more {
            server.end();
            return looks;
        }
    }
}

fn look(house: &House, inbox: &str) -> Option<Look> {
    let text = std::fs::read(house.root().join(format!("teams/survey/inboxes/{inbox}.json"))).ok()?;
    let messages: Vec<Value> = serde_json::from_slice(&text).unwrap();
    Some(Look::of(history::now(), inbox, &messages))
}

/// Whoever is missing is spawned.
fn complete(house: &House, living: &BTreeSet<String>) {
    for (name, pane) in MEMBERS.into_iter().filter(|(name, _)| !living.contains(*name)) {
        let backend = if pane { "tmux" } else { "in-process" };
        house.teamctl(["spawn", name, "--backend", backend, "--", &house.agent(), "stay"]).ok();
    }
}

/// One kill of one of all kinds, by chance.
fn strike(nemesis: &mut Nemesis<'_>, calls: &mut Calls<'_>) {
    match nemesis.rng.u32(0..30) {
        0 => drop(nemesis.kill(Whom::Tmux)),
        1..=8 => drop(nemesis.kill(Whom::Daemon)),
        9..=12 => drop(nemesis.kill(Whom::Join)),
        13..=16 => drop(nemesis.kill(Whom::Agent)),
        _ => calls.kill_one(nemesis),
    }
}

/// Calls of the command line that are killed.
struct Calls<'h> {
    house: &'h House,
    diary: Diary,
    seq: u64,
    agent: String,
}

impl Calls<'_> {
    fn kill_one(&mut self, nemesis: &mut Nemesis<'_>) {
        let agent = self.agent.clone();
        match nemesis.rng.u32(0..6) {
            0 => drop(nemesis.call_killed(&["spawn", "k0", "--backend", "in-process", "--", &agent, "stay"])),
            1 => drop(nemesis.call_killed(&["spawn", "k1", "--", &agent, "stay"])),
            2 => drop(nemesis.call_killed(&["kill", "k2"])),
            3 => drop(nemesis.call_killed(&["task", "create", "count"])),
            _ => self.send(nemesis),
        }
    }

    fn send(&mut self, nemesis: &mut Nemesis<'_>) {
        let id = Id { sender: "call".to_owned(), seq: self.seq };
        self.seq += 1;
        let to = READERS[nemesis.rng.usize(0..READERS.len())];
        self.diary.note(&What::Sends { id: id.clone(), to: to.to_owned() }).unwrap();
        if nemesis.call_killed(&["send", to, &id.text("killed?")]) {
            self.diary.note(&What::Stored { id }).unwrap();
        }
        assert!(self.house.inbox("survey", to).len() < 1_000_000, "it is whole");
    }
}

/// So many kills of a house; how many messages were stored meanwhile.
fn season(kills: u64, seed: u64) -> u64 {
    let house = House::with_team();
    complete(&house, &BTreeSet::new());
    let mut nemesis = Nemesis::of(&house, seed);
    let mut history = History::default();
    let (rings, bells): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    std::thread::scope(|scope| {
        let reading = |(me, bell): (&'static str, Receiver<()>)| {
            let house = &house;
            scope.spawn(move || reads(house, me, &bell))
        };
        let readers: Vec<_> = READERS.into_iter().zip(bells).map(reading).collect();
        let senders = ["s0", "s1"].map(|me| {
            let (go, bell) = channel();
            let (rings, rng, house) = (rings.clone(), nemesis.rng.fork(), &house);
            (go, scope.spawn(move || sends(house, me, rng, &bell, &rings)))
        });
        let mut calls = Calls { house: &house, diary: diary(&house, "call"), seq: 0, agent: house.agent() };
        for _ in 0..kills {
            senders.iter().for_each(|(go, _)| go.send(()).unwrap());
            strike(&mut nemesis, &mut calls);
            nemesis.revive();
            complete(&house, &nemesis.whole());
        }
        for (go, sender) in senders {
            drop(go);
            sender.join().unwrap();
        }
        drop(rings);
        history.looks = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    });
    history.looks.extend(READERS.iter().map(|who| look(&house, who).unwrap()));
    for who in ["s0", "s1", "call"].iter().chain(&READERS) {
        history.read(&house.read(&format!("out/{who}.diary")));
    }
    history.living = nemesis.whole().into_iter().collect();
    history.members = MEMBERS.map(|(name, _)| name.to_owned()).into();
    history.members.sort();
    let stored = history.deeds.iter().filter(|deed| matches!(deed.what, What::Stored { .. })).count();
    assert_eq!(checker::check(&history), []);
    let daemons = nemesis.end();
    house.end();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    stored as u64
}

#[test]
fn whoever_is_killed_at_any_instant_all_is_whole_again_and_nothing_is_lost() {
    let (kills, seed) = (rounds("KILLS", 300), rounds("SEED", 1));
    let seasons = kills.div_ceil(SEASON);
    let stored: u64 =
        (0..seasons).map(|which| season(SEASON.min(kills - which * SEASON), seed * 1_000 + which)).sum();
    assert!(stored > kills, "{stored} messages were stored");
    figure("kills", kills);
}
