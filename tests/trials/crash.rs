//! Every operation is run once to see which crash points it passes, then once for each of them with a kill, a full disk or
//! a stop there. Whatever it was: a new daemon is started, the same is asked again, and it is as if it had been done once.
//! The same with recovery itself, and with a second kill in the recovery from the first.
//!
//! `POINTS=n` says how many (250 unless said), `SEED=n` which of them, `ONLY=word` of which operations.

mod desk;
mod operations;
mod outside;
mod scene;
mod sight;
mod tally;
mod trees;

use desk::{Deed, Point};
use harness::{figure, rounds};
use operations::OPERATIONS;
use scene::Scene;
use std::collections::BTreeSet;
use std::time::Duration;
use tally::Tally;

/// One try: what is broken, where, and where its recovery is broken then.
#[derive(Debug, Clone)]
struct Case {
    /// None: the start of a daemon after a kill.
    operation: Option<usize>,
    at: Point,
    deed: Deed,
    /// Kills in the recovery from it.
    then: Vec<Point>,
}

/// All there is to try.
fn cases(scene: &mut Scene, rng: &mut fastrand::Rng, all: bool) -> Vec<Case> {
    let recovery: Vec<Point> = scene.record(None).into_iter().filter(|at| at.program == "teamd").collect();
    let mut cases = Vec::new();
    for at in recovery.iter().filter(|_| operations::all_are_wanted()) {
        let then = vec![at.clone(); if all { 9 } else { 2 }];
        cases.push(Case { operation: None, at: at.clone(), deed: Deed::Kill, then });
    }
    for which in (0..OPERATIONS.len()).filter(|which| OPERATIONS[*which].is_wanted()) {
        // What is seen of the files comes in no order, and often.
        let often = |at: &Point| at.nth > 2 && ["watch.saw", "screen.line"].contains(&at.name.as_str());
        for at in scene.record(Some(which)).into_iter().filter(|at| !often(at)) {
            let case = |deed, then| Case { operation: Some(which), at: at.clone(), deed, then };
            cases.push(case(Deed::Kill, Vec::new()));
            cases.push(case(Deed::Pause, Vec::new()));
            // What the daemon could not write is tried again at its next rescan, 30 s later.
            if at.call && (all || at.program != "teamd") {
                cases.push(case(Deed::Error, Vec::new()));
            }
            if at.program == "teamd" {
                cases.push(case(Deed::Kill, vec![recovery[rng.usize(0..recovery.len())].clone()]));
            }
        }
    }
    cases
}

/// In the loop, its threads and its tasks, each with an operation that passes there; not the one that watches lives, whose
/// word comes before that of who ended, or never.
const EVERYWHERE: [(&str, usize); 10] = [
    ("act.file", operations::IN_A_PANE),
    ("files.job", operations::IN_A_PANE),
    ("panes.job", operations::IN_A_PANE),
    ("connection.accepted", operations::IN_A_PANE),
    ("connection.heard", operations::IN_A_PANE),
    ("connection.write", operations::IN_A_PANE),
    ("watch.saw", operations::IN_A_PANE),
    ("watch.asked", operations::A_TEAM),
    ("screen.line", operations::IN_A_PANE),
    ("worktree.job", operations::IN_A_WORKTREE),
];

#[test]
fn a_panic_anywhere_ends_the_whole_daemon_and_no_agent() {
    let mut scene = Scene::new(true);
    for (name, operation) in EVERYWHERE {
        let at = Point { program: "teamd".to_owned(), name: name.to_owned(), call: false, nth: 1 };
        let case = Case { operation: Some(operation), at, deed: Deed::Panic, then: Vec::new() };
        // So that the first to pass is of this operation.
        scene.house.quiet(Duration::from_millis(200));
        assert_eq!(scene.try_case(&case), 1, "{name} was not passed");
        let log = scene.house.teamd_log();
        assert!(log.contains(&format!("a trial wants it so at {name}")), "{name}: no panic is in the log");
    }
    scene.house.end_after_panics();
}

/// Side by side, since most of a try is waiting; each has its share of the cases.
const LANES: usize = 2;

/// The operations, and the recovery.
fn everything() -> BTreeSet<Option<usize>> {
    (0..OPERATIONS.len()).map(Some).chain([None]).collect()
}

/// So many points, of the cases of one lane; how many were hit, and in which operations somebody was killed at one. A kill
/// of each comes first: a point that is not passed this time is followed by another.
fn swept(lane: usize, wanted: u64, all: bool) -> (u64, BTreeSet<Option<usize>>) {
    let (mut scene, mut seed, mut tally) = (Scene::new(true), rounds("SEED", 1), Tally::default());
    let mut killed = BTreeSet::new();
    while tally.hits < wanted {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut cases = cases(&mut scene, &mut rng, all);
        rng.shuffle(&mut cases);
        let mut is_hit = |case: &Case| {
            let before = tally.hits;
            tally.count(&mut scene, true, |scene| scene.try_case(case));
            tally.hits > before
        };
        for operation in everything() {
            let is_one = |case: &&Case| case.operation == operation && case.deed == Deed::Kill;
            if !killed.contains(&operation) && cases.iter().filter(is_one).skip(lane).any(&mut is_hit) {
                killed.insert(operation);
            }
        }
        for case in cases.iter().skip(lane).step_by(LANES) {
            if tally.hits >= wanted {
                break;
            }
            tally.count(&mut scene, true, |scene| scene.try_case(case));
        }
        seed += 1_000_000;
    }
    scene.house.end_after_kills();
    (tally.hits, killed)
}

#[test]
fn at_every_crash_point_it_is_done_once_in_the_end() {
    let wanted = rounds("POINTS", 250);
    let (hits, killed): (Vec<u64>, Vec<BTreeSet<Option<usize>>>) = std::thread::scope(|scope| {
        let share = wanted.div_ceil(LANES as u64);
        let lanes: Vec<_> =
            (0..LANES).map(|lane| scope.spawn(move || swept(lane, share, wanted >= 500))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).unzip()
    });
    for killed in killed {
        assert!(wanted < 250 || killed == everything(), "of all operations and the recovery: {killed:?}");
    }
    figure("crash-points", hits.iter().sum());
}
