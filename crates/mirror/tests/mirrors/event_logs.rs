//! Random lives of two event logs, with cuts and faults at every step. At the end the home's log has
//! each event of the annex once and in order.

use crate::end::{name, team_name};
use crate::faults::{Fault, run_again_with_faults};
use crate::pair::Pair;
use mirror::MirrorNotice;
use protocol::annex_link::ItemPayload;
use protocol::event_log_line::{Event, EventKind};

const SEEDS: u64 = 20;
const STEPS: u32 = 150;

/// Both daemons with their event logs.
struct Logs {
    pair: Pair,
    random: fastrand::Rng,
    at_annex: Vec<Event>,
    at_home: Vec<Event>,
}

impl Logs {
    fn new(seed: u64) -> Logs {
        let mut pair = Pair::new();
        pair.join("ann");
        Logs { pair, random: fastrand::Rng::with_seed(seed), at_annex: Vec::new(), at_home: Vec::new() }
    }

    fn step(&mut self) {
        let random = &mut self.random;
        let end = if random.bool() { &mut self.pair.home } else { &mut self.pair.annex };
        if random.u8(..4) == 0 {
            end.next_fault = Fault::choose(&mut random.fork());
        }
        match random.u8(..12) {
            0..=3 => self.log_at_annex(),
            4 => end.restart(),
            5 => {
                // The daemon is killed before it handles the notices of the mirror.
                self.pair.home.notices.clear();
                self.pair.home.restart();
            }
            6 => end.restart_while_accepting(1),
            7..=8 => end.accept(2),
            9 => drop(self.pair.deliver_to_home()),
            10 => self.log_at_home(),
            _ => self.note_logged(),
        }
    }

    /// The annex logs an event, and passes its log to the mirror.
    fn log_at_annex(&mut self) {
        let number = self.at_annex.last().and_then(|event| event.number).unwrap_or(0);
        let event = Event::for_member(&team_name(), &name("ann"), EventKind::MemberInterrupted);
        let event = Event { number: Some(number + 1 + u64::from(self.random.u8(..2))), ..event };
        self.at_annex.push(event);
        self.pass_log();
    }

    fn pass_log(&mut self) {
        let log = &self.at_annex;
        self.pair.annex.run_and_send(|mirror| mirror.send_events(&team_name(), log));
    }

    /// The home logs the events that its log lacks.
    fn log_at_home(&mut self) {
        for notice in std::mem::take(&mut self.pair.home.notices) {
            let MirrorNotice::EventsReceived { events, .. } = notice else { continue };
            for event in events {
                if event.number > self.at_home.last().and_then(|event| event.number) {
                    self.at_home.push(event);
                }
            }
        }
    }

    fn note_logged(&mut self) {
        let Some(number) = self.at_home.last().and_then(|event| event.number) else { return };
        self.pair.home.run(|mirror| mirror.note_events_logged(&team_name(), number));
    }

    fn check(&mut self) {
        self.pair.home.restart();
        self.pair.annex.restart();
        self.pass_log();
        self.pair.settle();
        self.log_at_home();
        assert_eq!(self.at_home, self.at_annex);
        self.note_logged();
        self.pair.home.restart();
        assert!(self.pair.home.notices.is_empty(), "logged events do not come again");
        let kept = self.pair.annex.mirror.kept_events().unwrap();
        let last = self.at_annex.last().and_then(|event| event.number);
        assert_eq!(kept.get(&team_name()).copied(), last);
    }
}

#[test]
fn random_event_logs_with_faults_lose_and_double_nothing() {
    let killed = run_again_with_faults("event_logs::random_event_logs_lose_and_double_nothing");
    assert!(killed.len() > 2, "{killed:?}");
}

#[test]
fn random_event_logs_lose_and_double_nothing() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first: u64 = number("FIRST", 0);
    for seed in first..first + number("MIRROR_SEEDS", SEEDS) {
        println!("seed {seed}");
        let mut logs = Logs::new(seed);
        (0..STEPS).for_each(|_| logs.step());
        logs.check();
    }
}

/// In a long outage, the link takes no items.
#[test]
#[allow(clippy::disallowed_methods, reason = "the directory of the team is hidden")]
fn events_without_place_wait_in_the_log_and_are_sent_in_order() {
    let mut logs = Logs::new(0);
    let waiting = 600;
    (0..waiting).for_each(|_| logs.log_at_annex());
    assert!(logs.pair.annex.mirror.events_left_in_log().is_empty(), "too many items wait");
    let sent = |logs: &Logs| {
        let annex = &logs.pair.annex;
        let items = annex.spool.iter().chain(&annex.stored);
        items.filter(|item| matches!(item.payload, ItemPayload::Events { .. })).count()
    };
    logs.pair.deliver_all();
    assert_eq!(sent(&logs), 500);
    let last = logs.at_annex[499].number.unwrap();
    let left = logs.pair.annex.mirror.events_left_in_log();
    assert_eq!(left.get(&team_name()), Some(&last));
    // A new event is not sent before the earlier ones.
    logs.log_at_annex();
    logs.pair.deliver_all();
    assert_eq!(sent(&logs), 500);
    let log = &logs.at_annex;
    // An error while they are read leaves them in the log.
    let (team, hidden) = (logs.pair.annex.team().path(), logs.pair.annex.root.path().join("hidden"));
    std::fs::rename(&team, &hidden).unwrap();
    std::fs::write(&team, "").unwrap();
    assert!(logs.pair.annex.mirror.send_left_events(&team_name(), log).is_err());
    assert!(!logs.pair.annex.mirror.events_left_in_log().is_empty());
    std::fs::remove_file(&team).unwrap();
    std::fs::rename(&hidden, &team).unwrap();
    logs.pair.annex.run_and_send(|mirror| mirror.send_left_events(&team_name(), log));
    assert!(logs.pair.annex.mirror.events_left_in_log().is_empty());
    logs.log_at_annex();
    logs.pair.deliver_all();
    logs.log_at_home();
    assert_eq!(logs.at_home, logs.at_annex);
}
