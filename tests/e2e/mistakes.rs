//! Frequent mistakes: each error or warning says what was meant.

use harness::TestEnv;

#[test]
fn errors_name_the_command_that_was_meant() {
    let env = TestEnv::with_team();
    let error = env.teamctl(["status", "survey"]).expect_failure(67);
    assert!(error.contains("it is a team") && error.contains("teamctl status -t survey"), "{error}");
    for command in ["kill", "shutdown"] {
        let error = env.teamctl([command, "team-lead"]).expect_failure(67);
        assert!(error.contains("teamd did not start the lead"), "{error}");
    }
    env.teamctl(["spawn", "wes", "--profile", "worker"]).expect_success();
    let error = env.teamctl(["task", "create", "run the tests", "--owner", "wes"]).expect_failure(64);
    assert!(error.contains("teamctl task create 'run the tests' --owner wes --command"), "{error}");
    assert_eq!(env.tasks("survey").iter().filter(|task| task["subject"] == "run the tests").count(), 0);
    env.teamctl(["task", "create", "run the tests", "--owner", "wes", "--command", "true"]).expect_success();
    let output = env.teamctl(["spawn", "zed", "echo", "hi"]);
    assert_eq!(output.code, 64, "{output:?}");
    assert!(output.stderr.contains("teamctl spawn zed -- echo hi"), "{output:?}");
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.shut_down();
}

#[test]
fn options_without_effect_are_not_dropped_silently() {
    let env = TestEnv::with_team();
    let warning = |output: harness::CommandOutput| {
        assert_eq!(output.code, 0, "{output:?}");
        output.stderr
    };
    let up = warning(env.teamctl(["up", "-L", "foo"]));
    assert!(up.contains("-L foo has no effect") && up.contains("teamctl down"), "{up}");
    let worker = warning(env.teamctl(["spawn", "wes", "--profile", "worker", "--model", "gpt"]));
    assert!(worker.contains("is not told the model gpt"), "{worker}");
    let command = warning(env.teamctl(["spawn", "cat", "--model", "gpt", "--", "cat"]));
    assert!(command.contains("is not told the model gpt"), "{command}");
    let told = warning(env.teamctl(["spawn", "dan", "--model", "gpt", "--", "sh", "-c", "exec cat", "gpt"]));
    assert!(!told.contains("gpt"), "{told}");
    env.shut_down();
}

#[test]
fn what_is_not_found_is_not_found_in_a_root() {
    let env = TestEnv::with_team();
    let root = env.root().canonicalize().unwrap().display().to_string();
    for args in [
        &["send", "eve", "hi"][..],
        &["status", "eve"],
        &["status", "-t", "eve"],
        &["logs", "eve"],
        &["kill", "eve"],
        &["task", "get", "9"],
        &["approve", "perm-1"],
        &["trace", "last"],
        &["report", "-t", "eve"],
    ] {
        let error = env.teamctl_with(args, &[]).expect_failure(67);
        assert!(error.contains(&root), "{args:?}: {error}");
    }
    let other = env.path("elsewhere").display().to_string();
    let error = env.teamctl_with(&["send", "ann", "hi", "--root", &other], &[]).expect_failure(67);
    assert!(error.contains("elsewhere"), "{error}");
    env.shut_down();
}
