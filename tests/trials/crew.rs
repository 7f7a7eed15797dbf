//! Who is to be on a trial's team: whoever was ended is spawned again.

use harness::House;
use std::collections::BTreeSet;

/// One of them: its name, where it runs, and what.
pub(crate) struct Member(pub(crate) &'static str, pub(crate) &'static str, pub(crate) Runs);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The scripted agent that does nothing.
    Stays,
    Worker,
}

/// Spawns whoever is missing; who that was.
pub(crate) fn complete(house: &House, crew: &[Member], living: &BTreeSet<String>) -> Vec<&'static str> {
    let agent = house.agent();
    let missing = crew.iter().filter(|Member(name, ..)| !living.contains(*name));
    let spawn = |Member(name, backend, runs): &Member| {
        let program: &[&str] =
            if *runs == Runs::Worker { &["--agent", "worker"] } else { &["--", &agent, "stay"] };
        spawned(house, &[&["spawn", name, "--backend", backend], program].concat());
        *name
    };
    missing.map(spawn).collect()
}

/// Until it is done, beside somebody who writes config.json without a lock: half written for longer than anybody waits it
/// is a reason to be refused, and who was refused so may be there all the same; and who has ended is put back into it, so
/// that the name is not free yet.
pub(crate) fn spawned(house: &House, words: &[&str]) {
    let mut is_again = false;
    house.until("it is spawned", || {
        let ran = house.teamctl_with(words, &[]);
        let is_not_free = ran.code == 73 && ran.stderr.contains("it has ended, and is not off the team yet");
        let is_there = ran.code == 0 || (is_again && ran.code == 73 && !is_not_free);
        assert!(is_there || is_not_free || ran.code == 65, "{ran:?}");
        is_again |= ran.code == 65;
        is_there.then_some(())
    });
}

/// Their names.
pub(crate) fn names(crew: &[Member]) -> BTreeSet<String> {
    crew.iter().map(|Member(name, ..)| (*name).to_owned()).collect()
}
