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
        house.teamctl_with(&[&["spawn", name, "--backend", backend], program].concat(), &[]).ok();
        *name
    };
    missing.map(spawn).collect()
}

/// Their names.
pub(crate) fn names(crew: &[Member]) -> BTreeSet<String> {
    crew.iter().map(|Member(name, ..)| (*name).to_owned()).collect()
}
