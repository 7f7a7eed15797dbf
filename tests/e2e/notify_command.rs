//! What a person's own command is told, without anybody asking.

use harness::TestEnv;

/// A house whose person has a command, which writes down what it is told; `more` is for its config.toml.
fn env_with_notify_command(more: &str) -> TestEnv {
    let house = TestEnv::new();
    let out = house.path("out/told").display().to_string();
    let tell = house.write_script("tell", &format!("#!/bin/sh\nprintf '%s\\n' \"$1\" >>{out}\n"));
    let config = format!("notify_command = ['{}', '{{text}}']\n{more}", tell.display());
    house.write_file("home/.config/teamd/config.toml", config);
    house
}

fn notices(house: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(house.path("out/told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn wait_for_notice(house: &TestEnv, words: &str) {
    house.wait_until(words, || notices(house).iter().any(|line| line == words).then_some(()));
}

/// A word is noted as told while it is rung, and of a daemon that is killed just then the next tells it again: rather
/// twice than never. What is asked for now is done behind that note.
fn wait_until_saved(house: &TestEnv) {
    house.teamctl(["create", "later"]).expect_success();
    house.teamctl(["delete", "later"]).expect_success();
}

#[test]
fn exit_and_completion_are_notified() {
    let house = env_with_notify_command("");
    house.start_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "sleep 0.2; exit 3"]).expect_success();
    wait_for_notice(&house, "ann@survey has ended: teamctl why ann -t survey");
    house.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    house.teamctl(["task", "create", "count", "--metadata", r#"{"command": "true"}"#]).expect_success();
    wait_for_notice(&house, "the one task of survey is done: teamctl task list -t survey");
    house.teamctl(["kill", "bob"]).expect_success();
    assert_eq!(notices(&house).len(), 2, "a death that was asked for is no news");
    house.shut_down();
}

#[test]
fn each_event_is_notified_once_after_kills() {
    let house = env_with_notify_command("");
    house.start_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&house, "ann@survey has ended: teamctl why ann -t survey");
    house.teamctl(["spawn", "bob", "--", &house.scripted_agent_path(), "stay"]).expect_success();
    let asks = r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"bob","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"true"},"permission_suggestions":[]}"#;
    let asked = house.command(harness::programs().join("scripted-agent")).args(["ask", "bob", asks]).status();
    assert!(asked.unwrap().success());
    wait_for_notice(&house, "bob@survey asks for permission: teamctl requests -t survey");
    house.teamctl(["spawn", "cat", "--profile", "worker"]).expect_success();
    house.teamctl(["task", "create", "count", "--metadata", r#"{"command": "true"}"#]).expect_success();
    wait_for_notice(&house, "the one task of survey is done: teamctl task list -t survey");
    let policy = house.write_file("out/policy.toml", "[policy]\nmax_time = \"1s\"\n");
    house.teamctl(["create", "brief", "--policy", &policy]).expect_success();
    wait_for_notice(&house, "the budget of brief is used up: teamctl status -t brief");
    wait_until_saved(&house);
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    house.teamctl(["-t", "survey", "spawn", "dan", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&house, "dan@survey has ended: teamctl why dan -t survey");
    assert_eq!(notices(&house).len(), 5, "{:?}", notices(&house));
    house.shut_down();
}

/// Its word waits for a second after the last one, and the roster has it meanwhile.
#[test]
fn pending_notices_are_sent_by_the_next_daemon() {
    let house = env_with_notify_command("");
    house.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &house.path("out").display().to_string()]);
    house.write_file("out/armed", "kill teamd effect.show-notice 2\n");
    house.write_file("out/hits", "");
    house.start_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    let gate = house.create_gate("out/gate");
    house.teamctl(["spawn", "bob", "--", "sh", "-c", &format!("read line <{gate}; exit 3")]).expect_success();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&house, "ann@survey has ended: teamctl why ann -t survey");
    house.open_gate("out/gate");
    house.wait_until("teamd is killed", || (house.teamctl(["status"]).code == 69).then_some(()));
    assert_eq!(notices(&house).len(), 1, "{:?}", notices(&house));
    house.start_daemon();
    wait_for_notice(&house, "bob@survey has ended: teamctl why bob -t survey");
    house.teamctl(["spawn", "cat", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&house, "cat@survey has ended: teamctl why cat -t survey");
    assert_eq!(notices(&house).len(), 3, "{:?}", notices(&house));
    house.shut_down();
}

/// By the daemon that `up` starts, with what the person's configuration says.
#[test]
fn turns_cause_no_notice() {
    let house = env_with_notify_command("no_output_after = '1s'\n");
    let server = format!("up-{}", house.process_tag().len());
    let ran = house.teamctl(["up", "-L", &server]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    house.teamctl(["create", "survey"]).expect_success();
    house.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    house.teamctl(["task", "create", "think", "--metadata", r#"{"command": "sleep 3600"}"#]).expect_success();
    house.wait_until_within(std::time::Duration::from_secs(60), "it is told", || {
        notices(&house)
            .iter()
            .any(|line| line.starts_with("ann@survey has written nothing for "))
            .then_some(())
    });
    assert!(house.events().iter().any(|event| event["event"] == "member_no_output"));
    wait_until_saved(&house);
    house.kill_process(house.daemon_pid());
    house.teamctl(["up", "-L", &server]).expect_success();
    house.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    house.teamctl(["task", "create", "think", "--metadata", r#"{"command": "sleep 3600"}"#]).expect_success();
    house.wait_until_within(std::time::Duration::from_secs(60), "the next one is told", || {
        notices(&house).iter().any(|line| line.starts_with("bob@survey has written nothing")).then_some(())
    });
    assert_eq!(notices(&house).len(), 2, "of ann the daemon before has told");
    house.teamctl(["kill", "bob"]).expect_success();
    house.write_file("home/.config/teamd/config.toml", "no_output_after = 'soon'\n");
    house.teamctl(["kill", "ann"]).expect_success();
    house.teamctl(["down"]).expect_success();
    house.teamctl(["up"]).expect_failure(78);
    house.shut_down();
}
