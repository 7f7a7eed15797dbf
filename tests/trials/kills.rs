//! Anybody is killed at any instant: the daemon, the first process of an agent, an agent, a call, the tmux server, one
//! after the other by a seed. After each there is a daemon again, who is on the team is who lives, and no stranger was
//! touched; and beside it mail goes, ours and of foreign writers, which is given to the checker.
//!
//! `KILLS=n` says how many; after each hundred comes a house of its own.

use crate::crew::{Member, Runs, complete, names};
use crate::others::{Others, PACED};
use crate::traffic::{Post, stored};
use harness::history::{Diary, Id, What};
use harness::{Call, House, Nemesis, Whom, checker, figure, rounds};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};

/// So many kills in one house: its inboxes grow, and what is done to them with it.
const SEASON: u64 = 100;
const CREW: [Member; 5] = [
    Member("r0", "in-process", Runs::Stays),
    Member("r1", "tmux", Runs::Stays),
    Member("k0", "in-process", Runs::Stays),
    Member("k1", "tmux", Runs::Stays),
    Member("k2", "tmux", Runs::Stays),
];
/// Those whose inboxes are read.
const READERS: [&str; 2] = ["r0", "r1"];
/// Messages of one sender beside one kill.
const BESIDE: u64 = 2;

/// One kill of one of all kinds, by chance. False: nobody was there, or a call had ended before.
fn strike(nemesis: &mut Nemesis<'_>, calls: &mut Calls) -> bool {
    let whom = match nemesis.rng.u32(0..30) {
        0 => Whom::Tmux,
        1..=8 => Whom::Daemon,
        9..=12 => Whom::Join,
        13..=16 => Whom::Agent,
        _ => return calls.kill_one(nemesis) == Call::Killed,
    };
    nemesis.kill(whom).is_some()
}

/// Calls of the command line that are killed.
struct Calls {
    diary: Diary,
    seq: u64,
    agent: String,
}

impl Calls {
    fn kill_one(&mut self, nemesis: &mut Nemesis<'_>) -> Call {
        let agent = self.agent.clone();
        match nemesis.rng.u32(0..6) {
            0 => nemesis.call_killed(&["spawn", "k0", "--backend", "in-process", "--", &agent, "stay"]),
            1 => nemesis.call_killed(&["spawn", "k1", "--", &agent, "stay"]),
            2 => nemesis.call_killed(&["kill", "k2"]),
            3 => nemesis.call_killed(&["task", "create", "count"]),
            _ => self.send(nemesis),
        }
    }

    fn send(&mut self, nemesis: &mut Nemesis<'_>) -> Call {
        let id = Id { sender: "call".to_owned(), seq: self.seq };
        self.seq += 1;
        let to = READERS[nemesis.rng.usize(0..READERS.len())];
        self.diary.note(&What::Sends { id: id.clone(), to: to.to_owned() }).unwrap();
        let became = nemesis.call_killed(&["send", to, &id.text("killed?")]);
        match became {
            Call::Done => self.diary.note(&What::Stored { id }).unwrap(),
            Call::Refused => self.diary.note(&What::Refused { id }).unwrap(),
            Call::Killed => {}
        }
        became
    }
}

/// So many kills of a house; how many messages were stored meanwhile.
fn season(kills: u64, seed: u64) -> u64 {
    let house = House::with_team();
    complete(&house, &CREW, &BTreeSet::new());
    let mut nemesis = Nemesis::of(&house, seed);
    let post = Post { house: &house, diaries: house.path("out"), readers: &READERS };
    let mut others = Others::of(&house, "survey", PACED);
    others.come();
    let (mut looks, mut hit) = (Vec::new(), 0);
    let (rings, bells): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    std::thread::scope(|scope| {
        let post = &post;
        let reading = |(me, bell): (&'static str, Receiver<()>)| scope.spawn(move || post.reads(me, &bell));
        let readers: Vec<_> = READERS.into_iter().zip(bells).map(reading).collect();
        let senders = ["s0", "s1"].map(|me| {
            let ((go, bell), rings, rng) = (channel(), rings.clone(), nemesis.rng.fork());
            (go, scope.spawn(move || post.sends(me, BESIDE, rng, &bell, &rings)))
        });
        let mut calls = Calls { diary: post.diary("call"), seq: 0, agent: house.agent() };
        while hit < kills {
            senders.iter().for_each(|(go, _)| go.send(()).unwrap());
            hit += u64::from(strike(&mut nemesis, &mut calls));
            nemesis.revive();
            complete(&house, &CREW, &nemesis.whole()).into_iter().for_each(|who| post.retired(who));
        }
        for (go, sender) in senders {
            drop(go);
            sender.join().unwrap();
        }
        drop(rings);
        looks = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    });
    others.go();
    others.check();
    let history = post.history(looks, names(&CREW), nemesis.whole());
    assert_eq!(checker::check(&history), []);
    let daemons = nemesis.end();
    house.end_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    stored(&history)
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
