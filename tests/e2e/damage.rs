//! Somebody damages config.json under a living team: nobody is lost by it.

use harness::House;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn config(house: &House) -> PathBuf {
    house.root().join("teams/survey/config.json")
}

/// Truncates and writes in place, as old clients do.
#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn put(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// The config with both members, once it is whole.
fn whole(house: &House) -> Value {
    house.until("the config is whole again", || {
        let config: Value = serde_json::from_slice(&std::fs::read(config(house)).ok()?).ok()?;
        let names: Vec<&str> =
            config["members"].as_array()?.iter().filter_map(|m| m["name"].as_str()).collect();
        (names == ["team-lead", "ann"]).then(|| config.clone())
    })
}

fn copies(house: &House) -> Vec<String> {
    let base = house.path("state/teamd");
    let homes = std::fs::read_dir(base).unwrap().map(|home| home.unwrap().path().join("aside"));
    let files = homes.flat_map(|aside| std::fs::read_dir(aside).into_iter().flatten());
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn a_damaged_config_is_written_anew_and_what_it_said_is_kept() {
    let house = House::start();
    house.teamctl(["create", "survey", "--description", "what there is"]).ok();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    let before = whole(&house);
    let by_hand = before.to_string().replace("\"what there is\"", "\"what there is");
    for damage in ["", &by_hand] {
        put(&config(&house), damage);
        // Whoever comes meanwhile waits.
        house.teamctl(["send", "ann", "are you there?"]).ok();
        assert_eq!(whole(&house), before);
        assert!(copies(&house).iter().any(|copy| copy == damage), "{:?}", copies(&house));
    }
    std::fs::remove_file(config(&house)).unwrap();
    assert_eq!(whole(&house), before);
    assert_eq!(copies(&house).len(), 2, "each once");
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.end();
}

#[test]
fn a_config_that_was_left_empty_while_no_daemon_ran_is_written_anew_by_the_next() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    let before = whole(&house);
    house.kill_9(house.daemon());
    put(&config(&house), "");
    house.start_daemon();
    assert_eq!(whole(&house), before);
    house.end();
}

#[test]
fn a_mode_that_was_set_comes_back_with_the_config_by_this_daemon_and_by_the_next() {
    let house = House::with_team();
    house.profile("modal", "feed = 'turn'\nprogram = 'true'\n[modes]\ndefault = []\nacceptEdits = ['e']\n");
    house.teamctl(["spawn", "ann", "--agent", "modal"]).ok();
    house.teamctl(["mode", "ann", "acceptEdits"]).ok();
    let mode = || whole(&house)["members"][1]["mode"].clone();
    house.until("it goes on in that mode", || (mode() == "acceptEdits").then_some(()));
    put(&config(&house), "");
    assert_eq!(mode(), "acceptEdits");
    house.kill_9(house.daemon());
    put(&config(&house), "");
    house.start_daemon();
    assert_eq!(mode(), "acceptEdits");
    house.end();
}

#[test]
fn a_team_that_another_program_made_is_left_as_it_is() {
    let house = House::with_team();
    let text = std::fs::read_to_string(config(&house)).unwrap();
    let other = house.root().join("teams/other");
    std::fs::create_dir_all(other.join("inboxes")).unwrap();
    put(&other.join("config.json"), &text.replace("survey", "other"));
    house.kill_9(house.daemon());
    house.start_daemon();
    put(&other.join("config.json"), "");
    // What the daemon does about ours comes after what it does about that one.
    house.teamctl(["spawn", "ann", "-t", "survey", "--", &house.agent(), "stay"]).ok();
    put(&config(&house), "");
    whole(&house);
    assert_eq!(std::fs::read(other.join("config.json")).unwrap(), b"");
    house.end();
}

#[test]
fn where_no_file_may_grow_nothing_is_half_done_and_nobody_dies() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.teamctl(["send", "ann", "the first"]).ok();
    let inbox = house.inbox("survey", "ann");
    let mut sender = house.command("sh");
    sender.args(["-c", "ulimit -f 0; exec teamctl send ann more"]);
    let ran = sender.output().unwrap();
    assert_eq!(ran.status.code(), Some(74), "{ran:?}");
    assert_eq!(house.inbox("survey", "ann"), inbox);
    let daemon = Pid::from_raw(i32::try_from(house.daemon()).unwrap());
    let before = prlimit(daemon, Resource::Fsize, Rlimit { current: Some(0), maximum: None }).unwrap();
    house.teamctl(["create", "other"]).fails(74);
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    prlimit(daemon, Resource::Fsize, before).unwrap();
    house.teamctl(["create", "other"]).ok();
    house.end();
}

/// What ends an agent is no write: room is not what it waits for.
#[test]
fn on_a_full_disk_who_is_to_end_ends_and_is_off_the_team_when_there_is_room() {
    let Some(disk) = harness::Disk::mount(16) else {
        return harness::skipped("full-disk-ends", "no right to mount a small file system");
    };
    let house = House::on(disk.path());
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    let spawn =
        |name: &str| house.json(["spawn", name, "--", &house.agent(), "children"])["pid"].as_u64().unwrap();
    let pids = ["ann", "bob"].map(spawn).map(|pid| harness::Processes::one(u32::try_from(pid).unwrap()));
    disk.fill();
    house.teamctl(["send", "ann", "x"]).fails(74);
    let said =
        [house.teamctl(["kill", "ann"]), house.teamctl(["shutdown", "bob", "--grace", "100ms", "--force"])];
    for (pid, said) in pids.iter().zip(said) {
        assert!(pid.ended_within(std::time::Duration::from_secs(5)), "it lives on: {said:#?}");
        said.ok();
    }
    let team = &house.json(["status"])["teams"][0];
    let names = |of: &str| {
        let all = team[of].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("members"), names("past")),
        (vec!["team-lead".to_owned(), "ann".into(), "bob".into()], vec!["ann".into(), "bob".into()])
    );
    let phases: Vec<_> = (1..3).map(|at| team["members"][at]["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["ended", "ended"]);
    disk.free();
    // This one would look at all of it again within 30 s; the next does so at once.
    house.kill_9(house.daemon());
    house.start_daemon();
    house.until("both are off the team", || {
        ["ann", "bob"].iter().all(|name| house.member(name).is_none()).then_some(())
    });
    house.end_after_kills();
}
