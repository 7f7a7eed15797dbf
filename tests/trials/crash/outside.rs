//! The daemon's own system calls, broken one at a time by strace while it does what it is asked, or comes after one that
//! was killed: no crash point has to stand there. Who it starts itself is under strace with it.

use super::desk;
use super::operations::{OPERATIONS, Operation};
use super::scene::Scene;
use super::tally::Tally;
use harness::{House, figure, rounds, skipped};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};

/// Calls that change something, or that a change stands on.
const CALLS: [&str; 16] = [
    "openat",
    "write",
    "mkdirat",
    "mkdir",
    "renameat",
    "renameat2",
    "unlinkat",
    "unlink",
    "fchmod",
    "ftruncate",
    "fsync",
    "fdatasync",
    "flock",
    "sendto",
    "connect",
    "clone3",
];

/// What becomes of the call: the daemon is killed at it, it fails, it takes long.
const BREAKS: [&str; 4] = ["signal=KILL", "error=ENOSPC", "error=EIO", "delay_enter=60000"];

/// strace at the daemon; none where it may not.
struct Tracer(Child);

impl Tracer {
    fn attach(house: &House, words: &[String]) -> Option<Tracer> {
        house.put("out/strace", "");
        let said = std::fs::File::options().append(true).open(house.path("out/strace")).unwrap();
        let mut strace = house.command("strace");
        strace.args(["-f", "-p", &house.daemon().to_string(), "-o"]).arg(house.path("out/trace")).args(words);
        let strace = strace.stderr(Stdio::from(said)).spawn().ok()?;
        let attached = house.until("strace is there", || {
            let said = house.read("out/strace");
            (said.contains("attach")).then(|| said.contains("attached") && !said.contains("not permitted"))
        });
        let tracer = Tracer(strace);
        if attached {
            Some(tracer)
        } else {
            tracer.detach(house);
            None
        }
    }

    /// Told to go, strace waits until each thread has stopped; one that has just forked can't before its child has gone on, and
    /// that is strace's to let go. Killed, it leaves all of them to themselves.
    fn detach(mut self, house: &House) -> String {
        let strace = Pid::from_child(&self.0);
        kill_process(strace, Signal::INT).unwrap_or_default();
        let pidfd = pidfd_open(strace, PidfdFlags::empty()).unwrap();
        let gone = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&Timespec { tv_sec: 5, tv_nsec: 0 }));
        if gone != Ok(1) {
            kill_process(strace, Signal::KILL).unwrap_or_default();
        }
        self.0.wait().unwrap();
        house.read("out/trace")
    }
}

/// What is broken; none: the start of a daemon after a kill.
type Which = Option<usize>;

/// How often at most one thread makes each call in it.
fn counted(scene: &mut Scene, which: Which) -> Option<BTreeMap<&'static str, u64>> {
    let trace = traced(scene, which, &[format!("-etrace={}", CALLS.join(","))])?;
    let mut times: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
    for line in trace.lines() {
        let thread = line.split(' ').next().unwrap_or_default();
        for call in CALLS.into_iter().filter(|call| line.contains(&format!(" {call}("))) {
            *times.entry((thread, call)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    times.into_iter().for_each(|((_, call), times)| {
        most.entry(call).and_modify(|most: &mut u64| *most = times.max(*most)).or_insert(times);
    });
    Some(most)
}

fn traced(scene: &mut Scene, which: Which, words: &[String]) -> Option<String> {
    scene.has_tmux();
    match which {
        Some(which) => operated(scene, &OPERATIONS[which], words),
        None => Some(recovered(scene, words)),
    }
}

/// One operation with strace at the daemon, and all made good again; what strace wrote.
fn operated(scene: &mut Scene, operation: &Operation, words: &[String]) -> Option<String> {
    scene.n += 1;
    let typed = (operation.begin)(&scene.house, scene.n);
    let tracer = Tracer::attach(&scene.house, words)?;
    scene.type_in(&typed);
    let case = format!("{typed:?} under {words:?}");
    scene.until(&format!("{case} ends"), || scene.code());
    scene.house.quiet(desk::REST);
    let trace = tracer.detach(&scene.house);
    scene.house.age_leftovers();
    scene.reap();
    scene.up();
    scene.stands(operation, &case, false);
    scene.settle(operation, &case);
    Some(trace)
}

/// A daemon that comes after a killed one, under strace from its first call; then one that is under none. All is as before
/// with both; what strace wrote.
fn recovered(scene: &mut Scene, words: &[String]) -> String {
    let words = [&["-f".to_owned(), "-o".to_owned(), "out/trace".to_owned()], words].concat();
    scene.restart_under("strace", &words);
    let trace = scene.house.read("out/trace");
    let case = format!("recovery under {words:?}");
    scene.house.age_leftovers();
    scene.up();
    scene.rests(&case);
    scene.kill_daemon();
    scene.up();
    scene.rests(&case);
    trace
}

/// Each call of each of them with each break, in an order by chance in which the breaks take turns.
fn all(scene: &mut Scene, rng: &mut fastrand::Rng) -> Option<Vec<(Which, &'static str, u64, &'static str)>> {
    let daemons = (0..OPERATIONS.len()).filter(|which| OPERATIONS[*which].is_the_daemons());
    let mut all = Vec::new();
    for which in daemons.map(Some).chain([None]) {
        let calls = counted(scene, which)?;
        let each = calls.into_iter().flat_map(|(call, times)| (1..=times).map(move |nth| (which, call, nth)));
        all.extend(each);
    }
    rng.shuffle(&mut all);
    let with = |turn: usize| {
        move |(n, (which, call, nth)): (usize, &(_, _, _))| {
            (*which, *call, *nth, BREAKS[(n + turn) % BREAKS.len()])
        }
    };
    Some((0..BREAKS.len()).flat_map(|turn| all.iter().enumerate().map(with(turn))).collect())
}

fn is_hit(trace: &str, how: &str) -> bool {
    trace.contains(match how {
        "signal=KILL" => "killed by SIGKILL",
        how if how.starts_with("delay") => "DELAYED",
        _ => "INJECTED",
    })
}

#[test]
fn at_every_system_call_of_the_daemon_it_is_done_once_in_the_end() {
    let (wanted, seed) = (rounds("CALLS", 20), rounds("SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut scene = Scene::new(false);
    let (mut tally, mut broken, mut recoveries) = (Tally::default(), BTreeSet::new(), 0);
    while tally.hits < wanted {
        let Some(all) = all(&mut scene, &mut rng) else {
            return skipped("daemon-calls-broken", "strace can't attach here");
        };
        for (which, call, nth, how) in all {
            let words = [format!("-etrace={call}"), format!("-einject={call}:{how}:when={nth}")];
            let before = tally.hits;
            tally.count(&mut scene, false, |scene| {
                u64::from(is_hit(&traced(scene, which, &words).unwrap(), how))
            });
            if tally.hits > before {
                broken.insert(how);
                recoveries += u64::from(which.is_none());
            }
            if tally.hits >= wanted && recoveries > 0 && broken.len() == BREAKS.len() {
                break;
            }
        }
    }
    assert!(
        broken == BTreeSet::from(BREAKS) && recoveries > 0,
        "each has hit, and in a recovery: {broken:?}"
    );
    // Some libraries panic where a call is made to fail that no kernel fails, a write that wakes a thread; the daemon ends
    // whole then.
    let log = scene.house.teamd_log();
    let ours = log.lines().find(|line| line.contains("panicked at crates/"));
    assert_eq!(ours, None);
    scene.house.mend_after_kills();
    scene.house.end_after_panics();
    figure("daemon-calls-broken", tally.hits);
}
