//! Teams that a machine starts: in a container that is started again, in a clone of another user, and
//! with commands of another user. docs/machines.md has further examples, which the tests of the documents
//! type.

use harness::{Facility, TestEnv, skips_without};
use std::process::Output;

/// A user that has no processes and no files.
const OTHER_USER: &str = "12345";

/// Runs a script as process 1 of a PID namespace, as a container does. With the script, all other
/// processes of the namespace end.
fn run_in_container(env: &TestEnv, script: &str) -> Output {
    let mut container = env.command("unshare");
    container.args(["-Urpf", "--mount-proc", "--kill-child", "sh", "-c", script]).output().unwrap()
}

/// Gives files to a user. Returns false if this process may not.
fn change_owner(env: &TestEnv, path: &str, user: &str) -> bool {
    let may = rustix::process::geteuid().is_root();
    if may {
        let status = env.command("chown").args(["-R", user]).arg(env.path(path)).status();
        assert!(status.unwrap().success());
    } else {
        harness::record_skip("files of another user", "only root can give files away");
    }
    may
}

#[test]
fn members_of_a_container_are_resumed_by_the_next_one() {
    // The second container starts in the second in which the first ends, with the same pids.
    if skips_without(Facility::ExactStartTimes) {
        return;
    }
    let env = TestEnv::new();
    let first = run_in_container(
        &env,
        "teamctl up && teamctl create survey && teamctl spawn ann -- sleep 3600 && teamctl status",
    );
    assert!(first.status.success(), "{first:?}");
    let next = run_in_container(&env, "teamctl up --resume && teamctl --json status; teamctl down --suspend");
    let output = String::from_utf8_lossy(&next.stdout);
    let status = output.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let member = &status.unwrap_or_else(|| panic!("{next:?}"))["teams"][0]["members"][0];
    assert_eq!((member["name"].as_str(), member["lifecycle"].as_str()), (Some("ann"), Some("running")));
    env.shut_down();
}

#[test]
fn clone_of_another_user_is_trusted_by_settings_in_the_environment() {
    let env = TestEnv::with_team();
    let script = "git init -q home/repo && git -C home/repo -c user.name=t -c user.email=t@example.org \
        commit -q --allow-empty -m first";
    assert!(env.command("sh").args(["-c", script]).status().unwrap().success());
    if !change_owner(&env, "home/repo", OTHER_USER) {
        return env.shut_down();
    }
    let agent = format!("git log -1 --format=%s >{}; exec sleep 3600", env.path("out/log").display());
    let repository = env.path("home/repo").display().to_string();
    let spawn = ["spawn", "ann", "--worktree", "--cwd", &repository, "--", "sh", "-c", &agent];
    let error = env.teamctl_with(&spawn, &[]).expect_failure(74);
    assert!(error.contains("dubious ownership"), "{error}");
    let settings =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")];
    env.teamctl_with(&spawn, &settings).expect_success();
    env.wait_until("the agent's git trusts the clone too", || {
        (env.read("out/log") == "first\n").then_some(())
    });
    env.teamctl(["kill", "ann"]).expect_success();
    env.teamctl_with(&["delete", "survey"], &settings).expect_success();
    env.shut_down();
}

#[test]
fn command_of_another_user_is_told_whose_files_these_are() {
    let env = TestEnv::new();
    if change_owner(&env, "root", OTHER_USER) {
        let error = env.teamctl(["up"]).stderr;
        assert!(error.contains(&format!("run this as user {OTHER_USER}")), "{error}");
        change_owner(&env, "root", "0");
    }
    env.shut_down();
}
