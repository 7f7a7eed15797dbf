//! What commands say and do if the root or a team's config is missing, or if a member of the config is
//! not run by teamd.

use harness::TestEnv;
use serde_json::{Value, json};

#[test]
fn commands_without_a_team_do_not_create_the_root() {
    let env = TestEnv::new();
    std::fs::remove_dir(env.root()).ok();
    let status = env.teamctl(["status"]);
    assert!(status.code == 69 && status.stdout.contains("No teams."), "{status:?}");
    for command in [&["why"][..], &["inbox"], &["task", "list"], &["requests"], &["send", "ann", "x"]] {
        let error = env.teamctl_with(command, &[]).expect_failure(67);
        assert!(error.contains("cannot find a team: there is none"), "{command:?}: {error}");
    }
    env.teamctl(["events"]).expect_success();
    env.teamctl(["logs", "ann"]).expect_failure(67);
    assert!(!env.root().exists() && !env.path("state/teamd").exists());
    env.shut_down();
}

/// The daemon writes a missing config again after two seconds.
#[test]
fn team_is_shown_while_its_config_is_missing() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let config = env.root().join("teams/survey/config.json");
    let (status, send) = env.wait_until("both commands run while the config is missing", || {
        std::fs::remove_file(&config).ok();
        let outputs = (env.teamctl(["status"]), env.teamctl(["send", "ann", "x"]));
        (!config.exists()).then_some(outputs)
    });
    assert!(status.code == 0 && status.stdout.contains("survey: "), "{status:?}");
    assert!(status.stdout.contains("\nann "), "{status:?}");
    assert!(send.code == 67 && send.stderr.contains("teams/survey has no config.json"), "{send:?}");
    env.wait_until("the config is written again", || {
        (env.teamctl(["send", "ann", "x"]).code == 0).then_some(())
    });
    env.shut_down();
}

/// Another program has added `guest` to the team and runs it.
#[test]
fn unsupervised_member_prevents_deletion_without_force() {
    let env = TestEnv::with_team();
    let mut config = env.read_config();
    let guest: Value = json!({"agentId": "guest@survey", "name": "guest", "agentType": "general-purpose", "model": "m",
        "joinedAt": 1, "tmuxPaneId": "%99", "cwd": "/", "subscriptions": [], "backendType": "tmux"});
    config["members"].as_array_mut().unwrap().push(guest);
    env.write_file("root/teams/survey/config.json", config.to_string());
    let refused = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(refused.contains("has members that teamd does not run: guest"), "{refused}");
    assert!(refused.contains("to delete the team at once: teamctl delete survey --force"), "{refused}");
    for command in [&["kill", "guest"][..], &["shutdown", "guest", "--grace", "1s"]] {
        let error = env.teamctl_with(command, &[]).expect_failure(67);
        assert!(error.contains("an unsupervised member is ended by the program that started it"), "{error}");
    }
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}
