//! Checks `teamctl merge`, which merges the branches of members into a branch of its own.

use super::{env_with_repository, git, path_text, run_git, spawn, wait_until_exited, write_file};
use harness::TestEnv;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MERGED: &str = "teamd/survey/merged";

/// Spawns a member in a worktree of its own, whose program only waits. Unlike a worker, it can do
/// tasks without a command. Returns the path of the worktree.
fn spawn_agent(env: &TestEnv, name: &str) -> PathBuf {
    let (repository, agent) = (env.path("repo"), env.scripted_agent_path());
    let cwd = path_text(&repository);
    env.teamctl(["spawn", name, "--cwd", cwd, "--worktree", "--", &agent, "stay"]).expect_success();
    env.path(&format!("repo.worktrees/survey-{name}"))
}

/// Writes and commits a file in a worktree.
fn commit(env: &TestEnv, worktree: &Path, file: &str, text: &str) {
    write_file(&worktree.join(file), text);
    git(env, worktree, &["add", "--all"]);
    git(env, worktree, &["commit", "--quiet", "--message", &format!("change {file}")]);
}

/// Two workers with a commit each, in different files.
fn env_with_two_branches() -> TestEnv {
    let env = env_with_repository();
    commit(&env, &spawn(&env, "ann", &env.path("repo")), "a", "ann\n");
    commit(&env, &spawn(&env, "bob", &env.path("repo")), "sub/b", "bob\n");
    env
}

/// The content of a file on the merged branch.
fn merged_file(env: &TestEnv, file: &str) -> String {
    git(env, &env.path("repo"), &["show", &format!("{MERGED}:{file}")])
}

fn merged_commit(env: &TestEnv) -> String {
    git(env, &env.path("repo"), &["rev-parse", MERGED])
}

/// Checks that no worktree of a merge is left.
fn assert_no_merge_worktree(env: &TestEnv) {
    assert!(!env.path("repo.worktrees/survey-merge").exists());
    let worktrees = git(env, &env.path("repo"), &["worktree", "list"]);
    assert!(!worktrees.contains("survey-merge"), "{worktrees}");
}

/// Runs `teamctl --json merge`, which exits with `code`.
fn merge_json(env: &TestEnv, args: &[&str], code: i32) -> Value {
    let output = env.teamctl_with(&[&["--json", "merge"], args].concat(), &[]);
    assert_eq!(output.code, code, "{output:#?}");
    output.json()
}

#[test]
fn branches_are_merged_in_order_and_the_users_files_stay() {
    let env = env_with_two_branches();
    let repository = env.path("repo");
    write_file(&repository.join("a"), "staged\n");
    git(&env, &repository, &["add", "a"]);
    write_file(&repository.join("a"), "unstaged\n");
    write_file(&repository.join("untracked"), "x\n");
    let state = || {
        let status = git(&env, &repository, &["--no-optional-locks", "status", "--porcelain=v2", "--branch"]);
        let bytes = |name: &str| std::fs::read(repository.join(name)).unwrap();
        (status, bytes(".git/index"), bytes(".git/HEAD"), bytes("a"), bytes("untracked"))
    };
    let state_before = state();
    let output = env.teamctl(["merge", "bob", "ann"]).expect_success();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(
        lines,
        [
            "bob: merged 1 commit of teamd/survey/bob",
            "ann: merged 1 commit of teamd/survey/ann",
            "teamd/survey/merged: look at it: git log --oneline HEAD..teamd/survey/merged; take it: git merge teamd/survey/merged",
        ]
    );
    assert_eq!((merged_file(&env, "a"), merged_file(&env, "sub/b")), ("ann".to_owned(), "bob".to_owned()));
    let log = git(&env, &repository, &["log", "--first-parent", "--format=%s, %an", MERGED]);
    let merge = |name: &str| format!("Merge branch 'teamd/survey/{name}' into {MERGED}, t");
    assert_eq!(log.lines().collect::<Vec<_>>(), [&merge("ann"), &merge("bob"), "first, t"]);
    let again = merge_json(&env, &["--all"], 0);
    let results: Vec<&Value> =
        again["members"].as_array().unwrap().iter().map(|member| &member["result"]).collect();
    assert_eq!(results, [&json!("nothing_to_merge"), &json!("nothing_to_merge")]);
    assert_eq!((&again["ok"], &again["branch"]), (&json!(true), &json!(MERGED)));
    assert_eq!(again["commit"], merged_commit(&env).as_str());
    assert_eq!(again["commands"]["take"], format!("git merge {MERGED}"));
    assert_eq!(state(), state_before);
    assert_no_merge_worktree(&env);
    env.shut_down();
}

#[test]
fn conflict_is_a_task_of_the_member_until_it_is_resolved() {
    let env = env_with_repository();
    let (ann, bob) = (spawn_agent(&env, "ann"), spawn_agent(&env, "bob"));
    commit(&env, &ann, "a", "ann\n");
    commit(&env, &bob, "a", "bob\n");
    let first = merge_json(&env, &["ann", "bob"], 1);
    assert_eq!(first["members"][0]["result"], "merged");
    let member = &first["members"][1];
    assert_eq!((&first["ok"], &member["result"]), (&json!(false), &json!("conflict")));
    assert_eq!((&member["files"], &member["task"]["state"]), (&json!(["a"]), &json!("created")));
    let id = member["task"]["id"].as_str().unwrap();
    let task = env.json(["task", "get", id])["task"].clone();
    assert_eq!(task["owner"], "bob");
    assert_eq!(task["subject"], "resolve conflicts of teamd/survey/bob with teamd/survey/merged");
    let description = task["description"].as_str().unwrap();
    assert!(description.contains("  a\n") && description.contains("git merge teamd/survey/merged"));
    let output = env.teamctl(["merge", "bob"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let line = format!("bob: conflict in a; task {id} is still open\n");
    assert!(output.stdout.starts_with(&line), "{output:#?}");
    // The member does what the task says.
    run_git(&env, &bob, &["merge", "--quiet", MERGED]);
    write_file(&bob.join("a"), "both\n");
    git(&env, &bob, &["add", "a"]);
    git(&env, &bob, &["commit", "--quiet", "--no-edit"]);
    env.teamctl(["task", "done", id]).expect_success();
    env.teamctl(["merge", "--all"]).expect_success();
    assert_eq!(merged_file(&env, "a"), "both");
    // The next conflict is another task.
    commit(&env, &ann, "a", "ann again\n");
    let second = merge_json(&env, &["ann"], 1);
    assert_eq!(second["members"][0]["task"]["state"], "created");
    assert_no_merge_worktree(&env);
    env.shut_down();
}

#[test]
fn member_that_cannot_do_a_task_gets_none() {
    let env = env_with_two_branches();
    let cy = spawn(&env, "cy", &env.path("repo"));
    commit(&env, &cy, "a", "cy\n");
    env.teamctl(["merge", "ann"]).expect_success();
    let reason = |text: &str| {
        let output = env.teamctl(["merge", "cy"]);
        let by_hand = format!("{text}; by hand: cd {} && git merge {MERGED}\n", path_text(&cy));
        assert!(output.code == 1 && output.stdout.contains(&by_hand), "{output:#?}");
    };
    reason("conflict in a; no task: cy is a worker, which runs only commands");
    wait_until_exited(&env, "cy");
    reason("conflict in a; no task: cy is not in the team now");
    env.shut_down();
}

#[test]
fn rebase_leaves_the_members_branch_alone() {
    let env = env_with_two_branches();
    let repository = env.path("repo");
    let branch = || git(&env, &repository, &["rev-parse", "teamd/survey/bob"]);
    let before = branch();
    env.teamctl(["merge", "--all", "--rebase", "--into", "next", "--onto", "main"]).expect_success();
    let log = git(&env, &repository, &["log", "--format=%s %p", "main..next"]);
    assert_eq!(log.lines().filter(|line| line.matches(' ').count() == 2).count(), 2, "no merges: {log}");
    assert_eq!(branch(), before);
    let again = merge_json(&env, &["--all", "--rebase", "--into", "next"], 0);
    assert_eq!(again["members"][1]["result"], "nothing_to_merge");
    env.shut_down();
}

#[test]
fn merge_whose_test_fails_is_taken_back() {
    let env = env_with_two_branches();
    let test = "echo testing; touch made-by-test; grep -q one a";
    let result = merge_json(&env, &["ann", "bob", "--test", test], 1);
    let failed = &result["members"][0];
    assert_eq!(
        (&failed["result"], &result["members"][1]["result"]),
        (&json!("test_failed"), &json!("merged"))
    );
    assert_eq!(failed["last_lines"], json!(["testing"]));
    assert_eq!(failed["reason"], "the test failed (exit 1)");
    assert_eq!(std::fs::read_to_string(failed["log"].as_str().unwrap()).unwrap(), "testing\n");
    assert_eq!((merged_file(&env, "a"), merged_file(&env, "sub/b")), ("one".to_owned(), "bob".to_owned()));
    let commit_before = merged_commit(&env);
    // The processes of a test end with it, or after its time.
    let pid_file = env.path("out/pid");
    let test = format!("setsid sleep 1000 & echo $! >{}; sleep 1000", path_text(&pid_file));
    let output = env.teamctl(["merge", "ann", "--test", &test, "--test-timeout", "8s"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let line = "ann: not merged: the test did not end within 8s; its output: ";
    assert!(output.stdout.starts_with(line), "{output:#?}");
    assert_eq!(harness::start_time(env.read("out/pid").trim().parse().unwrap()), None);
    assert_eq!(merged_commit(&env), commit_before);
    assert_no_merge_worktree(&env);
    env.shut_down();
}

#[test]
fn unsaved_changes_are_named_and_left_out() {
    let env = env_with_two_branches();
    let ann = env.path("repo.worktrees/survey-ann");
    write_file(&ann.join("half"), "done\n");
    let output = env.teamctl(["merge", "ann"]).expect_success();
    let line = format!(
        "ann: merged 1 commit of teamd/survey/ann; left out: unsaved changes in {}\n",
        path_text(&ann)
    );
    assert!(output.starts_with(&line), "{output}");
    assert!(ann.join("half").exists());
    git(&env, &ann, &["switch", "--quiet", "--create", "topic"]);
    let member = merge_json(&env, &["ann"], 0)["members"][0].clone();
    assert_eq!(member["unsaved_changes"], true);
    assert_eq!(member["other_checkout"], json!({"branch": "topic"}));
    // A detached HEAD matters only with commits of its own.
    git(&env, &ann, &["checkout", "--quiet", "--detach", "teamd/survey/ann"]);
    let other_checkout = || merge_json(&env, &["ann"], 0)["members"][0]["other_checkout"].clone();
    assert_eq!(other_checkout(), Value::Null);
    commit(&env, &ann, "half", "more\n");
    assert_eq!(other_checkout(), json!("detached_head"));
    env.shut_down();
}

#[test]
fn branch_that_is_in_use_is_refused() {
    let env = env_with_two_branches();
    let repository = env.path("repo");
    let refused = |args: &[&str], code: i32, help: &str| {
        let output = env.teamctl_with(&[&["merge", "ann"], args].concat(), &[]);
        assert!(output.code == code && output.stderr.contains(help), "{output:#?}");
    };
    refused(&["--into", "main"], 76, "take the result by hand: git merge teamd/survey/merged");
    refused(&["--into", "teamd/survey/bob"], 76, "it is the branch of bob");
    refused(&["--into", "a..b"], 64, "not a valid name");
    refused(&["--into", "main/x"], 76, "git branch -m main NAME");
    refused(&["--onto", "nothing"], 67, "git branch --all");
    let no_identity = [("GIT_COMMITTER_NAME", ""), ("GIT_COMMITTER_EMAIL", "")];
    let error = env.teamctl_with(&["merge", "ann"], &no_identity).expect_failure(78);
    assert!(error.contains("git config --global user.email"), "{error}");
    env.teamctl(["merge", "ann"]).expect_success();
    refused(&["--onto", "teamd/survey/bob"], 73, "leave out --onto");
    git(&env, &repository, &["switch", "--quiet", MERGED]);
    refused(&[], 76, "switch to another branch there");
    assert_no_merge_worktree(&env);
    env.shut_down();
}

#[test]
fn members_without_a_branch_are_refused() {
    let env = env_with_repository();
    let no_worktree = |args: &[&str]| env.teamctl_with(args, &[]).expect_failure(67);
    assert!(no_worktree(&["merge", "--all"]).contains("teamctl spawn NAME --worktree"));
    spawn(&env, "ann", &env.path("repo"));
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    assert!(no_worktree(&["merge", "ann", "bob"]).contains("it has no worktree"));
    assert!(no_worktree(&["merge", "anna"]).contains("did you mean ann?"));
    let other = super::create_repository(&env, "other");
    spawn(&env, "cy", &other);
    let error = env.teamctl(["merge", "--all"]).expect_failure(64);
    assert!(error.contains("different repositories"), "{error}");
    for args in [&["merge"][..], &["merge", "ann", "--all"], &["merge", "ann", "--test-timeout", "soon"]] {
        assert_eq!(env.teamctl_with(args, &[]).code, 64, "{args:?}");
    }
    // Nothing is merged, so no branch is made.
    let output = env.teamctl(["merge", "ann"]).expect_success();
    assert!(output.ends_with("Nothing is merged, so there is no branch teamd/survey/merged.\n"), "{output}");
    assert_eq!(git(&env, &env.path("repo"), &["branch", "--list", MERGED]), "");
    // The member's branch is gone.
    wait_until_exited(&env, "ann");
    let tree = env.path("repo.worktrees/survey-ann");
    git(&env, &tree, &["checkout", "--quiet", "--detach"]);
    git(&env, &tree, &["branch", "--quiet", "-D", "teamd/survey/ann"]);
    assert_eq!(merge_json(&env, &["ann"], 1)["members"][0]["result"], "no_branch");
    env.shut_down();
}

#[test]
fn killed_merge_is_continued() {
    let env = env_with_two_branches();
    let test = "test -e sub/b && grep -q one a || { setsid sleep 1000 & kill -9 $PPID; exec sleep 1000; }";
    let output = env.teamctl(["merge", "bob", "ann", "--test", test]);
    assert_eq!(output.code, 128 + 9, "{output:#?}");
    assert!(env.path("repo.worktrees/survey-merge").exists());
    assert_eq!(merged_file(&env, "sub/b"), "bob");
    let report = env.teamctl_with(&["doctor"], &[]).stdout;
    assert!(report.contains("repo.worktrees/survey-merge is of a merge of survey"), "{report}");
    let report = env.teamctl_with(&["doctor", "--fix"], &[]).stdout;
    assert!(report.contains("was of a killed merge of survey: it is removed"), "{report}");
    assert_no_merge_worktree(&env);
    let result = merge_json(&env, &["bob", "ann"], 0);
    assert_eq!(result["members"][0]["result"], "nothing_to_merge");
    assert_eq!(result["members"][1]["result"], "merged");
    assert_no_merge_worktree(&env);
    env.shut_down();
}

#[test]
fn killed_merge_leaves_nothing_after_the_deletion() {
    let env = env_with_two_branches();
    let output = env.teamctl(["merge", "bob", "--test", "kill -9 $PPID; exec sleep 1000"]);
    assert_eq!(output.code, 128 + 9, "{output:#?}");
    env.teamctl(["merge", "bob", "ann"]).expect_success();
    run_git(&env, &env.path("repo"), &["merge", "--quiet", MERGED]);
    let output =
        env.teamctl(["merge", "bob", "ann", "--onto", "main~1", "--into", "x", "--test", "kill -9 $PPID"]);
    assert_eq!(output.code, 128 + 9, "{output:#?}");
    for name in ["ann", "bob"] {
        wait_until_exited(&env, name);
    }
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(!env.path("repo.worktrees").exists());
    env.shut_down();
}

#[test]
fn signal_removes_the_worktree() {
    let env = env_with_two_branches();
    let started = env.path("out/started");
    let test = format!("grep -q ann a || exit 0; touch {}; exec sleep 1000", path_text(&started));
    let mut merge = env.start_teamctl(["merge", "bob", "ann", "--test", &test]);
    env.wait_until("the test has started", || started.exists().then_some(()));
    assert!(env.command("kill").args(["-INT", &merge.id().to_string()]).status().unwrap().success());
    env.with_timeout(Duration::from_secs(30), || assert_eq!(merge.wait().unwrap().code(), Some(130)));
    assert_no_merge_worktree(&env);
    assert_eq!(merged_file(&env, "sub/b"), "bob");
    env.teamctl(["merge", "--all"]).expect_success();
    env.shut_down();
}

#[test]
fn branch_that_git_cannot_merge_does_not_stop_the_others() {
    let env = env_with_two_branches();
    let repository = env.path("repo");
    let orphan = git(&env, &repository, &["commit-tree", "-m", "orphan", "main^{tree}"]);
    git(&env, &env.path("repo.worktrees/survey-ann"), &["reset", "--quiet", "--hard", &orphan]);
    let result = merge_json(&env, &["ann", "bob"], 1);
    let members = &result["members"];
    assert_eq!((&members[0]["result"], &members[1]["result"]), (&json!("impossible"), &json!("merged")));
    assert!(members[0]["reason"].as_str().unwrap().contains("unrelated histories"), "{members}");
    let output = env.teamctl(["merge", "ann"]);
    let line = "ann: not merged: git cannot merge teamd/survey/ann: ";
    assert!(output.code == 1 && output.stdout.starts_with(line), "{output:#?}");
    env.shut_down();
}

/// The start has all commits of the member, and the branch has none of them.
#[test]
fn branch_behind_the_start_is_moved() {
    let env = env_with_two_branches();
    let repository = env.path("repo");
    git(&env, &repository, &["branch", "next", "main"]);
    run_git(&env, &repository, &["merge", "--quiet", "teamd/survey/ann"]);
    let result = merge_json(&env, &["ann", "--into", "next"], 0);
    assert_eq!(result["members"][0]["result"], "nothing_to_merge");
    let commit_of = |name: &str| git(&env, &repository, &["rev-parse", name]);
    assert_eq!(commit_of("next"), commit_of("main"));
    assert_eq!(result["commit"], commit_of("main").as_str());
    env.shut_down();
}

#[test]
fn repeated_rebase_finds_what_it_has_copied() {
    let env = env_with_repository();
    let (ann, bob) = (spawn_agent(&env, "ann"), spawn_agent(&env, "bob"));
    commit(&env, &ann, "lines", "ann\nx\nx\n");
    run_git(&env, &bob, &["merge", "--quiet", "teamd/survey/ann"]);
    git(&env, &bob, &["switch", "--quiet", "--detach"]);
    commit(&env, &ann, "lines", "ann 2\nx\nx\n");
    git(&env, &bob, &["switch", "--quiet", "teamd/survey/bob"]);
    commit(&env, &bob, "lines", "ann\nx\nbob 1\n");
    commit(&env, &bob, "lines", "ann\nx\nbob 2\n");
    env.teamctl(["merge", "--all", "--rebase"]).expect_success();
    let again = merge_json(&env, &["--all", "--rebase"], 0);
    assert_eq!(again["members"][1]["result"], "nothing_to_merge");
    commit(&env, &bob, "lines", "ann\nx\nbob 3\n");
    let third = merge_json(&env, &["--all", "--rebase"], 0);
    assert_eq!(
        (&third["members"][1]["result"], &third["members"][1]["commits"]),
        (&json!("merged"), &json!(1))
    );
    assert_eq!(merged_file(&env, "lines"), "ann 2\nx\nbob 3");
    env.shut_down();
}

/// git takes the plain name for the tag.
#[test]
fn commands_name_the_branch_and_not_a_tag() {
    let env = env_with_two_branches();
    git(&env, &env.path("repo"), &["tag", MERGED]);
    let result = merge_json(&env, &["--all"], 0);
    assert_eq!(result["commands"]["take"], format!("git merge heads/{MERGED}"));
    env.shut_down();
}

#[test]
fn programs_of_the_repository_do_not_run() {
    let env = env_with_two_branches();
    let (repository, ran) = (env.path("repo"), env.path("out/ran"));
    let script = format!("#!/bin/sh\necho \"$0\" >>{}\nexec cat\n", path_text(&ran));
    for hook in ["post-checkout", "post-merge", "pre-merge-commit", "commit-msg", "reference-transaction"] {
        let path = repository.join(".git/hooks").join(hook);
        write_file(&path, &script);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let marker = env.write_script("marker", &script);
    for key in ["filter.x.smudge", "merge.x.driver", "gpg.program"] {
        git(&env, &repository, &["config", key, path_text(&marker)]);
    }
    git(&env, &repository, &["config", "commit.gpgSign", "true"]);
    write_file(&repository.join(".git/info/attributes"), "* filter=x merge=x\n");
    std::fs::remove_file(&ran).ok();
    env.teamctl(["merge", "--all"]).expect_success();
    env.teamctl(["merge", "--all", "--rebase", "--into", "next"]).expect_success();
    assert_eq!(env.read("out/ran"), "");
    env.shut_down();
}

#[test]
fn second_merge_at_the_same_time_names_the_first() {
    let env = env_with_two_branches();
    let (started, go) = (env.path("out/started"), env.path("out/go"));
    assert!(env.command("mkfifo").arg(&go).status().unwrap().success());
    let test = format!("touch {}; cat {}", path_text(&started), path_text(&go));
    let mut first = env.start_teamctl(["merge", "ann", "--test", &test]);
    env.wait_until("the test has started", || started.exists().then_some(()));
    let error = env.teamctl(["merge", "bob"]).expect_failure(75);
    let expected = format!("process {} does so already, into {MERGED}", first.id());
    assert!(error.contains(&expected), "{error}");
    env.with_timeout(Duration::from_secs(30), || {
        write_file(&go, "");
        assert!(first.wait().unwrap().success());
    });
    env.teamctl(["merge", "bob"]).expect_success();
    env.shut_down();
}

#[test]
fn full_disk_leaves_the_branch_as_before() {
    let env = env_with_two_branches();
    env.teamctl(["merge", "bob"]).expect_success();
    let before = merged_commit(&env);
    env.write_file("crash/armed", "error teamctl merge.commit 1");
    env.write_file("crash/hits", "");
    let variables = [("TEAMD_FAILPOINTS", path_text(&env.path("crash")).to_owned())];
    let variables = variables.each_ref().map(|(name, path)| (*name, path.as_str()));
    let error = env.teamctl_with(&["merge", "ann"], &variables).expect_failure(74);
    assert!(error.contains("No space left") && error.contains("type the same command again"), "{error}");
    assert_eq!(merged_commit(&env), before);
    assert_no_merge_worktree(&env);
    env.teamctl(["merge", "ann"]).expect_success();
    env.shut_down();
}

#[test]
fn merge_works_without_a_daemon() {
    let env = env_with_repository();
    let ann = spawn_agent(&env, "ann");
    commit(&env, &ann, "a", "ann\n");
    commit(&env, &env.path("repo"), "a", "main\n");
    env.kill_process(env.daemon_pid());
    let result = merge_json(&env, &["ann"], 1);
    assert_eq!(result["members"][0]["task"]["state"], "created");
    // The branch exists, because the task says to merge it.
    assert_eq!(merged_file(&env, "a"), "main");
    env.start_daemon();
    env.shut_down();
}

/// Without the roster, the commands would say that no member has a worktree.
#[test]
fn damaged_roster_is_an_error_of_merge_and_report() {
    let env = env_with_two_branches();
    env.kill_process(env.daemon_pid());
    let roster = harness::files_below(&env.path("state")).into_iter();
    let roster = roster.filter(|path| path.file_name().is_some_and(|name| name == "roster.json"));
    let roster: Vec<PathBuf> = roster.collect();
    let text = std::fs::read(&roster[0]).unwrap();
    write_file(&roster[0], "{");
    for command in [&["merge", "--all"][..], &["report"]] {
        let error = env.teamctl_with(command, &[]).expect_failure(65);
        assert!(error.contains("roster.json") && error.contains("teamctl doctor"), "{error}");
    }
    write_file(&roster[0], std::str::from_utf8(&text).unwrap());
    env.teamctl(["merge", "--all"]).expect_success();
    env.start_daemon();
    env.shut_down();
}

/// `--into` moves no branch that a worktree uses in another way than by a checkout.
#[test]
fn branch_that_a_worktree_uses_is_refused() {
    let env = env_with_two_branches();
    let repository = env.path("repo");
    let main = git(&env, &repository, &["rev-parse", "main"]);
    git(&env, &repository, &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    git(&env, &repository, &["symbolic-ref", "refs/heads/bobs", "refs/heads/teamd/survey/bob"]);
    for into in ["alias", "bobs"] {
        let error = env.teamctl(["merge", "ann", "--into", into]).expect_failure(76);
        assert!(error.contains("symbolic reference"), "{error}");
    }
    assert_eq!(git(&env, &repository, &["rev-parse", "main"]), main);
    git(&env, &repository, &["checkout", "--quiet", "-b", "feature"]);
    commit(&env, &repository, "g", "1\n");
    let editor = "GIT_SEQUENCE_EDITOR=echo break >>";
    let rebase = format!("{} git rebase --quiet --interactive HEAD~1", editor.replace('=', "='") + "'");
    let status = env.command("sh").args(["-c", &rebase]).current_dir(&repository).status().unwrap();
    assert!(status.success());
    let error = env.teamctl(["merge", "ann", "--into", "feature"]).expect_failure(76);
    assert!(error.contains("feature"), "{error}");
    git(&env, &repository, &["rebase", "--continue"]);
    git(&env, &repository, &["checkout", "--quiet", "--orphan", "unborn"]);
    env.teamctl(["merge", "ann", "--into", "unborn", "--onto", "main"]).expect_failure(76);
    git(&env, &repository, &["checkout", "--quiet", "--force", "main"]);
    env.shut_down();
}

#[test]
fn conflict_in_a_file_whose_name_is_not_utf8_is_printed_as_json() {
    let env = env_with_repository();
    let (repository, ann) = (env.path("repo"), spawn_agent(&env, "ann"));
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"caf\xe9");
    for (directory, text) in [(&ann, "ann\n"), (&repository, "main\n")] {
        write_file(&directory.join(name), text);
        git(&env, directory, &["add", "--all"]);
        git(&env, directory, &["commit", "--quiet", "--message", "change"]);
    }
    let output = env.teamctl(["merge", "ann", "--json"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(output.json()["members"][0]["files"], json!(["caf\u{fffd}"]));
    env.shut_down();
}
