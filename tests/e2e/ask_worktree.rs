//! `teamctl ask --worktree`: the program works in a git worktree of its own, which is removed at the
//! end unless it has unsaved work.

use crate::worktrees::{create_repository, git, git_variables, path_text};
use harness::TestEnv;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An environment with a repository, and without a daemon.
fn env_with_repository() -> TestEnv {
    let mut env = TestEnv::new();
    env.variables = git_variables();
    create_repository(&env, "repo");
    env
}

/// The arguments of an ask whose program is a script.
fn ask_args<'a>(repository: &'a str, script: &'a str) -> [&'a str; 9] {
    ["ask", "x", "--worktree", "--cwd", repository, "--", "sh", "-c", script]
}

fn ask(env: &TestEnv, script: &str) -> harness::CommandOutput {
    let repository = env.path("repo");
    env.teamctl(ask_args(path_text(&repository), script))
}

fn start_ask(env: &TestEnv, script: &str) -> Child {
    let mut command = env.command("teamctl");
    command.args(ask_args(path_text(&env.path("repo")), script));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// The worktrees that `ask --list` shows.
fn listed(env: &TestEnv) -> Vec<Value> {
    env.json(["ask", "--list"])["worktrees"].as_array().unwrap().clone()
}

fn path(worktree: &Value) -> PathBuf {
    worktree["path"].as_str().unwrap().into()
}

/// No worktree, branch or record is left.
fn assert_nothing_left(env: &TestEnv) {
    assert_eq!(listed(env), Vec::<Value>::new());
    assert!(!env.path("repo.worktrees").exists());
    assert_eq!(git(env, &env.path("repo"), &["branch", "--list", "teamd/*"]), "");
    assert_eq!(git(env, &env.path("repo"), &["worktree", "list"]).lines().count(), 1);
}

/// A script that changes a file, says so in `out/ready`, and never ends.
fn endless_script(env: &TestEnv, change: &str) -> String {
    let ready = env.path("out/ready").display().to_string();
    std::fs::remove_file(&ready).ok();
    format!("{change}; : >{ready}; exec sleep 3600")
}

fn wait_until_ready(env: &TestEnv) {
    env.wait_until("the program works", || env.path("out/ready").exists().then_some(()));
}

#[test]
fn worktree_without_changes_is_removed_and_one_with_changes_is_kept() {
    let env = env_with_repository();
    let output = ask(&env, "pwd; git branch --show-current; echo $TEAMD_BRANCH; echo $TEAMD_ASK");
    let lines: Vec<&str> = output.stdout.lines().collect();
    let [directory, branch, variable, id] = lines[..] else { panic!("{output:#?}") };
    assert_eq!(directory, path_text(&env.path(&format!("repo.worktrees/{id}"))));
    assert_eq!((branch, variable), (format!("teamd/{id}").as_str(), branch));
    assert_eq!((output.stderr.as_str(), output.code), ("", 0));
    assert_nothing_left(&env);

    let output = ask(&env, "echo new >c; git add c; git commit -qm c; echo more >d; echo done");
    assert_eq!((output.stdout.as_str(), output.code), ("done\n", 0));
    let worktree = listed(&env).pop().unwrap();
    let (kept, branch) = (path(&worktree), worktree["branch"].as_str().unwrap());
    for part in [path_text(&kept), branch, "untracked: d", "1 commit that no other branch has"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let table = env.teamctl(["ask", "--list"]).expect_success();
    assert!(table.contains(path_text(&kept)) && table.contains(branch), "{table}");
    assert!(!env.path("repo/c").exists());
    git(&env, &kept, &["clean", "-fdq"]);
    git(&env, &env.path("repo"), &["merge", "-q", branch]);
    let repaired = env.teamctl(["doctor", "--fix"]).stdout;
    assert!(repaired.contains("had no unsaved work: it is removed"), "{repaired}");
    assert_nothing_left(&env);
    env.shut_down();
}

#[test]
fn resumed_ask_works_in_the_same_worktree() {
    let mut env = env_with_repository();
    std::fs::create_dir_all(env.path("out/bin")).unwrap();
    env.write_profile(
        "editor",
        "delivery = \"turn\"\nprogram = \"editor\"\nargs = [\"{cwd}\", \"{session}\"]\nresume_args = [\"{cwd}\", \"{session}\"]\n\
         session = \"generated\"\n",
    );
    env.write_script(
        "out/bin/editor",
        "#!/bin/sh\nread line; echo \"$line\" >>notes; echo \"$1\"; cat notes\n",
    );
    let programs = harness::programs().display().to_string();
    env.variables
        .push(("PATH".into(), format!("{}:{programs}:/usr/bin:/bin", env.path("out/bin").display())));
    let repository = env.path("repo");
    let cwd = path_text(&repository);
    let first = env.json(["ask", "one", "--profile", "editor", "--cwd", cwd, "--worktree"]);
    let worktree = path(&first["worktree"]);
    assert_eq!(first["answer"], format!("{}\none", worktree.display()));
    assert_eq!(first["worktree"]["unsaved"], serde_json::json!(["untracked: notes"]));
    let id = first["id"].as_str().unwrap();
    let second = env.json(["ask", "two", "--resume", id]);
    assert_eq!(second["answer"], format!("{}\none\ntwo", worktree.display()));
    assert_eq!(second["worktree"], first["worktree"]);
    git(&env, &worktree, &["switch", "-qc", "other"]);
    let error = env.teamctl(["ask", "three", "--resume", id]).expect_failure(76);
    assert!(error.contains("not on its branch") && error.contains("switch teamd/"), "{error}");
    assert_eq!(listed(&env).len(), 1);
    env.shut_down();
}

#[test]
fn unsaved_work_survives_a_timeout_and_an_interrupt() {
    let env = env_with_repository();
    let (repository, script) = (env.path("repo"), endless_script(&env, "echo new >c"));
    let args = ["ask", "x", "--worktree", "--timeout", "8s", "--cwd", path_text(&repository)];
    let output = env.teamctl_with(&[&args[..], &["--", "sh", "-c", &script]].concat(), &[]);
    assert_eq!(output.code, 75);
    assert!(output.stderr.contains("kept worktree") && output.stderr.contains("untracked: c"), "{output:#?}");
    for (change, left) in [("echo new >c", 2), (":", 2)] {
        let child = start_ask(&env, &endless_script(&env, change));
        wait_until_ready(&env);
        signal(child.id(), "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(listed(&env).len(), left, "{change}: {output:?}");
    }
    for worktree in listed(&env) {
        assert_eq!(std::fs::read_to_string(path(&worktree).join("c")).unwrap(), "new\n");
    }
    env.shut_down();
}

#[test]
fn killed_programs_leave_a_listed_worktree() {
    let env = env_with_repository();
    for (change, left) in [(":", 0), ("echo new >c", 1)] {
        let mut child = start_ask(&env, &endless_script(&env, change));
        wait_until_ready(&env);
        child.kill().unwrap();
        child.wait().unwrap();
        env.wait_until("the shim has ended", || {
            let asks = env.json(["ask", "--list"])["asks"].take();
            asks.as_array()?.iter().all(|ask| ask["state"] == "interrupted").then_some(())
        });
        assert_eq!(listed(&env).len(), left, "{change}");
    }
    // The shim is killed too, so only `doctor --fix` can remove the worktree.
    let child = start_ask(&env, &endless_script(&env, ":"));
    wait_until_ready(&env);
    let asks = env.json(["ask", "--list"])["asks"].take();
    let running = asks.as_array().unwrap().iter().find(|ask| ask["state"] == "running").unwrap();
    let id = running["id"].as_str().unwrap();
    let in_use = env.teamctl(["doctor", "--fix"]).stdout;
    assert!(in_use.contains(&format!("{id} works in the worktree")), "{in_use}");
    let record = harness::files_below(&env.path("state"))
        .into_iter()
        .find(|path| path.ends_with(format!("{id}.json")));
    let record: Value = serde_json::from_slice(&std::fs::read(record.unwrap()).unwrap()).unwrap();
    signal(u32::try_from(record["shim"]["pid"].as_u64().unwrap()).unwrap(), "-KILL");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
    assert_eq!(listed(&env).len(), 2);
    let report = env.teamctl(["doctor"]).stdout;
    assert!(report.contains(&format!("{id} has ended, and has left the worktree")), "{report}");
    let repaired = env.teamctl(["doctor", "--fix"]).stdout;
    assert!(repaired.contains("had no unsaved work") && repaired.contains("untracked: c"), "{repaired}");
    assert_eq!(listed(&env).len(), 1);
    env.shut_down();
}

#[test]
fn caller_killed_during_the_creation_leaves_a_listed_worktree() {
    let env = env_with_repository();
    let mut command = env.command("teamctl");
    command.args(ask_args(path_text(&env.path("repo")), "echo done"));
    env.write_file("crash/hits", "");
    env.write_file("crash/armed", "kill teamctl ask.worktree_recorded 1\n");
    command.env("TEAMD_FAILPOINTS", env.path("crash")).stdout(Stdio::null());
    assert!(!command.status().unwrap().success());
    let worktree = listed(&env).pop().unwrap();
    let report = env.teamctl(["doctor", "--fix"]).stdout;
    assert!(report.contains("works in the worktree"), "it may still be created: {report}");
    let records = harness::files_below(&env.path("state"));
    let record = records.into_iter().find(|path| path.to_string_lossy().ends_with(".worktree.json")).unwrap();
    let two_hours_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    std::fs::File::options().write(true).open(record).unwrap().set_modified(two_hours_ago).unwrap();
    let report = env.teamctl(["doctor"]).stdout;
    assert!(report.contains(path_text(&path(&worktree))), "{report}");
    env.teamctl(["doctor", "--fix"]).expect_success();
    assert_nothing_left(&env);
    env.shut_down();
}

#[test]
fn answer_survives_a_kill_of_the_shim_at_the_removal() {
    let env = env_with_repository();
    let mut command = env.command("teamctl");
    command.args(ask_args(path_text(&env.path("repo")), "echo done"));
    env.write_file("crash/hits", "");
    env.write_file("crash/armed", "kill teamd-shim ask.answer_recorded 1\n");
    let output = command.env("TEAMD_FAILPOINTS", env.path("crash")).output().unwrap();
    assert_eq!((&*output.stdout, output.status.code()), (&b"done\n"[..], Some(0)), "{output:?}");
    let ask = env.json(["ask", "--list"])["asks"][0].take();
    assert_eq!(ask["state"], "answered");
    assert_eq!(env.teamctl(["wait", ask["id"].as_str().unwrap()]).expect_success(), "done\n");
    env.teamctl(["doctor", "--fix"]).expect_success();
    assert_nothing_left(&env);
    env.shut_down();
}

#[test]
fn worktrees_are_removed_if_no_shim_can_be_started() {
    let env = env_with_repository();
    let program = env.install_program(&harness::programs().join("teamctl"), "out/teamctl");
    let repository = env.path("repo");
    let questions = env.write_file("out/questions", "1\n2\n");
    for question in [&["--each", &questions][..], &["x"]] {
        let mut command = env.command(&program);
        command.arg("ask").args(question).args(["--worktree", "--cwd", path_text(&repository), "--", "cat"]);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        let text = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8_lossy(&text).contains("cannot start"), "{question:?}");
        assert_nothing_left(&env);
    }
    env.shut_down();
}

#[test]
fn each_question_gets_a_worktree() {
    let env = env_with_repository();
    let (questions, repository) = (env.write_file("out/questions", "1\n2\n3\n4\n"), env.path("repo"));
    let script = "read n; [ $n -gt 2 ] || echo $n >n; pwd";
    let args = ["ask", "--each", &questions, "--worktree", "--cwd", path_text(&repository)];
    let output = env.teamctl_with(&[&args[..], &["--", "sh", "-c", script]].concat(), &[]).expect_success();
    for line in output.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        let is_kept = answer["question"].as_str().unwrap() < "3";
        assert_eq!(answer["worktree"].is_object(), is_kept, "{line}");
        assert_eq!(PathBuf::from(answer["answer"].as_str().unwrap()).exists(), is_kept, "{line}");
    }
    assert_eq!((output.lines().count(), listed(&env).len()), (4, 2));
    env.shut_down();
}

#[test]
fn worktree_needs_a_repository_with_a_commit() {
    let env = env_with_repository();
    std::fs::create_dir(env.path("plain")).unwrap();
    let plain = env.path("plain");
    let args = ["ask", "x", "--worktree", "--cwd", path_text(&plain), "--", "cat"];
    let error = env.teamctl(args).expect_failure(76);
    assert!(error.contains("no git repository") && error.contains("without --worktree"), "{error}");
    git(&env, &plain, &["init", "-q"]);
    assert!(env.teamctl(args).expect_failure(76).contains("no commit"));
    let repository = env.path("repo");
    let missing = ["ask", "x", "--worktree", "--cwd", path_text(&repository), "--", "no-such-program"];
    env.teamctl(missing).expect_failure(72);
    assert_eq!(env.teamctl(["ask", "x", "--resume", "ask-00000000", "--worktree"]).code, 64);
    assert_nothing_left(&env);
    env.shut_down();
}
