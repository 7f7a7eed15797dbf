//! Checks the notices that teamd passes to the user's notify command: which events cause one, and
//! that each event causes one notice only, also when the daemon is killed.

use harness::TestEnv;

/// An environment with a notify command that appends each notice to `out/told`. `more` is appended
/// to the user's config.toml.
fn env_with_notify_command(more: &str) -> TestEnv {
    let env = TestEnv::new();
    let out = env.path("out/told").display().to_string();
    let script = env.write_script("tell", &format!("#!/bin/sh\nprintf '%s\\n' \"$1\" >>{out}\n"));
    let config = format!("notify_command = ['{}', '{{text}}']\n{more}", script.display());
    env.write_file("home/.config/teamd/config.toml", config);
    env
}

fn notices(env: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(env.path("out/told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn wait_for_notice(env: &TestEnv, text: &str) {
    env.wait_until(text, || notices(env).iter().any(|line| line == text).then_some(()));
}

/// Waits until the daemon has saved that the last notice was sent. A daemon that is killed between
/// sending a notice and saving that sends it again after its recovery. The calls here are handled
/// after the save.
fn wait_until_saved(env: &TestEnv) {
    env.teamctl(["create", "later"]).expect_success();
    env.teamctl(["delete", "later"]).expect_success();
}

#[test]
fn exit_and_completion_are_notified() {
    let env = env_with_notify_command("");
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "sleep 0.2; exit 3"]).expect_success();
    wait_for_notice(&env, "ann@survey has ended: teamctl why ann -t survey");
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    env.teamctl(["task", "create", "count", "--metadata", r#"{"command": "true"}"#]).expect_success();
    wait_for_notice(&env, "the one task of survey is done");
    env.teamctl(["kill", "bob"]).expect_success();
    assert_eq!(notices(&env).len(), 2, "a kill on request causes no notice");
    env.shut_down();
}

#[test]
fn failed_notification_is_an_event_and_a_row_of_doctor() {
    let env = TestEnv::new();
    let script = env.write_script("tell", "#!/bin/sh\nexit 3\n");
    env.write_file("home/.config/teamd/config.toml", format!("notify_command = '{}'\n", script.display()));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).expect_success();
    env.wait_until("the failure is an event", || {
        env.teamctl(["events"]).stdout.contains("a notification failed: cannot notify with").then_some(())
    });
    let doctor = env.teamctl(["doctor"]).stdout;
    assert!(doctor.contains("a notification failed") && doctor.contains("exit status: 3"), "{doctor}");
    env.write_file("home/.config/teamd/config.toml", "notify_command = '/no/such'\n");
    let doctor = env.teamctl(["doctor"]).stdout;
    assert!(doctor.contains("notify_command cannot start: there is no program /no/such"), "{doctor}");
    env.shut_down();
}

#[test]
fn each_event_is_notified_once_after_kills() {
    let env = env_with_notify_command("");
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&env, "ann@survey has ended: teamctl why ann -t survey");
    env.teamctl(["spawn", "bob", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let request = r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"bob","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"true"},"permission_suggestions":[]}"#;
    let status =
        env.command(harness::programs().join("scripted-agent")).args(["ask", "bob", request]).status();
    assert!(status.unwrap().success());
    wait_for_notice(&env, "bob@survey asks for permission: teamctl requests -t survey");
    env.teamctl(["spawn", "cat", "--profile", "worker"]).expect_success();
    env.teamctl(["task", "create", "count", "--metadata", r#"{"command": "true"}"#]).expect_success();
    wait_for_notice(&env, "the one task of survey is done");
    let policy = env.write_file("out/policy.toml", "[policy]\nmax_time = \"1s\"\n");
    env.teamctl(["create", "brief", "--policy", &policy]).expect_success();
    wait_for_notice(&env, "the budget of brief is used up: teamctl status -t brief");
    wait_until_saved(&env);
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    env.teamctl(["-t", "survey", "spawn", "dan", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&env, "dan@survey has ended: teamctl why dan -t survey");
    assert_eq!(notices(&env).len(), 5, "{:?}", notices(&env));
    env.shut_down();
}

/// The daemon sends at most one notice per second. It keeps waiting notices in the roster, and is
/// killed before it sends the second one.
#[test]
fn pending_notices_are_sent_by_the_next_daemon() {
    let env = env_with_notify_command("");
    env.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &env.path("out").display().to_string()]);
    env.write_file("out/armed", "kill teamd effect.show-notice 2\n");
    env.write_file("out/hits", "");
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let gate = env.create_gate("out/gate");
    env.teamctl(["spawn", "bob", "--", "sh", "-c", &format!("read line <{gate}; exit 3")]).expect_success();
    env.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&env, "ann@survey has ended: teamctl why ann -t survey");
    env.open_gate("out/gate");
    env.wait_until("the failpoint has killed teamd", || (env.teamctl(["status"]).code == 69).then_some(()));
    assert_eq!(notices(&env).len(), 1, "{:?}", notices(&env));
    env.start_daemon();
    wait_for_notice(&env, "bob@survey has ended: teamctl why bob -t survey");
    env.teamctl(["spawn", "cat", "--", "sh", "-c", "exit 3"]).expect_success();
    wait_for_notice(&env, "cat@survey has ended: teamctl why cat -t survey");
    assert_eq!(notices(&env).len(), 3, "{:?}", notices(&env));
    env.shut_down();
}

/// The time comes from the user's config.toml, which the daemon started by `teamctl up` reads.
#[test]
fn turn_without_output_is_notified_once() {
    let env = env_with_notify_command("no_output_after = '1s'\n");
    let server = format!("up-{}", env.process_tag().len());
    let output = env.teamctl(["up", "-L", &server]);
    assert_eq!(output.code, 0, "{output:#?}");
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    env.teamctl(["task", "create", "think", "--metadata", r#"{"command": "sleep 3600"}"#]).expect_success();
    env.wait_until_within(std::time::Duration::from_secs(60), "ann causes a notice", || {
        notices(&env).iter().any(|line| line.starts_with("ann@survey has written nothing for ")).then_some(())
    });
    env.wait_until("the event log has the turn without output", || {
        env.events().iter().any(|event| event["event"] == "member_no_output").then_some(())
    });
    let status = env.teamctl(["status", "ann"]).expect_success();
    assert!(status.contains("running?waiting") && status.contains("teamctl capture ann"), "{status}");
    wait_until_saved(&env);
    env.kill_process(env.daemon_pid());
    env.teamctl(["up", "-L", &server]).expect_success();
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    env.teamctl(["task", "create", "think", "--metadata", r#"{"command": "sleep 3600"}"#]).expect_success();
    env.wait_until_within(std::time::Duration::from_secs(60), "bob causes a notice", || {
        notices(&env).iter().any(|line| line.starts_with("bob@survey has written nothing")).then_some(())
    });
    assert_eq!(notices(&env).len(), 2, "the new daemon sends no second notice about ann");
    env.teamctl(["kill", "bob"]).expect_success();
    env.write_file("home/.config/teamd/config.toml", "no_output_after = 'soon'\n");
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl(["down"]).expect_success();
    env.teamctl(["up"]).expect_failure(78);
    env.shut_down();
}
