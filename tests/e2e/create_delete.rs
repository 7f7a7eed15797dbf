//! Teams are made and removed.

use harness::TestEnv;

#[test]
fn delete_is_rejected_with_members_and_complete_without() {
    let house = TestEnv::with_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    house.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let said = house.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(said.contains("2 active member(s): ann, bob"), "{said}");
    house.teamctl(["shutdown", "ann"]).expect_success();
    house.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(!house.path("root/teams/survey").exists());
    assert!(!house.path("root/tasks/survey").exists());
    house.teamctl(["create", "survey"]).expect_success();
    house.shut_down();
}

#[test]
fn taken_team_name_fails_unless_unique_is_given() {
    let house = TestEnv::with_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    house.teamctl(["create", "survey"]).expect_failure(73);
    assert_eq!(house.json(["create", "survey", "--unique"])["team_name"], "survey-2");
    let ran = house.teamctl(["create", "My Team!", "--json"]);
    assert!(ran.stderr.contains("my-team-"), "{ran:?}");
    assert_eq!(ran.json()["team_name"], "my-team-");
    house.teamctl(["create", "!!!"]).expect_failure(64);
    house.teamctl(["create", "session-12345678"]).expect_failure(77);
    house.shut_down();
}

#[test]
fn foreign_files_survive_delete() {
    let house = TestEnv::with_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    std::fs::File::create(house.path("root/teams/survey/notes.txt")).unwrap();
    let ran = house.teamctl(["delete", "survey"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("notes.txt"), "{ran:?}");
    assert!(house.path("root/teams/survey/notes.txt").exists());
    house.shut_down();
}

#[test]
fn no_member_can_be_spawned_during_delete() {
    let house = TestEnv::with_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    let stubborn = "trap '' TERM; while :; do sleep 1; done";
    house.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", stubborn]).expect_success();
    let mut delete = house.start_teamctl(["delete", "survey", "--force"]);
    house
        .wait_until("ann is being ended", || (house.member("ann")?["lifecycle"] == "stopping").then_some(()));
    house.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "777"]).expect_failure(76);
    assert!(delete.wait().unwrap().success());
    house.shut_down();
}

#[test]
fn team_that_another_program_makes_is_known_at_once() {
    let house = TestEnv::with_daemon();
    let config = serde_json::json!({
        "name": "hand", "createdAt": 1, "leadAgentId": "team-lead@hand", "leadSessionId": "s",
        "members": [{"agentId": "team-lead@hand", "name": "team-lead", "agentType": "team-lead", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": []}],
    });
    house.write_file("root/teams/hand/config.json", config.to_string());
    let spawn = ["-t", "hand", "spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"];
    house.teamctl(spawn).expect_success();
    assert_eq!(house.json(["-t", "hand", "status"])["teams"][0]["members"][0]["name"], "ann");
    house.teamctl(["-t", "hand", "kill", "ann"]).expect_success();
    house.teamctl(["delete", "hand"]).expect_success();
    assert!(!house.path("root/teams/hand").exists());
    house.shut_down();
}
