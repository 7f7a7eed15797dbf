//! The branches of members on another host come to the home.

use super::connect_words;
use crate::worktrees::{create_repository, git, git_variables, path_text, write_file};
use harness::{CommandOutput, TestEnv, TwoHosts, run_command};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;

/// What the member commits: its name into the file of its name.
const COMMIT: &str = "git add --all && git -c user.name=a -c user.email=a@b commit --quiet -m";

/// A home with a repository, and a host with a clone of it.
fn hosts_with_clone() -> TwoHosts {
    let mut hosts = TwoHosts::new();
    hosts.home.variables = git_variables();
    hosts.annex.variables = git_variables();
    create_repository(&hosts.home, "repo");
    clone_to(&hosts.home, &hosts.annex);
    hosts
}

fn clone_to(home: &TestEnv, annex: &TestEnv) {
    let (from, to) = (home.path("repo"), annex.path("repo"));
    git(home, &home.path(""), &["clone", "--quiet", path_text(&from), path_text(&to)]);
}

/// Runs teamctl in the repository of the home.
fn teamctl_in_repo(home: &TestEnv, args: &[&str]) -> CommandOutput {
    let mut command = home.command(harness::programs().join("teamctl"));
    command.current_dir(home.path("repo")).args(args);
    run_command(command)
}

/// Spawns a worker with a worktree of the clone on the host.
fn spawn_worker(home: &TestEnv, name: &str, (host, annex): (&str, &TestEnv)) {
    let repo = annex.path("repo");
    let spawn =
        ["spawn", name, "--host", host, "--profile", "worker", "--worktree", "--cwd", path_text(&repo)];
    teamctl_in_repo(home, &spawn).expect_success();
}

/// Lets a worker commit a file, and waits until the task is completed.
fn commit_by_task(home: &TestEnv, name: &str, file: &str, text: &str) {
    let command = format!("echo {text} >{file} && {COMMIT} {text}");
    home.teamctl(["task", "create", text, "--owner", name, "--command", &command]).expect_success();
    home.wait_until("the task is completed", || {
        let is_done = |task: &Value| task["subject"] == text && task["status"] == "completed";
        home.tasks("survey").iter().any(is_done).then_some(())
    });
}

/// A file of a branch at the home. `None` if it does not exist.
fn file_at(home: &TestEnv, branch: &str, file: &str) -> Option<String> {
    let mut command = home.command("git");
    command.current_dir(home.path("repo")).args(["show", &format!("{branch}:{file}")]);
    let output = run_command(command);
    (output.code == 0).then(|| output.stdout.trim_end().to_owned())
}

fn merge_json(home: &TestEnv, args: &[&str], code: i32) -> Value {
    let output = teamctl_in_repo(home, &[&["--json", "merge"], args].concat());
    assert_eq!(output.code, code, "{output:#?}");
    output.json()
}

/// Replaces the hosts file of the home. The daemon keeps its connections.
fn write_hosts(home: &TestEnv, hosts: &[(&str, Vec<String>)]) {
    let entry = |(name, words): &(&str, Vec<String>)| format!("[host.{name}]\nconnect = {}\n", json!(words));
    home.write_file("home/.config/teamd/hosts.toml", hosts.iter().map(entry).collect::<String>());
}

fn end(hosts: TwoHosts) {
    let TwoHosts { home, annex } = hosts;
    home.shut_down();
    annex.shut_down();
}

#[test]
fn merge_fetches_the_branch_of_a_member_on_another_host() {
    let hosts = hosts_with_clone();
    let home = &hosts.home;
    spawn_worker(home, "ann", ("devbox", &hosts.annex));
    commit_by_task(home, "ann", "work", "one");
    let merged = merge_json(home, &["ann"], 0);
    let member = &merged["members"][0];
    assert_eq!((&member["result"], &member["host"]), (&json!("merged"), &json!("devbox")), "{merged}");
    assert_eq!(file_at(home, "teamd/survey/ann", "work").as_deref(), Some("one"));
    assert_eq!(file_at(home, "teamd/survey/merged", "work").as_deref(), Some("one"));
    // The host knows that the home has the commit, so it is no unsaved work there.
    let clone = hosts.annex.path("repo");
    let unsaved = ["rev-list", "--count", "teamd/survey/ann", "--not", "--remotes"];
    assert_eq!(git(&hosts.annex, &clone, &unsaved), "0");
    commit_by_task(home, "ann", "work", "two");
    let output = teamctl_in_repo(home, &["merge", "--all"]).expect_success();
    assert!(output.starts_with("ann: merged 1 commit of teamd/survey/ann\n"), "{output}");
    assert_eq!(file_at(home, "teamd/survey/merged", "work").as_deref(), Some("two"));
    end(hosts);
}

#[test]
fn broken_connection_changes_nothing_and_other_members_are_merged() {
    let hosts = hosts_with_clone();
    let home = &hosts.home;
    spawn_worker(home, "ann", ("devbox", &hosts.annex));
    let other = TestEnv::with_daemon();
    clone_to(home, &other);
    let line = vec![home.path("out/line").display().to_string()];
    write_hosts(home, &[("devbox", line), ("other", connect_words(&other))]);
    spawn_worker(home, "bob", ("other", &other));
    let clone = |env: &TestEnv, name: &str| env.path(&format!("repo.worktrees/survey-{name}"));
    for (env, name) in [(&hosts.annex, "ann"), (&other, "bob")] {
        write_file(&clone(env, name).join(name), name);
        let command = format!("{COMMIT} {name}");
        let mut shell = env.command("sh");
        shell.current_dir(clone(env, name)).args(["-c", &command]);
        run_command(shell).expect_success();
    }
    for bytes in [0, 10, 200, 400, 500] {
        // The daemon has a connection, so the next one is that of the merge.
        home.write_file("out/limits", format!("100000 {bytes}\n"));
        let merged = merge_json(home, &["ann", "bob"], 1);
        let [ann, bob] = [0, 1].map(|index| merged["members"][index].clone());
        assert_eq!(ann["result"], "not_fetched", "{bytes} bytes: {merged}");
        let message = ann["fetch_error"]["message"].as_str().unwrap();
        assert!(message.starts_with("cannot fetch the branch of ann from devbox: "), "{message}");
        assert!(["merged", "nothing_to_merge"].contains(&bob["result"].as_str().unwrap()), "{merged}");
        assert_eq!(file_at(home, "teamd/survey/ann", "ann"), None);
        assert_eq!(file_at(home, "teamd/survey/merged", "bob").as_deref(), Some("bob"));
    }
    let merged = merge_json(home, &["--all"], 0);
    assert_eq!(merged["members"][0]["result"], "merged", "{merged}");
    assert_eq!(file_at(home, "teamd/survey/merged", "ann").as_deref(), Some("ann"));
    end(hosts);
    other.shut_down();
}

#[test]
fn branch_with_other_commits_here_is_not_moved() {
    let hosts = hosts_with_clone();
    let home = &hosts.home;
    spawn_worker(home, "ann", ("devbox", &hosts.annex));
    commit_by_task(home, "ann", "work", "one");
    merge_json(home, &["ann"], 0);
    let repo: PathBuf = home.path("repo");
    git(home, &repo, &["switch", "--quiet", "teamd/survey/ann"]);
    write_file(&repo.join("own"), "own");
    git(home, &repo, &["add", "own"]);
    git(home, &repo, &["commit", "--quiet", "--message", "own"]);
    let own = git(home, &repo, &["rev-parse", "HEAD"]);
    git(home, &repo, &["switch", "--quiet", "main"]);
    commit_by_task(home, "ann", "work", "two");
    let output = teamctl_in_repo(home, &["merge", "ann"]);
    assert_eq!(output.code, 1, "{output:?}");
    let reason = "cannot fetch the branch of ann from devbox: the branch teamd/survey/ann here has commits that devbox";
    assert!(
        output.stdout.contains(reason) && output.stdout.contains("git branch -m teamd/survey/ann"),
        "{output:?}"
    );
    assert_eq!(git(home, &repo, &["rev-parse", "teamd/survey/ann"]), own);
    end(hosts);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test's own directory")]
fn unrelated_repository_on_the_host_is_an_error_that_names_both() {
    let hosts = hosts_with_clone();
    let (home, annex) = (&hosts.home, &hosts.annex);
    std::fs::remove_dir_all(annex.path("repo")).unwrap();
    let there = create_repository(annex, "repo");
    // Without another commit, both could begin with the same one.
    git(annex, &there, &["commit", "--quiet", "--amend", "--message", "another"]);
    spawn_worker(home, "ann", ("devbox", annex));
    commit_by_task(home, "ann", "work", "one");
    let output = teamctl_in_repo(home, &["merge", "ann"]);
    assert_eq!(output.code, 1, "{output:?}");
    let paths = [annex, home].map(|env| env.path("repo/.git").canonicalize().unwrap().display().to_string());
    assert!(paths.iter().all(|path| output.stdout.contains(path)), "{output:?}");
    assert!(output.stdout.contains("has no recent commit of"), "{output:?}");
    end(hosts);
}

/// Waits until the branch of the member has this text in the file `work` at the home.
fn wait_for_work(home: &TestEnv, branch: &str, text: &str) {
    home.wait_until("the branch is fetched", || {
        (file_at(home, branch, "work").as_deref() == Some(text)).then_some(())
    });
}

/// The errors that the home has logged about the member.
fn logged_errors(home: &TestEnv, name: &str) -> Vec<String> {
    let events = home.events().into_iter();
    let errors = events.filter(|event| event["event"] == "error" && event["member"] == name);
    errors.filter_map(|event| Some(event["message"].as_str()?.to_owned())).collect()
}

#[test]
fn completed_task_brings_the_branch_home_before_the_host_is_lost() {
    let hosts = hosts_with_clone();
    let (home, branch) = (&hosts.home, "teamd/survey/ann");
    spawn_worker(home, "ann", ("devbox", &hosts.annex));
    commit_by_task(home, "ann", "work", "one");
    wait_for_work(home, branch, "one");
    home.wait_until("the fetch is recorded", || {
        let report = home.teamctl(["report"]).expect_success();
        report.contains("- ann on devbox, teamd/survey/ann: 1 new commit, 1 not in main").then_some(())
    });
    // Only new connections fail, so the task itself still works.
    let lost = ["sh", "-c", "echo 'no route' >&2; exit 255", "sh"].map(str::to_owned).to_vec();
    write_hosts(home, &[("devbox", lost)]);
    commit_by_task(home, "ann", "work", "two");
    let errors = home.wait_until("the failure is logged", || {
        Some(logged_errors(home, "ann")).filter(|errors| !errors.is_empty())
    });
    assert!(errors[0].starts_with("cannot fetch the branch of ann from devbox: "), "{errors:?}");
    assert!(errors[0].ends_with("; to try again: teamctl merge ann -t survey"), "{errors:?}");
    // What was fetched before is merged, and the result says that it may be old.
    let output = teamctl_in_repo(home, &["merge", "ann"]);
    assert_eq!(output.code, 1, "{output:?}");
    let line = "ann: merged 1 commit of teamd/survey/ann; left out: what is newer there: cannot fetch";
    assert!(output.stdout.starts_with(line), "{output:?}");
    // Such a team is deleted only by force, and the host keeps the worktree.
    let error = home.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(
        error.contains("cannot delete survey: teamctl cannot fetch the branch of ann from devbox"),
        "{error}"
    );
    home.teamctl(["delete", "survey", "--force"]).expect_success();
    let worktree = hosts.annex.path("repo.worktrees/survey-ann");
    hosts.annex.wait_until("the host says why it keeps the team", || {
        let events = hosts.annex.events().into_iter();
        let mut texts = events.filter_map(|event| Some(event["message"].as_str()?.to_owned()));
        texts.any(|text| text.contains("the deletion of survey was not completed")).then_some(())
    });
    assert_eq!(std::fs::read_to_string(worktree.join("work")).unwrap(), "two\n");
    end(hosts);
}

#[test]
fn forgotten_host_leaves_what_was_fetched_and_no_fetch_of_it_is_tried() {
    let hosts = hosts_with_clone();
    let home = &hosts.home;
    spawn_worker(home, "ann", ("devbox", &hosts.annex));
    commit_by_task(home, "ann", "work", "one");
    merge_json(home, &["ann"], 0);
    hosts.cut();
    home.wait_until("the loss is noticed", || {
        (!hosts.contact()["contact"]["no_contact"].is_null()).then_some(())
    });
    home.teamctl(["hosts", "forget", "devbox", "--yes"]).expect_success();
    let merged = merge_json(home, &["ann"], 0);
    assert_eq!(merged["members"][0]["result"], "nothing_to_merge", "{merged}");
    home.teamctl(["delete", "survey"]).expect_success();
    hosts.annex.wait_until("ann's worktree is still there", || {
        hosts.annex.path("repo.worktrees/survey-ann").exists().then_some(())
    });
    hosts.heal();
    end(hosts);
}

#[test]
fn fetch_from_a_slow_host_does_not_hold_up_that_of_another_member() {
    let hosts = hosts_with_clone();
    let home = &hosts.home;
    spawn_worker(home, "ann", ("devbox", &hosts.annex));
    spawn_worker(home, "bob", ("devbox", &hosts.annex));
    commit_by_task(home, "bob", "work", "one");
    wait_for_work(home, "teamd/survey/bob", "one");
    let line = vec![home.path("out/line").display().to_string()];
    let started = home.path("out/started");
    let script = format!("touch {}; cat >/dev/null", started.display());
    let slow = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    write_hosts(home, &[("devbox", slow)]);
    let mut fetch = home.command("teamctl");
    fetch.args(["hosts", "fetch-branch", "ann"]).current_dir(home.path("repo"));
    let mut fetch = fetch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    home.wait_until("the fetch waits for the host", || started.exists().then_some(()));
    write_hosts(home, &[("devbox", line)]);
    let merged = merge_json(home, &["bob"], 0);
    assert_eq!(merged["members"][0]["result"], "merged", "{merged}");
    assert!(fetch.try_wait().unwrap().is_none(), "the slow host holds up only ann");
    home.kill_process(fetch.id());
    fetch.wait().unwrap();
    end(hosts);
}

#[test]
fn deletion_fetches_the_branch_and_the_host_removes_its_worktree() {
    let hosts = hosts_with_clone();
    let (home, annex) = (&hosts.home, &hosts.annex);
    spawn_worker(home, "ann", ("devbox", annex));
    commit_by_task(home, "ann", "work", "one");
    home.teamctl(["delete", "survey", "--force"]).expect_success();
    assert_eq!(file_at(home, "teamd/survey/ann", "work").as_deref(), Some("one"));
    annex.wait_until("the host has removed the worktree", || {
        (!annex.path("repo.worktrees/survey-ann").exists() && annex.member("ann").is_none()).then_some(())
    });
    home.teamctl(["create", "survey"]).expect_success();
    end(hosts);
}

#[test]
fn run_brings_the_branches_home_before_it_deletes_its_team() {
    let hosts = hosts_with_clone();
    let (home, annex) = (&hosts.home, &hosts.annex);
    let text = format!(
        "name = 'far'\nprofile = 'worker'\n[[member]]\nname = 'ann'\nhost = 'devbox'\nworktree = true\ncwd = '{}'\n\
         [[task]]\nkey = 'one'\nsubject = 'one'\nowner = 'ann'\ncommand = 'echo one >work && {COMMIT} one'\n",
        annex.path("repo").display()
    );
    home.write_file("repo/run.toml", text);
    teamctl_in_repo(home, &["run", "run.toml"]).expect_success();
    assert_eq!(file_at(home, "teamd/far/ann", "work").as_deref(), Some("one"));
    end(hosts);
}
