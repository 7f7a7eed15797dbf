//! `teamctl logs` prints the output of the last spawn, or of all.

use harness::TestEnv;

fn spawn_and_kill(env: &TestEnv, backend: &str, text: &str) {
    let script = format!("echo {text}; exec sleep 3600");
    env.teamctl(["spawn", "ann", "--backend", backend, "--", "sh", "-c", &script]).expect_success();
    env.wait_until("the log is written", || logs(env, &[]).contains(text).then_some(()));
    env.teamctl(["kill", "ann"]).expect_success();
}

fn logs(env: &TestEnv, options: &[&str]) -> String {
    env.teamctl_with(&[&["logs", "ann", "-t", "survey"], options].concat(), &[]).stdout
}

#[test]
fn output_of_earlier_spawns_is_printed_only_on_request() {
    let env = TestEnv::with_team();
    for (backend, text) in [("tmux", "first"), ("in-process", "second")] {
        spawn_and_kill(&env, backend, text);
    }
    // The team of the next spawn is another one with the same name.
    env.teamctl(["delete", "survey"]).expect_success();
    env.teamctl(["create", "survey"]).expect_success();
    spawn_and_kill(&env, "tmux", "third");
    let last = logs(&env, &[]);
    assert!(last.starts_with("third") && !last.contains("second"), "{last:?}");
    let all = logs(&env, &["--all-spawns"]);
    let parts: Vec<&str> = all.split("── ").collect();
    let expected =
        [("", ""), ("earlier output\r\n", "first"), ("spawn of 2", "second"), ("spawn of 2", "third")];
    assert_eq!(parts.len(), expected.len(), "{all:?}");
    for (part, (heading, output)) in parts.iter().zip(expected) {
        assert!(part.starts_with(heading) && part.contains(output), "{part:?}");
    }
    let json = logs(&env, &["--all-spawns", "--json"]);
    let spawns = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let has_time: Vec<bool> = spawns.map(|spawn| spawn["spawned_at"].is_string()).collect();
    assert_eq!(has_time, [false, true, true]);
    env.shut_down();
}
