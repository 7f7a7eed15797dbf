//! Checks the creation of worktrees: path and branch, reuse by a returning member, rejected
//! requests, and a daemon that is killed meanwhile.

use super::{
    env_with_repository, files_below, git, path_from_json, path_text, spawn, wait_until_exited,
    worktree_path, write_file,
};
use std::path::Path;

#[test]
fn worktree_is_created_beside_the_repository_and_deleted_with_the_team() {
    let env = env_with_repository();
    let repository = env.path("repo");
    let sub = repository.join("sub");
    let agent =
        env.write_script("where.sh", "#!/bin/sh\npwd >\"$TEST_DIR/out/$TEAMD_MEMBER\"\nexec cat <&0\n");
    for name in ["ann", "bob"] {
        let cwd = path_text(&sub);
        env.teamctl([
            "spawn",
            name,
            "--cwd",
            cwd,
            "--worktree",
            "--backend",
            "window",
            "--",
            path_text(&agent),
        ])
        .expect_success();
    }
    for name in ["ann", "bob"] {
        let tree = env.path(&format!("repo.worktrees/survey-{name}"));
        let directory = env.wait_until(&format!("{name} has written its directory"), || {
            let output = env.read(&format!("out/{name}"));
            output.ends_with('\n').then_some(output)
        });
        assert_eq!(directory.trim_end(), path_text(&tree.join("sub")));
        assert_eq!(git(&env, &tree, &["branch", "--show-current"]), format!("teamd/survey/{name}"));
        let config = env.read_config();
        let entry = config["members"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!(
            (path_from_json(&entry["worktreePath"]), path_from_json(&entry["cwd"])),
            (tree.clone(), tree.join("sub"))
        );
        let output = env.teamctl(["status", name]).expect_success();
        assert!(
            output.contains(&format!("worktree {}, branch teamd/survey/{name}", path_text(&tree))),
            "{output}"
        );
    }
    assert_eq!(env.json(["delete", "survey", "--force"])["removed"].as_array().unwrap().len(), 2);
    assert!(!env.path("repo.worktrees").exists());
    assert_eq!(git(&env, &repository, &["branch", "--list", "teamd/*"]), "");
    env.shut_down();
}

#[test]
fn returning_member_reuses_its_worktree() {
    let env = env_with_repository();
    let repository = env.path("repo");
    let tree = spawn(&env, "ann", &repository);
    write_file(&tree.join("half"), "done\n");
    wait_until_exited(&env, "ann");
    let output = env.teamctl(["status", "ann"]).expect_success();
    assert!(output.contains(path_text(&tree)), "the worktree of an exited member is shown: {output}");
    // A new daemon knows the worktree too.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    assert_eq!(spawn(&env, "ann", &repository), tree);
    assert_eq!(files_below(&tree)[Path::new("half")], b"done\n");
    wait_until_exited(&env, "ann");
    // In another repository, the member gets another worktree.
    let other = super::create_repository(&env, "other");
    let cwd = path_text(&other);
    env.teamctl(["spawn", "ann", "--profile", "worker", "--cwd", cwd, "--worktree", "topic"])
        .expect_success();
    assert!(env.path("other.worktrees/survey-ann/a").exists());
    assert_eq!(git(&env, &other, &["branch", "--list", "topic"]), "+ topic");
    let args = ["spawn", "bob", "--profile", "worker", "--cwd", cwd, "--worktree", "topic"];
    let error = env.teamctl(args).expect_failure(73);
    assert!(error.contains("cannot check out topic"), "{error}");
    assert!(
        env.member("bob").is_none() && worktree_path(&env, "bob").is_none(),
        "the rejected spawn leaves nothing"
    );
    env.shut_down();
}

#[test]
fn invalid_worktree_request_starts_nothing() {
    let env = env_with_repository();
    let spawn = |cwd: &str, branch: &[&str], variables: &[(&str, &str)]| {
        let args = ["spawn", "ann", "--profile", "worker", "--cwd", cwd, "--worktree"];
        env.teamctl_with(&[&args, branch].concat(), variables)
    };
    let (home, repository) = (env.path("home"), env.path("repo"));
    assert!(spawn(path_text(&home), &[], &[]).expect_failure(76).contains("in no git repository"));
    let empty = env.path("empty");
    git(&env, &env.path(""), &["init", "--quiet", path_text(&empty)]);
    assert!(spawn(path_text(&empty), &[], &[]).expect_failure(76).contains("no commit yet"));
    assert!(spawn(path_text(&repository), &["a..b"], &[]).expect_failure(64).contains("a..b"));
    assert!(
        spawn(path_text(&repository), &[], &[("PATH", "/nowhere")])
            .expect_failure(72)
            .contains("cannot find git")
    );
    assert!(env.member("ann").is_none());
    // The main worktree of the repository is not a worktree of the team.
    let error = env.teamctl(["delete", "survey", "--discard", path_text(&repository)]).expect_failure(64);
    assert!(error.contains("no worktree of survey"), "{error}");
    env.teamctl(["delete", "survey"]).expect_success();
    assert!(repository.join("a").exists());
    env.shut_down();
}

#[test]
fn worktree_survives_a_daemon_killed_during_creation() {
    if harness::skips_without(harness::Facility::WorkingDirectories) {
        return;
    }
    let env = env_with_repository();
    let repository = env.path("repo");
    // The hook writes the pid of git and blocks git until the gate is opened.
    let (pid_file, gate) = (env.path("out/held"), env.path("out/gate"));
    git(&env, &repository, &["config", "core.hooksPath", path_text(&env.path("hooks"))]);
    std::fs::create_dir(env.path("hooks")).unwrap();
    env.create_gate("out/gate");
    let hook = format!(
        "#!/bin/sh\necho $PPID >'{0}.new'; mv '{0}.new' '{0}'\nread _ <'{1}'\n",
        path_text(&pid_file),
        path_text(&gate)
    );
    env.write_script("hooks/post-checkout", &hook);
    let args = ["spawn", "ann", "--profile", "worker", "--cwd", path_text(&repository), "--worktree"];
    let mut spawn = env.start_teamctl(args);
    env.wait_until("the hook is running", || pid_file.exists().then_some(()));
    assert!(env.teamctl(["delete", "survey"]).expect_failure(76).contains("is being made"));
    assert!(env.teamctl(args).expect_failure(73).contains("ann"), "the name is in use");
    env.kill_process(env.daemon_pid());
    assert_eq!(spawn.wait().unwrap().code(), Some(69));
    env.start_daemon();
    let tree = worktree_path(&env, "ann").expect("the worktree was recorded before its creation");
    let error = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(error.contains("in use by process"), "git still works in the worktree: {error}");
    let pid = env.read("out/held").trim().parse::<u32>().unwrap();
    let git_process = platform::ExitHandle::open(pid).unwrap();
    env.open_gate("out/gate");
    assert!(git_process.exits_within(harness::TIMEOUT).unwrap());
    std::fs::remove_file(&gate).unwrap();
    env.teamctl(["delete", "survey"]).expect_success();
    assert!(!tree.exists());
    env.shut_down();
}

#[test]
fn run_keeps_the_team_if_a_worktree_has_unsaved_work() {
    let env = env_with_repository();
    let file = env.path("run.toml");
    let commit = "echo $TEAMD_MEMBER >>a && git commit --quiet --all --message work";
    write_file(
        &file,
        &format!(
            "name = 'crew'\ncwd = 'repo'\nprofile = 'worker'\n\
             [[member]]\nname = 'ann'\nworktree = true\n[[member]]\nname = 'bob'\nworktree = 'topic'\n\
             [[task]]\nkey = 'one'\nsubject = 'x'\nowner = 'ann'\ncommand = '{commit}'\n\
             [[task]]\nkey = 'two'\nsubject = 'y'\nowner = 'bob'\ncommand = '{commit}'\n"
        ),
    );
    let output = env.teamctl(["run", path_text(&file)]);
    assert_eq!(output.code, 0, "the tasks are completed: {output:#?}");
    assert!(output.stderr.contains("team crew stays") && output.stderr.contains("--discard"), "{output:#?}");
    for (branch, name) in [("teamd/crew/ann", "ann"), ("topic", "bob")] {
        let object = format!("{branch}:a");
        assert_eq!(git(&env, &env.path("repo"), &["show", &object]), format!("one\n{name}"));
    }
    git(&env, &env.path("repo"), &["merge", "--quiet", "teamd/crew/ann"]);
    git(&env, &env.path("repo"), &["branch", "kept", "topic"]);
    env.teamctl(["delete", "crew"]).expect_success();
    assert_eq!(
        git(&env, &env.path("repo"), &["branch", "--format=%(refname:short)"]),
        "kept\nmain",
        "merged branches go with their worktrees"
    );
    env.shut_down();
}
