//! Teams are made and removed.

use harness::House;

#[test]
fn refused_while_members_live_and_complete_afterwards() {
    let house = House::start();
    house.teamctl(["create", "survey"]).ok();
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    house.teamctl(["spawn", "bob", "--agent", "worker"]).ok();
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(said.contains("2 active member(s): ann, bob"), "{said}");
    house.teamctl(["shutdown", "ann"]).ok();
    house.teamctl(["delete", "survey", "--force"]).ok();
    assert!(!house.path("root/teams/survey").exists());
    assert!(!house.path("root/tasks/survey").exists());
    house.teamctl(["create", "survey"]).ok();
    house.end();
}

#[test]
fn a_taken_name_is_an_error_unless_another_will_do() {
    let house = House::start();
    house.teamctl(["create", "survey"]).ok();
    house.teamctl(["create", "survey"]).fails(73);
    assert_eq!(house.json(["create", "survey", "--unique"])["team_name"], "survey-2");
    let ran = house.teamctl(["create", "My Team!", "--json"]);
    assert!(ran.stderr.contains("my-team-"), "{ran:?}");
    assert_eq!(ran.json()["team_name"], "my-team-");
    house.teamctl(["create", "!!!"]).fails(64);
    house.teamctl(["create", "session-12345678"]).fails(77);
    house.end();
}

#[test]
fn what_is_not_ours_is_kept() {
    let house = House::start();
    house.teamctl(["create", "survey"]).ok();
    std::fs::File::create(house.path("root/teams/survey/notes.txt")).unwrap();
    let ran = house.teamctl(["delete", "survey"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("notes.txt"), "{ran:?}");
    assert!(house.path("root/teams/survey/notes.txt").exists());
    house.end();
}

#[test]
fn nobody_comes_while_its_members_are_ended() {
    let house = House::start();
    house.teamctl(["create", "survey"]).ok();
    let stubborn = "trap '' TERM; while :; do sleep 1; done";
    house.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", stubborn]).ok();
    let mut delete = house.teamctl_running(["delete", "survey", "--force"]);
    house.until("ann is being ended", || (house.member("ann")?["phase"] == "stopping").then_some(()));
    house.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "777"]).fails(76);
    assert!(delete.wait().unwrap().success());
    house.end();
}
