//! `teamctl create` and `teamctl delete`.

use harness::TestEnv;

#[test]
fn delete_is_rejected_with_members_and_complete_without() {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(error.contains("2 active member(s): ann, bob"), "{error}");
    env.teamctl(["shutdown", "ann"]).expect_success();
    let output = env.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(!env.path("root/teams/survey").exists());
    assert!(!env.path("root/tasks/survey").exists());
    let kept = output
        .lines()
        .find_map(|line| line.strip_prefix("The output logs of its members stay; to remove them: rm -r "));
    assert!(std::path::Path::new(kept.unwrap()).join("ann.log").exists(), "{output}");
    env.teamctl(["create", "survey"]).expect_success();
    env.shut_down();
}

#[test]
fn taken_team_name_fails_unless_unique_is_given() {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["create", "survey"]).expect_failure(73);
    assert_eq!(env.json(["create", "survey", "--unique"])["team_name"], "survey-2");
    env.teamctl(["create", "!!!"]).expect_failure(64);
    env.teamctl(["create", "session-12345678"]).expect_failure(77);
    env.shut_down();
}

/// `create` and `spawn` have one rule for names that are not valid.
#[test]
fn invalid_name_is_refused_with_one_that_fits() {
    let env = TestEnv::with_team();
    let error = env.teamctl(["create", "My Team!"]).expect_failure(64);
    assert!(error.contains("a name that fits: my-team"), "{error}");
    let error = env.teamctl(["spawn", "my agent", "--", "true"]).expect_failure(64);
    assert!(error.contains("a name that fits: my-agent"), "{error}");
    env.shut_down();
}

#[test]
fn team_without_a_name_is_named_after_the_directory() {
    let env = TestEnv::with_daemon();
    std::fs::create_dir_all(env.path("My Project")).unwrap();
    let create = || {
        let mut command = env.command(harness::programs().join("teamctl"));
        let output = command.args(["create", "--json"]).current_dir(env.path("My Project")).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["team_name"].clone()
    };
    assert_eq!((create(), create()), ("my-project".into(), "my-project-2".into()));
    env.shut_down();
}

#[test]
fn foreign_files_survive_delete() {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    std::fs::File::create(env.path("root/teams/survey/notes.txt")).unwrap();
    let output = env.teamctl(["delete", "survey"]);
    assert_ne!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("notes.txt"), "{output:?}");
    assert!(env.path("root/teams/survey/notes.txt").exists());
    env.shut_down();
}

#[test]
fn no_member_can_be_spawned_during_delete() {
    let env = TestEnv::with_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let ready = env.path("out/ready");
    let script = format!("trap '' TERM; : >{}; while :; do sleep 1; done", ready.display());
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sh", "-c", &script]).expect_success();
    env.wait_until("ann ignores TERM", || ready.exists().then_some(()));
    let mut delete = env.start_teamctl(["delete", "survey", "--force"]);
    env.wait_until("ann is stopping", || (env.member("ann")?["lifecycle"] == "stopping").then_some(()));
    env.teamctl(["spawn", "bob", "--backend", "in-process", "--", "sleep", "777"]).expect_failure(76);
    assert!(delete.wait().unwrap().success());
    env.shut_down();
}

#[test]
fn team_that_another_program_makes_is_known_at_once() {
    let env = TestEnv::with_daemon();
    let config = serde_json::json!({
        "name": "hand", "createdAt": 1, "leadAgentId": "team-lead@hand", "leadSessionId": "s",
        "members": [{"agentId": "team-lead@hand", "name": "team-lead", "agentType": "team-lead", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": []}],
    });
    env.write_file("root/teams/hand/config.json", config.to_string());
    let spawn = ["-t", "hand", "spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"];
    env.teamctl(spawn).expect_success();
    assert_eq!(env.json(["-t", "hand", "status"])["teams"][0]["members"][0]["name"], "ann");
    env.teamctl(["-t", "hand", "kill", "ann"]).expect_success();
    env.teamctl(["delete", "hand"]).expect_success();
    assert!(!env.path("root/teams/hand").exists());
    env.shut_down();
}
