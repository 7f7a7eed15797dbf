//! The merges of the branches, with the tests of their commits, and the deletion of the team.

use super::programs::TEST_COMMAND;
use super::team::{WORKTREE_MEMBERS, git};
use harness::{TestEnv, run_command};
use serde_json::Value;

const MERGED: &str = "teamd/night/merged";

/// Merges the branches of the first night. The branch of eve conflicts with a commit of its user, and the test
/// of cat fails: both are named with the reason, and all others are merged. The user mends both branches.
pub(super) fn merge_first_night(env: &TestEnv) {
    env.write_file("repo/shared.txt", "a change of the user\n");
    git(env, &["add", "shared.txt"]);
    git(env, &["commit", "--quiet", "--message", "shared"]);
    let members = merge(env, 1);
    let result = |name: &str| members.iter().find(|member| member["name"] == name).unwrap();
    for name in WORKTREE_MEMBERS {
        let expected = match name {
            "cat" => "test_failed",
            "eve" => "conflict",
            _ => "merged",
        };
        assert_eq!(result(name)["result"], expected, "{members:#?}");
    }
    assert_eq!(result("cat")["last_lines"], serde_json::json!(["c2 is wrong"]), "{members:#?}");
    assert_eq!(result("eve")["files"], serde_json::json!(["shared.txt"]), "{members:#?}");
    mend_branches(env, result("eve")["task"]["command"].as_str().unwrap());
}

/// Merges all branches, takes the result, and deletes the team with its branches.
pub(super) fn merge_and_delete(env: &TestEnv) {
    let members = merge(env, 0);
    assert_eq!(members.len(), WORKTREE_MEMBERS.len(), "{members:#?}");
    git(env, &["merge", "--quiet", MERGED]);
    run_shell(env, &format!("cd repo && {TEST_COMMAND}"));
    let report = env.json(["report"]);
    let branches = report["branches"].as_array().unwrap();
    assert!(branches.iter().all(|branch| branch["unmerged"] == 0), "{report}");
    env.teamctl(["delete", "night"]).expect_success();
    assert_eq!(git(env, &["branch", "--list", "--format=%(refname:short)"]), format!("main\n{MERGED}"));
    assert_eq!(git(env, &["worktree", "list"]).lines().count(), 1);
}

/// Runs `merge --all` with the tests of the commits, and returns what it says of each member.
fn merge(env: &TestEnv, code: i32) -> Vec<Value> {
    let output = env.teamctl(["--json", "merge", "--all", "--test", TEST_COMMAND]);
    assert_eq!(output.code, code, "{output:#?}");
    output.json()["members"].as_array().unwrap().clone()
}

/// Resolves the conflict of eve, beginning with the command that `merge` prints, and mends the test of cat.
fn mend_branches(env: &TestEnv, merge_command: &str) {
    run_shell(env, &format!("{merge_command}; echo both >shared.txt; git commit --quiet --all --no-edit"));
    let cat = "repo.worktrees/night-cat";
    run_shell(env, &format!("cd {cat} && echo true >c2.test && git commit --quiet --all --message mended"));
}

fn run_shell(env: &TestEnv, script: &str) {
    let mut command = env.command("sh");
    command.args(["-c", script]);
    run_command(command).expect_success();
}
