//! Its inbox can't be read or written.

use super::{says, says_as, signal, stays, task, types, works};
use harness::House;
use std::process::Command;
use std::time::{Duration, SystemTime};

const INBOX: &str = "root/teams/survey/inboxes/ann.json";

fn lock(house: &House) -> std::path::PathBuf {
    house.path(&format!("{INBOX}.lock"))
}

/// One that obeys this order at a crash point.
fn sender(house: &House, order: &str) -> Command {
    house.put("crash/armed", order);
    house.put("crash/hits", "");
    let mut command = house.command(harness::programs().join("teamctl"));
    command.args(["send", "ann", "x"]).env("TEAMD_FAILPOINTS", house.path("crash"));
    command
}

#[test]
fn it_is_damaged() {
    let house = House::with_team();
    stays(&house);
    house.put(INBOX, "[{\"from\": ");
    let told = says(&house, "inbox_damaged");
    assert_eq!(told["next"][0], "teamctl doctor");
    let found = house.teamctl(["doctor"]);
    assert!(found.code != 0 && found.stdout.contains("inboxes/ann.json"), "{found:#?}");
    house.put(INBOX, "[]");
    house.end();
}

#[test]
fn its_lock_is_held_by_the_dead() {
    let house = House::with_team();
    stays(&house);
    std::fs::create_dir(lock(&house)).unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(lock(&house)).unwrap().set_modified(old).unwrap();
    types(&house, &says(&house, "inbox_lock_abandoned"));
    assert!(!lock(&house).exists());
    house.end();
}

/// In the instant between its making and the grip on it: it is known for a dead one's at once all the same.
#[test]
fn its_lock_is_of_one_who_was_killed_before_it_had_it() {
    let house = House::with_team();
    stays(&house);
    let killed = sender(&house, "kill teamctl lock.taken 1").output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed.status), Some(9), "{killed:?}");
    assert!(lock(&house).exists());
    types(&house, &says(&house, "inbox_lock_abandoned"));
    assert!(!lock(&house).exists());
    // Of its half file the next teamd sees to.
    house.end_after_kills();
}

/// A sender of ours is stopped while it has the lock.
#[test]
fn its_lock_is_held_by_the_living() {
    let house = House::with_team();
    stays(&house);
    let mut sender = sender(&house, "pause teamctl lock.held 1").spawn().unwrap();
    let told = says(&house, "inbox_locked");
    let holder = told["evidence"][1].as_str().unwrap();
    assert!(holder.contains(&format!("process {} (teamctl)", sender.id())), "{told}");
    assert!(types(&house, &told).contains("send ann x"));
    signal(sender.id(), rustix::process::Signal::CONT);
    assert!(sender.wait().unwrap().success());
    house.end();
}

#[test]
fn what_stands_for_its_lock_is_none() {
    let house = House::with_team();
    stays(&house);
    house.put(&format!("{INBOX}.lock"), "4711");
    types(&house, &says(&house, "inbox_barred"));
    std::fs::remove_file(lock(&house)).unwrap();
    house.end();
}

/// It has to tell the lead how its turn has ended, and goes no further before.
#[test]
fn what_stands_for_the_lock_of_the_lead_is_none() {
    let house = House::with_team();
    works(&house);
    house.put("root/teams/survey/inboxes/team-lead.json.lock", "4711");
    task(&house, "true");
    let told = says_as(&house, "inbox_barred", |sentence| sentence.replace("team-lead", "ann"));
    assert!(told["sentence"].as_str().unwrap().contains("inbox of team-lead"), "{told}");
    types(&house, &told);
    std::fs::remove_file(house.path("root/teams/survey/inboxes/team-lead.json.lock")).unwrap();
    house.until("its end is told", || house.told("ann", "idle_notification").first().map(drop));
    house.end();
}
