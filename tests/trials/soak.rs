//! Everything at once, for as long as `MIN` says (minutes; twenty seconds without it): agents, senders, readers and
//! foreign writers; every two seconds or so somebody is killed or stopped, or the daemon gets no descriptor, or its
//! clock jumps; every minute the tmux server dies, and every minute and a half the disk is full. What the daemon holds
//! is watched each second. In the last third it is left alive, and what it holds must not grow.

use crate::traffic::{Post, stored};
use harness::foreign::{Foreign, Manner, Planter};
use harness::history::Look;
use harness::{Disk, House, Nemesis, Vitals, Whom, checker, figure, rounds, skipped};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

/// The members: what they run, and where.
const MEMBERS: [(&str, &str, Runs); 10] = [
    ("r0", "in-process", Runs::Stays),
    ("r1", "tmux", Runs::Stays),
    ("r2", "in-process", Runs::Stays),
    ("r3", "tmux", Runs::Stays),
    ("k0", "tmux", Runs::Stays),
    ("k1", "tmux", Runs::Stays),
    ("k2", "window", Runs::Stays),
    ("w0", "tmux", Runs::Worker),
    ("w1", "in-process", Runs::Worker),
    ("w2", "in-process", Runs::Worker),
];
const READERS: [&str; 4] = ["r0", "r1", "r2", "r3"];
const SENDERS: usize = 8;
/// Of the small disk, MiB.
const DISK: u32 = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Stays,
    Worker,
}

fn complete(house: &House, living: &BTreeSet<String>) -> Vec<&'static str> {
    let mut new = Vec::new();
    for (name, backend, runs) in MEMBERS.into_iter().filter(|(name, ..)| !living.contains(*name)) {
        let agent = house.agent();
        let program: &[&str] =
            if runs == Runs::Worker { &["--agent", "worker"] } else { &["--", &agent, "stay"] };
        let spawn: Vec<&str> = ["spawn", name, "--backend", backend].iter().chain(program).copied().collect();
        house.teamctl_with(&spawn, &[]).ok();
        new.push(name);
    }
    new
}

/// When what comes at its own times comes next.
struct Times {
    began: Instant,
    whole: Duration,
    tmux: Duration,
    disk: Duration,
}

impl Times {
    fn of(whole: Duration) -> Times {
        let (tmux, disk) = (Duration::from_secs(60).min(whole / 5), Duration::from_secs(90).min(whole / 3));
        Times { began: Instant::now(), whole, tmux, disk }
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() > self.whole
    }

    /// From now on the daemon lives.
    fn is_calm(&self) -> bool {
        self.began.elapsed() > self.whole * 2 / 3
    }

    fn is_disk_due(&self) -> bool {
        self.began.elapsed() > self.disk
    }
}

/// The ill things of one moment.
fn strike(nemesis: &mut Nemesis<'_>, times: &mut Times, disk: Option<&Disk>) {
    let pause = Duration::from_millis(nemesis.rng.u64(200..1_500));
    let calm = times.is_calm();
    if !calm && times.began.elapsed() > times.tmux {
        times.tmux += Duration::from_secs(60);
        return drop(nemesis.kill(Whom::Tmux));
    }
    if let Some(disk) = disk.filter(|_| times.is_disk_due()) {
        times.disk += Duration::from_secs(90);
        nemesis.tell("the disk is full for 2 s");
        disk.fill();
        std::thread::park_timeout(Duration::from_secs(2));
        return disk.free();
    }
    match nemesis.rng.u32(0..12) {
        0..=2 if !calm => drop(nemesis.kill(Whom::Daemon)),
        3 => drop(nemesis.kill(Whom::Join)),
        4 => drop(nemesis.kill(Whom::Agent)),
        5 => drop(nemesis.stop(Whom::Daemon, pause)),
        6 => drop(nemesis.stop(Whom::Join, pause)),
        7 => nemesis.starve(pause),
        8 => {
            let jump = nemesis.rng.i64(-3_600..3_600);
            nemesis.set_clock(jump);
        }
        9 => drop(nemesis.call_killed(&["kill", "k0"])),
        10 => drop(nemesis.call_killed(&["task", "create", "idle", "--metadata", "{\"command\": \"true\"}"])),
        _ => drop(nemesis.call_killed(&["status"])),
    }
}

/// What was seen of the daemon, each second.
#[derive(Default)]
struct Watched {
    most: Vitals,
    /// In the calm, of one daemon: at each second, where nobody was starved or stopped.
    calm: Vec<Vitals>,
    daemon: u32,
    locks: BTreeMap<(PathBuf, u64), Instant>,
    wrong: Vec<String>,
}

impl Watched {
    fn look(&mut self, house: &House, daemon: Option<u32>, calm: bool) {
        if let Some((pid, vitals)) = daemon.and_then(|pid| Some((pid, Vitals::of(pid)?))) {
            self.most = self.most.most(vitals);
            if pid != self.daemon || !calm {
                self.calm.clear();
            }
            self.daemon = pid;
            self.calm.push(vitals);
            let bounds = [
                ("descriptors", vitals.descriptors, 150),
                ("kB resident", vitals.resident, 65_536),
                ("threads", vitals.threads, 20),
                ("zombies", vitals.zombies, 12),
            ];
            let beyond = bounds.into_iter().filter(|(_, is, bound)| is > bound);
            self.wrong.extend(beyond.map(|(what, is, bound)| format!("{is} {what}, more than {bound}")));
        }
        self.look_at_locks(house);
        self.look_at_logs(&house.path("state"));
    }

    /// A lock is somebody's for a moment; what the dead leave is taken over within twelve seconds by whoever comes.
    fn look_at_locks(&mut self, house: &House) {
        let found: Vec<(PathBuf, u64)> = below(&house.root())
            .into_iter()
            .filter(|(path, meta)| meta.is_dir() && path.to_string_lossy().ends_with(".lock"))
            .map(|(path, meta)| (path, meta.ino()))
            .collect();
        self.locks.retain(|lock, _| found.contains(lock));
        for lock in found {
            self.locks.entry(lock).or_insert_with(Instant::now);
        }
        let old = self.locks.iter().filter(|(_, since)| since.elapsed() > Duration::from_secs(40));
        self.wrong.extend(old.map(|(lock, since)| format!("{lock:?} for {:.0?}", since.elapsed())));
    }

    /// Ten logs of ten MiB each, and two parts of the event log of seven.
    fn look_at_logs(&mut self, state: &Path) {
        let logs: Vec<_> = below(state)
            .into_iter()
            .filter(|(path, meta)| meta.is_file() && path.to_string_lossy().contains(".log"))
            .collect();
        let large = logs.iter().filter(|(_, meta)| meta.len() > 11 << 20);
        self.wrong.extend(large.map(|(path, meta)| format!("{} has {} bytes", path.display(), meta.len())));
    }

    /// What of the calm was more in its last third than in its first, each by its middle: calls come and go, and a
    /// daemon that has just begun has nobody yet. Descriptors, and kB.
    fn growth(&self) -> (i64, i64) {
        let third = self.calm.len() / 3;
        let (first, last) = (&self.calm[..third], &self.calm[self.calm.len() - third..]);
        let middle = |part: &[Vitals], of: fn(&Vitals) -> u64| {
            let mut all: Vec<u64> = part.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).map_or(0, |middle| *middle as i64)
        };
        let grown = |of: fn(&Vitals) -> u64| middle(last, of) - middle(first, of);
        (grown(|vitals| vitals.descriptors), grown(|vitals| vitals.resident))
    }
}

fn below(directory: &Path) -> Vec<(PathBuf, std::fs::Metadata)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| Some((entry.path(), entry.path().symlink_metadata().ok()?)));
    found
        .flat_map(|(path, meta)| {
            let inside = if meta.is_dir() { below(&path) } else { Vec::new() };
            inside.into_iter().chain([(path, meta)])
        })
        .collect()
}

/// Where the house may lie, and where a small disk can be had.
fn house(disk: Option<&Disk>) -> House {
    let house = disk.map_or_else(House::empty, |disk| House::on(disk.path()));
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    complete(&house, &BTreeSet::new());
    house
}

/// Foreign writers on the first reader's inbox. A full disk is not theirs to bear: they end before it.
struct Others {
    running: Vec<Foreign>,
    rounds: u64,
    stored: Vec<String>,
}

impl Others {
    fn come(&mut self, house: &House) {
        if self.rounds > 0 && self.stored.is_empty() {
            // This machine has not what they need, and has said so.
            return;
        }
        self.rounds += 1;
        let inbox = house.root().join("teams/survey/inboxes/r0.json");
        let start =
            |(manner, name)| Foreign::start(house, manner, &inbox, &format!("{name}{}", self.rounds), None);
        self.running =
            [(Manner::Renaming, "f"), (Manner::Truncating, "t")].into_iter().filter_map(start).collect();
    }

    fn go(&mut self) {
        let outcomes = self.running.drain(..).map(Foreign::outcome);
        self.stored.extend(outcomes.flat_map(|outcome| outcome.stored));
    }
}

/// All of it, until the time is over; what was seen meanwhile, and what the others have stored.
fn storm(
    post: &Post<'_>,
    nemesis: &mut Nemesis<'_>,
    disk: Option<&Disk>,
    whole: Duration,
) -> (Watched, Vec<Look>, Vec<String>) {
    let house = post.house;
    let mut times = Times::of(whole);
    let mut others = Others { running: Vec::new(), rounds: 0, stored: Vec::new() };
    let planter = Planter::start(inboxes(house, &READERS[1..]), Duration::from_secs(7));
    let (rings, bells): (Vec<_>, Vec<_>) = READERS.map(|_| channel()).into_iter().unzip();
    let (seen, looks) = std::thread::scope(|scope| {
        let reading = |(me, bell): (&'static str, Receiver<()>)| scope.spawn(move || post.reads(me, &bell));
        let readers: Vec<_> = READERS.into_iter().zip(bells).map(reading).collect();
        let (goes, bells): (Vec<_>, Vec<_>) = (0..SENDERS).map(|_| sync_channel(1)).unzip();
        let senders: Vec<_> = bells
            .into_iter()
            .enumerate()
            .map(|(n, bell)| {
                let (rings, rng) = (rings.clone(), nemesis.rng.fork());
                scope.spawn(move || post.sends(&format!("s{n}"), 1, rng, &bell, &rings))
            })
            .collect();
        let (stop_ticks, ticked) = channel::<()>();
        let ticker = scope.spawn(move || ticks(&goes, &ticked));
        let (stop_watch, watched) = channel::<()>();
        let calm_from = times.began + whole * 2 / 3;
        let watcher = scope.spawn(move || watch(house, calm_from, &watched));
        others.come(house);
        while !times.is_over() {
            std::thread::park_timeout(Duration::from_millis(nemesis.rng.u64(500..2_500)));
            if disk.is_some() && times.is_disk_due() {
                others.go();
            }
            strike(nemesis, &mut times, disk);
            if others.running.is_empty() {
                others.come(house);
            }
            nemesis.revive();
            complete(house, &nemesis.whole()).into_iter().for_each(|who| post.retired(who));
        }
        others.go();
        drop((stop_ticks, stop_watch));
        ticker.join().unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        drop(rings);
        let looks = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>();
        (watcher.join().unwrap(), looks)
    });
    let spoiled = planter.stop().into_iter().filter(|(_, well)| !well).count();
    assert_eq!(spoiled, 0, "what is no empty directory is no lock");
    (seen, looks, others.stored)
}

fn inboxes(house: &House, of: &[&str]) -> Vec<PathBuf> {
    of.iter().map(|name| house.root().join(format!("teams/survey/inboxes/{name}.json"))).collect()
}

/// Rings all senders four times a second; one that is still busy is not rung twice.
fn ticks(goes: &[SyncSender<()>], stop: &Receiver<()>) {
    while stop.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
        for go in goes {
            go.try_send(()).ok();
        }
    }
}

fn watch(house: &House, calm_from: Instant, stop: &Receiver<()>) -> Watched {
    let mut watched = Watched::default();
    while stop.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        watched.look(house, house.daemon_process(), Instant::now() > calm_from);
    }
    watched
}

#[test]
#[allow(clippy::print_stderr, reason = "a summary for whoever reads it")]
fn everything_at_once_and_in_the_end_nothing_is_lost_and_nothing_has_grown() {
    let whole = Duration::from_secs(rounds("MIN", 0) * 60).max(Duration::from_secs(20));
    let disk = Disk::mount(DISK);
    if disk.is_none() {
        skipped("full-disks", "no right to mount a small file system");
    }
    let diaries = tempfile::tempdir().unwrap();
    let house = house(disk.as_ref());
    let mut nemesis = Nemesis::of(&house, rounds("SEED", 1));
    if !nemesis.take_clock() {
        skipped("clock-jumps", "libfaketime is not installed");
    }
    let post = Post { house: &house, diaries: diaries.path().to_owned(), readers: &READERS };
    let (watched, looks, theirs) = storm(&post, &mut nemesis, disk.as_ref(), whole);
    nemesis.revive();
    complete(&house, &nemesis.whole()).into_iter().for_each(|who| post.retired(who));
    let team = MEMBERS.map(|(name, ..)| name.to_owned()).into();
    let history = post.history(looks, team, nemesis.whole());
    let (sent, (descriptors, memory)) = (stored(&history), watched.growth());
    eprintln!(
        "{sent} messages stored; at most {:?}; in a calm of {} s {descriptors:+} descriptors, {memory:+} kB",
        watched.most,
        watched.calm.len()
    );
    assert_eq!(watched.wrong, [""; 0]);
    assert_eq!(checker::check(&history), []);
    let inbox = house.inbox("survey", "r0");
    for text in &theirs {
        assert_eq!(inbox.iter().filter(|message| message["text"] == **text).count(), 1, "{text} of theirs");
    }
    assert!(descriptors <= 0, "{descriptors} descriptors more: {:?}", watched.calm);
    let allowed = 1_024 + 1_024 * sent as i64 / 100_000;
    assert!(memory <= allowed, "{memory} kB more than in the beginning: {:?}", watched.calm);
    let daemons = nemesis.end();
    house.end_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    figure("soaked-seconds", whole.as_secs());
}
