//! Checks how a worktree is prepared for its agent and torn down: the files that `.worktreeinclude`
//! names, and the commands `setup` and `teardown` of the policy.

use super::{env_with_repository, git, path_text, wait_until_exited, write_file};
use harness::TestEnv;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A team in whose policy these keys are.
fn env_with_policy(keys: &str) -> TestEnv {
    let env = env_with_repository();
    set_policy(&env, keys);
    env
}

fn set_policy(env: &TestEnv, keys: &str) {
    let policy = env.path("policy.toml");
    write_file(&policy, &format!("[policy]\n{keys}"));
    env.teamctl(["policy", path_text(&policy), "--yes"]).expect_success();
}

fn spawn_args<'a>(repository: &'a str, name: &'a str) -> [&'a str; 8] {
    ["spawn", name, "--profile", "worker", "--cwd", repository, "--worktree", "--env=OWN=own"]
}

/// Spawns a worker in a worktree. Returns the worktree.
fn spawn(env: &TestEnv, name: &str) -> PathBuf {
    env.teamctl(spawn_args(path_text(&env.path("repo")), name)).expect_success();
    worktree(env, name)
}

/// Spawns a worker, which fails with `code` and leaves no worktree and no branch. Returns the error.
fn spawn_fails(env: &TestEnv, name: &str, code: i32) -> String {
    let error = env.teamctl(spawn_args(path_text(&env.path("repo")), name)).expect_failure(code);
    assert!(!env.path("repo.worktrees").exists(), "{error}");
    assert_eq!(git(env, &env.path("repo"), &["branch", "--list", "teamd/*"]), "");
    error
}

fn worktree(env: &TestEnv, name: &str) -> PathBuf {
    env.path(&format!("repo.worktrees/survey-{name}"))
}

/// Ends the member and deletes the team.
fn delete(env: &TestEnv, name: &str) -> harness::CommandOutput {
    wait_until_exited(env, name);
    env.teamctl(["delete", "survey"])
}

#[test]
fn included_files_are_copied_and_deleted_if_unchanged() {
    let env = env_with_repository();
    let repository = env.path("repo");
    write_file(&repository.join(".git/info/exclude"), ".env\nsecrets/\n");
    write_file(&repository.join(".worktreeinclude"), ".env\nsecrets/\n");
    write_file(&repository.join(".env"), "KEY=1\n");
    write_file(&repository.join("secrets/key"), "k\n");
    std::fs::set_permissions(repository.join("secrets/key"), PermissionsExt::from_mode(0o600)).unwrap();
    let (ann, bob) = (spawn(&env, "ann"), spawn(&env, "bob"));
    assert_eq!(std::fs::read_to_string(ann.join(".env")).unwrap(), "KEY=1\n");
    assert_eq!(ann.join("secrets/key").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    write_file(&bob.join(".env"), "KEY=2\n");
    wait_until_exited(&env, "ann");
    let output = delete(&env, "bob");
    assert_eq!(output.code, 76, "{output:#?}");
    assert!(output.stderr.contains("survey-bob (bob): ignored: .env"), "{output:#?}");
    assert!(!output.stderr.contains("survey-ann ("), "{output:#?}");
    write_file(&bob.join(".env"), "");
    env.teamctl(["delete", "survey", "--discard", path_text(&bob)]).expect_success();
    assert!(!env.path("repo.worktrees").exists());
    env.shut_down();
}

#[test]
fn setup_prepares_the_worktree_before_the_agent_starts() {
    let env = env_with_policy(
        "setup = 'echo made >made.log; echo $TEAMD_TEAM $TEAMD_MEMBER $TEAMD_BRANCH $OWN; pwd'\n\
         teardown = ['sh', '-c', 'cat made.log >$0', '/dev/stdout']\n",
    );
    let ann = spawn(&env, "ann");
    assert_eq!(std::fs::read_to_string(ann.join("made.log")).unwrap(), "made\n");
    let log = |kind: &str| {
        let path = env.path("state");
        let name = format!("logs/worktrees/survey/ann-{kind}.log");
        let files = harness::files_below(&path);
        let file = files.iter().find(|file| file.ends_with(&name)).expect("there is a log");
        std::fs::read_to_string(file).unwrap()
    };
    assert_eq!(log("setup"), format!("survey ann teamd/survey/ann own\n{}\n", path_text(&ann)));
    // A member that comes back finds the worktree as it was.
    wait_until_exited(&env, "ann");
    set_policy(&env, "setup = 'exit 1'\nteardown = 'cat made.log; pwd'\n");
    spawn(&env, "ann");
    // What setup has made is not unsaved work.
    let output = delete(&env, "ann");
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(log("teardown"), format!("made\n{}\n", path_text(&ann)));
    assert!(!env.path("repo.worktrees").exists());
    env.shut_down();
}

#[test]
fn failed_setup_fails_the_spawn_and_leaves_nothing() {
    let env = env_with_policy("setup = 'touch made; echo no such package >&2; exit 3'\n");
    let error = spawn_fails(&env, "ann", 76);
    assert!(
        error.contains("cannot prepare the worktree of ann: setup failed (exit 3); its output: /"),
        "{error}"
    );
    assert!(error.contains("ann-setup.log\n    no such package"), "{error}");
    set_policy(&env, "setup = ['/nothing/there']\n");
    let error = spawn_fails(&env, "ann", 74);
    assert!(error.contains("could not be run or ended: cannot start /nothing/there"), "{error}");
    let pid_file = env.path("out/pid");
    let slow = format!("setsid sleep 1000 & echo $! >{}; sleep 1000", path_text(&pid_file));
    set_policy(&env, &format!("setup = '{slow}'\nsetup_timeout = '8s'\n"));
    let error = spawn_fails(&env, "ann", 75);
    assert!(error.contains("cannot prepare the worktree of ann: setup did not end within 8 s"), "{error}");
    assert_eq!(harness::start_time(env.read("out/pid").trim().parse().unwrap()), None);
    set_policy(&env, "setup = 'true'\n");
    spawn(&env, "ann");
    env.shut_down();
}

#[test]
fn setup_of_a_killed_daemon_is_repeated() {
    let started = "echo $$ >>$TEAMD_ROOT/../out/started";
    let env = env_with_policy(&format!("setup = '{started}; test -e $TEAMD_ROOT/../out/go || sleep 1000'\n"));
    let repository = env.path("repo");
    let mut first = env.start_teamctl(spawn_args(path_text(&repository), "ann"));
    env.wait_until("setup has started", || env.read("out/started").ends_with('\n').then_some(()));
    env.kill_process(env.daemon_pid());
    first.wait().unwrap();
    write_file(&env.path("out/go"), "");
    env.start_daemon();
    spawn(&env, "ann");
    let pids = env.read("out/started");
    let pids: Vec<&str> = pids.lines().collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
    assert_eq!(harness::start_time(pids[0].parse().unwrap()), None, "the first setup was ended");
    env.shut_down();
}

#[test]
fn failed_teardown_is_reported_and_keeps_no_worktree() {
    let env = env_with_policy("teardown = 'echo no network; exit 4'\n");
    spawn(&env, "ann");
    let output = delete(&env, "ann");
    assert_eq!(output.code, 0, "{output:#?}");
    let warning = "Warning: cannot tear down the worktree of ann: teardown failed (exit 4); its output: /";
    assert!(output.stdout.contains(warning), "{output:#?}");
    let events = env.teamctl(["events"]).expect_success();
    assert!(events.contains("cannot tear down the worktree of ann: teardown failed (exit 4)"), "{events}");
    assert!(!env.path("repo.worktrees").exists());
    env.shut_down();
}

#[test]
fn teardown_runs_only_if_the_worktree_is_removed() {
    let env = env_with_policy("teardown = 'echo $TEAMD_MEMBER >>$TEAMD_ROOT/../out/torn; rm made'\n");
    let ann = spawn(&env, "ann");
    write_file(&ann.join("made"), "x");
    assert_eq!(delete(&env, "ann").code, 76);
    assert_eq!(env.read("out/torn"), "");
    env.teamctl(["delete", "survey", "--discard", path_text(&ann)]).expect_success();
    assert_eq!(env.read("out/torn"), "ann\n");
    // The work was saved before the command removed it.
    let archives = harness::files_below(&env.path("state"));
    let archives = archives.iter().filter(|file| file.extension().is_some_and(|end| end == "tar"));
    let names = archives.map(|file| env.command("tar").arg("-tf").arg(file).output().unwrap().stdout);
    let names: Vec<String> = names.map(|names| String::from_utf8(names).unwrap()).collect();
    assert!(names.iter().any(|names| names.lines().any(|name| name.ends_with("made"))), "{names:?}");
    env.shut_down();
}

#[test]
fn files_that_teardown_leaves_go_to_the_trash() {
    let env = env_with_policy("teardown = 'echo late >left; rm -f a'\n");
    let ann = spawn(&env, "ann");
    let output = delete(&env, "ann").expect_success();
    assert!(output.contains(&format!("{} is in the trash", path_text(&ann))), "{output}");
    assert!(!ann.exists());
    let saved = harness::files_below(&env.path("state/teamd"));
    assert!(saved.iter().any(|file| file.extension().is_some_and(|end| end == "tar")), "{saved:?}");
    assert_eq!(git(&env, &env.path("repo"), &["worktree", "list"]).lines().count(), 1);
    env.shut_down();
}

/// Ignored files that a person or an earlier agent has written must not count as made by setup.
#[test]
fn worktree_from_before_the_setup_command_keeps_its_ignored_files() {
    let env = env_with_repository();
    write_file(&env.path("repo/.git/info/exclude"), "*.log\n");
    let ann = spawn(&env, "ann");
    write_file(&ann.join("results.log"), "x");
    let note = git(&env, &ann, &["rev-parse", "--path-format=absolute", "--git-path", "teamd-created-files"]);
    std::fs::remove_file(note.trim()).unwrap();
    wait_until_exited(&env, "ann");
    set_policy(&env, "setup = 'echo made >made.log'\n");
    spawn(&env, "ann");
    let output = delete(&env, "ann");
    assert_eq!(output.code, 76, "{output:#?}");
    assert!(output.stderr.contains("results.log"), "{output:#?}");
    env.shut_down();
}

#[test]
fn policy_with_commands_is_shown_and_needs_yes() {
    let env = env_with_repository();
    let policy = env.path("policy.toml");
    write_file(&policy, "[policy]\nsetup = 'npm ci'\nteardown = ['make', 'clean']\n");
    let shown = [
        "setup runs in each new worktree, at most 10m: npm ci",
        "teardown runs in each worktree before its removal, at most 60s: make clean",
    ];
    let file = path_text(&policy);
    for args in [&["policy", file][..], &["create", "other", "--policy", file]] {
        let error = env.teamctl_with(args, &[]).expect_failure(76);
        assert!(shown.iter().all(|line| error.contains(line)), "{error}");
        let output = env.teamctl_with(&[args, &["--yes"]].concat(), &[]);
        assert_eq!(output.code, 0, "{output:#?}");
    }
    let output = env.teamctl(["policy", "-t", "survey"]).expect_success();
    assert!(shown.iter().all(|line| output.contains(line)), "{output}");
    let archive = env.path("survey.tar");
    env.teamctl(["export", "survey", "--output", path_text(&archive)]).expect_success();
    let error = env.teamctl(["import", path_text(&archive), "-t", "copy"]).expect_failure(76);
    assert!(error.contains("policy: setup runs in each new worktree, at most 10m: npm ci"), "{error}");
    env.shut_down();
}

#[test]
fn run_file_has_the_commands_too() {
    let env = env_with_repository();
    let file = env.path("run.toml");
    write_file(
        &file,
        "name = 'crew'\ncwd = 'repo'\nprofile = 'worker'\n\
         [policy]\nsetup = 'echo ready >ready.log'\nteardown = 'cp ready.log $TEAMD_ROOT/../out/torn'\n\
         [[member]]\nname = 'ann'\nworktree = true\n\
         [[task]]\nkey = 'one'\nsubject = 'x'\ncommand = 'cat ready.log'\n",
    );
    env.teamctl(["run", path_text(&file)]).expect_success();
    assert_eq!(env.read("out/torn"), "ready\n");
    assert!(!env.path("repo.worktrees").exists());
    env.shut_down();
}

/// A setup command that hangs does not outlive the `teamctl spawn` that waits for it, and neither the
/// daemon.
#[test]
fn hanging_setup_ends_with_its_spawn_and_with_the_daemon() {
    let env = env_with_policy("setup = 'echo $$ >>$TEAMD_ROOT/../out/started; sleep 1000 & wait'\n");
    let repository = env.path("repo");
    let started = |count: usize| (env.read("out/started").matches('\n').count() == count).then_some(());
    let mut interrupted = env.start_teamctl(spawn_args(path_text(&repository), "ann"));
    env.wait_until("setup has started", || started(1));
    interrupted.kill().unwrap();
    interrupted.wait().unwrap();
    env.wait_until("the worktree is gone", || (!env.path("repo.worktrees").exists()).then_some(()));
    let mut waiting = env.start_teamctl(spawn_args(path_text(&repository), "bob"));
    env.wait_until("setup has started again", || started(2));
    env.teamctl(["down"]).expect_success();
    assert!(!waiting.wait().unwrap().success());
    for pid in env.read("out/started").lines() {
        assert_eq!(harness::start_time(pid.parse().unwrap()), None, "{pid} has ended");
    }
    env.start_daemon();
    env.teamctl(["delete", "survey"]).expect_success();
    assert!(!env.path("repo.worktrees").exists());
    env.shut_down();
}
