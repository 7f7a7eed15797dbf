//! Everything at once, for as long as `MIN` says (minutes; without it twenty seconds, and until each kind of strike has
//! hit): agents, senders, readers and foreign writers; every two seconds or so somebody is killed or stopped, or the
//! daemon gets no descriptor or no watches, or its clock jumps, or the disk is full: each of these once in turn, and then by chance
//! (`soak/strikes.rs`). What the daemon holds is watched each second. In the last third it is left alive, and what it
//! holds must not grow; and in the end it has no more open than one that has just begun.

mod strikes;

use crate::crew::{Member, Runs, complete, names};
use crate::others::{Others, PACED};
use crate::traffic::{Post, stored};
use harness::history::Look;
use harness::{
    Disk, House, Nemesis, Vitals, Whom, can_limit_watches, checker, figure, pause, rounds, skipped,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};
use strikes::{Kind, Strikes};

const CREW: [Member; 10] = [
    Member("r0", "in-process", Runs::Stays),
    Member("r1", "tmux", Runs::Stays),
    Member("r2", "in-process", Runs::Stays),
    Member("r3", "tmux", Runs::Stays),
    Member("k0", "tmux", Runs::Stays),
    Member("k1", "tmux", Runs::Stays),
    Member("k2", "window", Runs::Stays),
    Member("w0", "tmux", Runs::Worker),
    Member("w1", "in-process", Runs::Worker),
    Member("w2", "in-process", Runs::Worker),
];
const READERS: [&str; 4] = ["r0", "r1", "r2", "r3"];
const SENDERS: usize = 8;
/// Of the small disk, MiB.
const DISK: u32 = 256;

/// How long it lasts: two thirds, or until each kind has hit; then the calm, in which the daemon lives.
struct Times {
    began: Instant,
    whole: Duration,
    calm_from: OnceLock<Instant>,
}

impl Times {
    /// # Panics
    /// Where some kind has not hit in so long.
    fn look(&self, strikes: &Strikes<'_>) {
        let long = self.began.elapsed() > self.whole * 2 + Duration::from_secs(120);
        assert!(strikes.had_each() || !long, "not each kind has hit: {:?}", strikes.told());
        if strikes.had_each() && self.began.elapsed() > self.whole * 2 / 3 {
            self.calm_from.get_or_init(Instant::now);
        }
    }

    fn is_calm(&self) -> bool {
        self.calm_from.get().is_some()
    }

    fn is_over(&self) -> bool {
        self.calm_from.get().is_some_and(|from| from.elapsed() > self.whole / 3)
    }
}

/// What was seen of the daemon, each second.
#[derive(Default)]
struct Watched {
    most: Vitals,
    /// In the calm, of the one daemon that lives in it: at each second.
    calm: Vec<Vitals>,
    daemon: u32,
    locks: BTreeMap<(PathBuf, u64), Instant>,
    wrong: Vec<String>,
}

impl Watched {
    fn look(&mut self, house: &House, daemon: Option<u32>, calm: bool) {
        if let Some((pid, vitals)) = daemon.and_then(|pid| Some((pid, Vitals::of(pid)?))) {
            self.most = self.most.most(vitals);
            if calm {
                self.look_at_calm(pid, vitals);
            }
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

    fn look_at_calm(&mut self, pid: u32, vitals: Vitals) {
        if self.calm.is_empty() {
            self.daemon = pid;
        } else if pid != self.daemon {
            self.wrong.push(format!("the daemon {} did not live through the calm", self.daemon));
        }
        self.calm.push(vitals);
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
        let is_log =
            |path: &Path| [".log", "events.jsonl"].iter().any(|of| path.to_string_lossy().contains(of));
        let logs: Vec<_> =
            below(state).into_iter().filter(|(path, meta)| meta.is_file() && is_log(path)).collect();
        let own = logs
            .iter()
            .filter(|(path, _)| path.parent().is_some_and(|of| of.ends_with("logs/teamd")))
            .count();
        if own > 11 {
            self.wrong.push(format!("{own} logs of the daemon"));
        }
        let large = logs.iter().filter(|(_, meta)| meta.len() > 11 << 20);
        self.wrong.extend(large.map(|(path, meta)| format!("{} has {} bytes", path.display(), meta.len())));
    }

    /// What was resident in the last third of the calm beyond what was in its first, kB: the least of that, since calls
    /// come and go, than the middle of this, since a daemon that has just begun has nobody yet.
    fn growth(&self) -> i64 {
        let third = self.calm.len() / 3;
        let mut first: Vec<i64> = self.calm[..third].iter().map(|vitals| vitals.resident as i64).collect();
        first.sort_unstable();
        let last = self.calm[self.calm.len() - third..].iter().map(|vitals| vitals.resident as i64).min();
        last.zip(first.get(third / 2)).map_or(0, |(least, middle)| least - middle)
    }
}

/// What the daemon has open where everybody is there, and nobody does anything.
fn at_rest(house: &House) -> Vec<String> {
    house.until("everybody is connected", || {
        let status = house.json(["status"]);
        let members = status["teams"][0]["members"].as_array()?.clone();
        let there = members.iter().filter(|member| member["phase"] == "running").count();
        (there == CREW.len()).then_some(())
    });
    house.quiet(Duration::from_millis(300));
    open(house.daemon())
}

/// The same of a daemon that has just begun. Every other one has a pane: the second is as the one before the first.
fn fresh(house: &House, nemesis: &mut Nemesis<'_>) -> Vec<String> {
    for _ in 0..2 {
        nemesis.kill(Whom::Daemon);
        nemesis.revive();
        nemesis.whole();
    }
    at_rest(house)
}

fn open(pid: u32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut all: Vec<String> =
        all.filter_map(|fd| Some(std::fs::read_link(fd.path()).ok()?.display().to_string())).collect();
    all.sort();
    all
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
    complete(&house, &CREW, &BTreeSet::new());
    house
}

/// All of it, until the time is over; what was seen of the daemon meanwhile, and of the inboxes.
fn storm(
    post: &Post<'_>,
    nemesis: &mut Nemesis<'_>,
    strikes: &mut Strikes<'_>,
    whole: Duration,
) -> (Watched, Vec<Look>) {
    let house = post.house;
    let times = &Times { began: Instant::now(), whole, calm_from: OnceLock::new() };
    let mut others = Others::of(house, "survey", PACED);
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
        let watcher = scope.spawn(move || watch(house, times, &watched));
        others.come();
        while !times.is_over() {
            times.look(strikes);
            pause(Duration::from_millis(nemesis.rng.u64(500..2_500)));
            let kind = strikes.next(&mut nemesis.rng, times.is_calm());
            if kind == Kind::DiskFull {
                others.go();
            }
            strikes.strike(kind, nemesis);
            if others.are_away() {
                others.come();
            }
            nemesis.revive();
            complete(house, &CREW, &nemesis.whole()).into_iter().for_each(|who| post.retired(who));
        }
        others.go();
        drop((stop_ticks, stop_watch));
        ticker.join().unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        drop(rings);
        let looks = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>();
        (watcher.join().unwrap(), looks)
    });
    others.check();
    (seen, looks)
}

/// Rings all senders four times a second; one that is still busy is not rung twice.
fn ticks(goes: &[SyncSender<()>], stop: &Receiver<()>) {
    while stop.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
        for go in goes {
            go.try_send(()).ok();
        }
    }
}

fn watch(house: &House, times: &Times, stop: &Receiver<()>) -> Watched {
    let mut watched = Watched::default();
    while stop.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        // Asked first: who lives when the calm has begun is who lives in it.
        let calm = times.is_calm();
        watched.look(house, house.daemon_process(), calm);
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
    let clock = nemesis.take_clock();
    if !clock {
        skipped("clock-jumps", "libfaketime is not installed");
    }
    if !can_limit_watches() {
        skipped("few-watches", "no user namespaces for us");
    }
    let mut strikes = Strikes::new(disk.as_ref(), clock);
    let post = Post { house: &house, diaries: diaries.path().to_owned(), readers: &READERS };
    let (watched, looks) = storm(&post, &mut nemesis, &mut strikes, whole);
    nemesis.revive();
    complete(&house, &CREW, &nemesis.whole()).into_iter().for_each(|who| post.retired(who));
    let history = post.history(looks, names(&CREW), nemesis.whole());
    let (sent, memory) = (stored(&history), watched.growth());
    let (old, fresh) = (at_rest(&house), fresh(&house, &mut nemesis));
    eprintln!(
        "{sent} messages stored; at most {:?}; in a calm of {} s {memory:+} kB; {} descriptors at rest, of {} at first",
        watched.most,
        watched.calm.len(),
        old.len(),
        fresh.len()
    );
    eprintln!("what went wrong, and how often: {:?}", strikes.told());
    assert_eq!(watched.wrong, [""; 0]);
    assert!(watched.calm.len() >= 3, "nobody saw the calm: {:?}", watched.calm);
    assert_eq!(checker::check(&history), []);
    assert!(old.len() <= fresh.len(), "it has more open than one that has just begun: {old:#?}, {fresh:#?}");
    let allowed = 1_024 + 1_024 * sent as i64 / 100_000;
    assert!(memory <= allowed, "{memory} kB more than in the beginning: {:?}", watched.calm);
    let daemons = nemesis.end();
    house.end_after_kills();
    for mut daemon in daemons {
        daemon.wait().unwrap();
    }
    figure("soaked-seconds", whole.as_secs());
}
