//! Many who send and many who read, beside foreign writers of every kind, while all of them are killed now and then:
//! what each side has written down is given to the checker.
//!
//! In rounds, each with a team and inboxes of its own, since an inbox is read and written whole. `MESSAGES=n` says how
//! many of ours are to be stored in all; `SEED=n` chooses who is killed when.

mod readers;
mod senders;

use crate::crew::spawned;
use crate::others::{Cast, Others};
use harness::foreign::Manner;
use harness::history::{Diary, History, Id, Look, What};
use harness::{House, checker, faults, figure, history, rounds, start_time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

const READERS: usize = 8;
/// Houses side by side, since much of a round is waiting for what the dead have locked.
const LANES: u64 = 2;
/// A round takes a few seconds; one that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// Each of theirs sends one beside so many of ours to a reader.
const BESIDE: u64 = 10;
const QUICK: Cast = Cast {
    writers: &[
        ("r0", Manner::Renaming, "f"),
        ("r0", Manner::GivingUp, "g"),
        ("r1", Manner::Renaming, "h"),
        ("r2", Manner::Truncating, "t"),
    ],
    // The first three of the kinds look dead.
    locked: &[
        "inboxes/r3.json",
        "inboxes/r4.json",
        "inboxes/r5.json",
        "inboxes/r0.json",
        "inboxes/r0.json",
        "config.json",
        "config.json",
        "config.json",
        "config.json",
        "config.json",
    ],
    count: None,
    pace: None,
    planting: Duration::from_millis(700),
    has_workers: false,
};

/// One of them writes this inbox in place.
fn is_truncated(inbox: &str) -> bool {
    QUICK.writers.iter().any(|(name, manner, _)| *name == inbox && *manner != Manner::Renaming)
}

/// One round: a team of its own.
struct Round<'h> {
    house: &'h House,
    number: u64,
    team: String,
}

impl Round<'_> {
    fn reader(&self, which: usize) -> String {
        format!("r{which}")
    }

    /// What one side writes down.
    fn diary(&self, who: &str) -> Diary {
        Diary::open(&self.diary_path(who)).unwrap()
    }

    fn diary_path(&self, who: &str) -> PathBuf {
        self.house.path(&format!("out/{}.{who}.diary", self.team))
    }

    /// One seed for each who chooses, in each round.
    fn rng(&self, who: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed((rounds("SEED", 1) * 1_000_000 + self.number) * 1_000 + who as u64)
    }

    fn inbox(&self, name: &str) -> PathBuf {
        self.house.root().join(format!("teams/{}/inboxes/{name}.json", self.team))
    }

    /// The file as it is: none where a foreign writer has it half written.
    fn look(&self, inbox: &str) -> Option<Look> {
        let text = std::fs::read(self.inbox(inbox)).ok()?;
        let messages: Vec<Value> = serde_json::from_slice(&text).ok()?;
        Some(Look::of(history::now(), inbox, &messages))
    }

    /// Makes the team; its members come while config.json is rewritten by somebody who takes no lock.
    fn begin(&self, each: u64) -> Others<'_> {
        self.house.teamctl(["create", &self.team]).ok();
        let mut others = Others::of(self.house, &self.team, Cast { count: Some(each / BESIDE), ..QUICK });
        others.come();
        let agent = self.house.agent();
        std::thread::scope(|scope| {
            for which in 0..READERS {
                let (name, agent) = (self.reader(which), &agent);
                scope.spawn(move || {
                    let words =
                        ["-t", &self.team, "spawn", &name, "--backend", "in-process", "--", agent, "stay"];
                    spawned(self.house, &words);
                });
            }
        });
        others
    }

    /// Everybody at once, until `share` messages of each sender are stored, and all is read; what was seen meanwhile.
    fn traffic(&self, share: u64) -> Vec<Look> {
        let (rings, bells): (Vec<_>, Vec<_>) = (0..READERS).map(|_| channel()).unzip();
        std::thread::scope(|scope| {
            let reading = |(which, bell)| scope.spawn(move || readers::reads(self, which, &bell));
            let readers: Vec<_> = bells.into_iter().enumerate().map(reading).collect();
            let sending = |which| {
                let rings = rings.clone();
                scope.spawn(move || senders::sends(self, which, share, &rings))
            };
            let senders: Vec<_> = (0..senders::ALL).map(sending).collect();
            self.house.kill_9(self.house.daemon());
            self.house.start_daemon();
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            drop(rings);
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        })
    }

    /// Who is on the team by its file, and who lives; once they agree, or as they are when patience is over.
    fn roster(&self) -> [Vec<String>; 2] {
        let path = format!("root/teams/{}/config.json", self.team);
        let names = |of: &Value, is: &dyn Fn(&Value) -> bool| {
            let members = of.as_array().into_iter().flatten().filter(|member| is(member));
            let mut names: Vec<String> =
                members.filter_map(|member| Some(member["name"].as_str()?.to_owned())).collect();
            names.retain(|name| name != "team-lead");
            names.sort();
            names
        };
        let lives =
            |member: &Value| member["pid"].as_u64().is_some_and(|pid| start_time(pid as u32).is_some());
        self.house.until("config.json names all who live, and nobody else", || {
            let config: Value = serde_json::from_str(&self.house.read(&path)).ok()?;
            let status = self.house.json(["status"]);
            let team =
                status["teams"].as_array()?.iter().find(|team| team["name"] == self.team.as_str())?.clone();
            let both = [names(&config["members"], &|_| true), names(&team["members"], &lives)];
            (both[0] == both[1] && both[0].len() == READERS).then_some(both)
        })
    }

    /// The inboxes, once all that was stored is there: what a foreign writer dropped that had lost its lock is put back.
    fn settled(&self, history: &History) -> Vec<Look> {
        let stored = |what: &What| if let What::Stored { id } = what { Some(id.clone()) } else { None };
        let done = |what: &What| if let What::Done { id, .. } = what { Some(id.clone()) } else { None };
        let deeds = || history.deeds.iter().map(|deed| &deed.what);
        let done: BTreeSet<Id> = deeds().filter_map(done).collect();
        let open: Vec<Id> = deeds().filter_map(stored).filter(|id| !done.contains(id)).collect();
        self.house.until("what was stored is there", || {
            let looks: Vec<Look> = (0..READERS).filter_map(|which| self.look(&self.reader(which))).collect();
            let there: BTreeSet<&Id> =
                looks.iter().flat_map(|look| &look.messages).map(|message| &message.id).collect();
            let whole = looks.len() == READERS && open.iter().all(|id| there.contains(id));
            whole.then_some(looks)
        })
    }

    /// What everybody has written down.
    fn history(&self, looks: Vec<Look>) -> History {
        let mut history = History { looks, ..History::default() };
        for who in (0..senders::ALL).map(senders::name).chain((0..READERS).map(|which| self.reader(which))) {
            history.read(&std::fs::read_to_string(self.diary_path(&who)).unwrap());
            std::fs::remove_file(self.diary_path(&who)).unwrap();
        }
        let last = self.settled(&history);
        history.looks.extend(last);
        [history.members, history.living] = self.roster();
        history
    }

    /// From the team's begin to its end, with so many messages for each reader; how many of ours were stored.
    fn run(&self, each: u64) -> u64 {
        let mut others = self.begin(each);
        let looks = self.traffic(each * READERS as u64 / senders::ALL as u64);
        others.go();
        let history = self.history(looks);
        assert_eq!(checker::check(&history), [], "in round {} of SEED={}", self.number, rounds("SEED", 1));
        // Of one of them, in which all is well.
        if self.number == 0 {
            figure("faults-caught", faults::each_is_caught(&history));
        }
        others.check();
        self.house.teamctl(["delete", &self.team, "--force"]).ok();
        history.deeds.iter().filter(|deed| matches!(deed.what, What::Stored { .. })).count() as u64
    }
}

/// Rounds until so many are stored; how many that were.
fn stored(lane: u64, wanted: u64, each: u64) -> u64 {
    let (house, mut stored) = (House::start(), 0);
    for number in (lane..).step_by(LANES as usize) {
        if stored >= wanted {
            break;
        }
        let round = Round { house: &house, number, team: format!("m{number}") };
        stored += house.within(PATIENCE, || round.run(each));
    }
    house.end();
    stored
}

#[test]
fn nothing_is_lost_doubled_or_read_too_early_whoever_is_killed() {
    let wanted = rounds("MESSAGES", 20_000);
    // The inboxes of a round grow, and are read and written whole.
    let each = if wanted < 100_000 { 250 } else { 1_000 };
    let all = std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..LANES).map(|lane| scope.spawn(move || stored(lane, wanted.div_ceil(LANES), each))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    });
    figure("messages", all);
}
