//! Checks that the branch of a member is told, and that a run file works each time as it did the first time.

use super::{env_with_repository, git, path_text, spawn, wait_until_exited, write_file};
use harness::TestEnv;

/// A run file in which `ann` appends a line to the file `a` and commits it. `more` are other tables.
fn write_run_file(env: &TestEnv, more: &str) -> std::path::PathBuf {
    let file = env.path("night.toml");
    let text = format!(
        "name = 'night'\ncwd = 'repo'\nprofile = 'worker'\n\
         [[member]]\nname = 'ann'\nworktree = true\n[[member]]\nname = 'wes'\n\
         [[task]]\nkey = 'work'\nsubject = 'x'\nowner = 'ann'\n\
         command = 'echo more >>a && git commit --quiet --all --message \"$TEAMD_BRANCH\"'\n{more}"
    );
    write_file(&file, &text);
    file
}

const MERGE: &str = "[[task]]\nkey = 'merge'\nsubject = 'y'\nowner = 'wes'\nblocked_by = ['work']\n\
    command = 'git merge --no-edit \"$(teamctl status ann --format branch)\"'\n";

#[test]
fn second_night_merges_its_own_work() {
    let env = env_with_repository();
    env.teamctl(["delete", "survey"]).expect_success();
    let repository = env.path("repo");
    let with_merge = write_run_file(&env, MERGE);
    let branches = || git(&env, &repository, &["branch", "--format=%(refname:short)"]);
    for lines in 2..4 {
        env.teamctl(["run", path_text(&with_merge)]).expect_success();
        assert_eq!(env.read("repo/a").lines().count(), lines);
        assert_eq!(git(&env, &repository, &["log", "-1", "--format=%s"]), "teamd/night/ann");
        assert_eq!(branches(), "main", "the merged branch goes with the team");
    }
    // The work of a run is discarded. A later run does not merge it.
    let without_merge = write_run_file(&env, "");
    env.teamctl(["run", path_text(&without_merge)]).expect_success();
    let tree = env.path("repo.worktrees/night-ann");
    env.teamctl(["delete", "night", "--discard", path_text(&tree)]).expect_success();
    let branches_after_discard = branches();
    let mut names = branches_after_discard.lines();
    assert_eq!(names.next(), Some("main"));
    let trash = names.next().expect("the discarded branch has another name");
    assert!(
        trash.starts_with("teamd-trash/night-ann-") && names.next().is_none(),
        "{branches_after_discard}"
    );
    let with_merge = write_run_file(&env, MERGE);
    env.teamctl(["run", path_text(&with_merge)]).expect_success();
    assert_eq!(env.read("repo/a").lines().count(), 4);
    assert_eq!(branches(), branches_after_discard);
    env.shut_down();
}

#[test]
fn branch_is_part_of_the_status() {
    let env = env_with_repository();
    git(&env, &env.path("repo"), &["branch", "teamd/survey/ann"]);
    spawn(&env, "ann", &env.path("repo"));
    assert_eq!(env.member("ann").expect("ann runs")["branch"], "teamd/survey/ann-2");
    let print_branch = || env.teamctl(["status", "ann", "--format", "branch"]).expect_success();
    assert_eq!(print_branch(), "teamd/survey/ann-2\n");
    wait_until_exited(&env, "ann");
    assert_eq!(print_branch(), "teamd/survey/ann-2\n");
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    let error = env.teamctl(["status", "bob", "--format", "branch"]).expect_failure(67);
    assert!(error.contains("it has no worktree"), "{error}");
    env.teamctl(["status", "--format", "branch"]).expect_failure(64);
    env.teamctl(["status", "bob", "--format", "tmux"]).expect_failure(64);
    env.shut_down();
}

#[test]
fn task_page_names_the_branch_and_its_last_commit() {
    let env = env_with_repository();
    spawn(&env, "ann", &env.path("repo"));
    let task = env.json(["task", "create", "dig", "--owner", "ann", "--command", "true"])["task"].clone();
    let id = task["id"].as_str().expect("a task has an id");
    let commit = git(&env, &env.path("repo"), &["log", "-1", "--format=%h %s"]);
    let page = env.teamctl(["task", "get", id]).expect_success();
    assert!(page.contains(&format!("  branch: teamd/survey/ann, last commit {commit}")), "{page}");
    let branch = env.json(["task", "get", id])["branch"].clone();
    assert_eq!((&branch["name"], &branch["last_commit"]), (&"teamd/survey/ann".into(), &commit.into()));
    env.shut_down();
}
