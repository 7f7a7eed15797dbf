//! What commands say and do if the root or a team's config is missing, or if a member of the config is
//! not run by teamd.

use harness::TestEnv;
use serde_json::{Value, json};

#[test]
fn reading_commands_do_not_create_the_root() {
    let env = TestEnv::new();
    std::fs::remove_dir(env.root()).ok();
    let status = env.teamctl(["status"]);
    assert!(status.code == 69 && status.stdout.contains("No teams."), "{status:?}");
    for command in [&["why"][..], &["inbox"], &["task", "list"], &["requests"], &["send", "ann", "x"]] {
        let error = env.teamctl_with(command, &[]).expect_failure(67);
        assert!(error.contains("cannot find a team: there is none"), "{command:?}: {error}");
    }
    assert!(!env.root().exists());
    env.shut_down();
}

/// The daemon writes a missing config again after two seconds.
#[test]
fn team_is_shown_while_its_config_is_missing() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    std::fs::remove_file(env.root().join("teams/survey/config.json")).unwrap();
    let (status, send) = (env.teamctl(["status"]), env.teamctl(["send", "ann", "x"]));
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
fn deletion_leads_a_person_to_the_program_that_runs_a_guest() {
    let env = TestEnv::with_team();
    let mut config = env.read_config();
    let guest: Value = json!({"agentId": "guest@survey", "name": "guest", "agentType": "general-purpose", "model": "m",
        "joinedAt": 1, "tmuxPaneId": "%99", "cwd": "/", "subscriptions": [], "backendType": "tmux"});
    config["members"].as_array_mut().unwrap().push(guest);
    env.write_file("root/teams/survey/config.json", config.to_string());
    let refused = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(refused.contains("has members that teamd does not run: guest"), "{refused}");
    assert!(refused.contains("let them run on: teamctl delete survey --force"), "{refused}");
    for command in [&["kill", "guest"][..], &["shutdown", "guest", "--grace", "1s"]] {
        let error = env.teamctl_with(command, &[]).expect_failure(67);
        assert!(error.contains("an unsupervised member is ended by the program that started it"), "{error}");
    }
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}

/// `/dev/full` fails every write with ENOSPC.
#[test]
fn command_that_cannot_print_says_that_its_work_is_done() {
    let env = TestEnv::with_team();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut send = env.command(harness::programs().join("teamctl"));
    let output = send.args(["send", "team-lead", "x"]).stdout(full).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(74) && error.contains("the command has done its work"),
        "{output:?}"
    );
    assert_eq!(env.inbox("survey", "team-lead").len(), 1);
    env.shut_down();
}
