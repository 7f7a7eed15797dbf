//! Where a worktree is, who gets it, and who does not.

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
        let at = env.wait_until("it says where it is", || {
            let said = env.read(&format!("out/{name}"));
            said.ends_with('\n').then_some(said)
        });
        assert_eq!(at.trim_end(), path_text(&tree.join("sub")));
        assert_eq!(git(&env, &tree, &["branch", "--show-current"]), format!("teamd/survey/{name}"));
        let config = env.read_config();
        let entry = config["members"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(
            (path_from_json(&entry["worktreePath"]), path_from_json(&entry["cwd"])),
            (tree.clone(), tree.join("sub"))
        );
        let said = env.teamctl(["status", name]).expect_success();
        assert!(
            said.contains(&format!("worktree {}, branch teamd/survey/{name}", path_text(&tree))),
            "{said}"
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
    let said = env.teamctl(["status", "ann"]).expect_success();
    assert!(said.contains(path_text(&tree)), "also of one that has ended: {said}");
    // Across daemons.
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    assert_eq!(spawn(&env, "ann", &repository), tree);
    assert_eq!(files_below(&tree)[Path::new("half")], b"done\n");
    wait_until_exited(&env, "ann");
    // In another repository it is another one.
    let other = super::repository(&env, "other");
    let cwd = path_text(&other);
    env.teamctl(["spawn", "ann", "--profile", "worker", "--cwd", cwd, "--worktree", "topic"])
        .expect_success();
    assert!(env.path("other.worktrees/survey-ann/a").exists());
    assert_eq!(git(&env, &other, &["branch", "--list", "topic"]), "+ topic");
    let again = ["spawn", "bob", "--profile", "worker", "--cwd", cwd, "--worktree", "topic"];
    let said = env.teamctl(again).expect_failure(73);
    assert!(said.contains("cannot check out topic"), "{said}");
    assert!(env.member("bob").is_none() && worktree_path(&env, "bob").is_none(), "nothing is left of it");
    env.shut_down();
}

#[test]
fn invalid_worktree_request_starts_nothing() {
    let env = env_with_repository();
    let spawn = |cwd: &str, branch: &[&str], variables: &[(&str, &str)]| {
        let words = ["spawn", "ann", "--profile", "worker", "--cwd", cwd, "--worktree"];
        env.teamctl_with(&[&words, branch].concat(), variables)
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
    // A worktree of another repository is none of the team's.
    let said = env.teamctl(["delete", "survey", "--discard", path_text(&repository)]).expect_failure(64);
    assert!(said.contains("no worktree of survey"), "{said}");
    env.teamctl(["delete", "survey"]).expect_success();
    assert!(repository.join("a").exists());
    env.shut_down();
}

#[test]
fn worktree_survives_a_daemon_killed_during_creation() {
    let env = env_with_repository();
    let repository = env.path("repo");
    // The hook holds git up until somebody opens the gate, and tells who git is.
    let (held, gate) = (env.path("out/held"), env.path("out/gate"));
    git(&env, &repository, &["config", "core.hooksPath", path_text(&env.path("hooks"))]);
    std::fs::create_dir(env.path("hooks")).unwrap();
    env.create_gate("out/gate");
    let hook = format!(
        "#!/bin/sh\necho $PPID >'{0}.new'; mv '{0}.new' '{0}'\nread _ <'{1}'\n",
        path_text(&held),
        path_text(&gate)
    );
    env.write_script("hooks/post-checkout", &hook);
    let words = ["spawn", "ann", "--profile", "worker", "--cwd", path_text(&repository), "--worktree"];
    let mut waiting = env.start_teamctl(words);
    env.wait_until("git is at work", || held.exists().then_some(()));
    assert!(env.teamctl(["delete", "survey"]).expect_failure(76).contains("is being made"));
    assert!(env.teamctl(words).expect_failure(73).contains("ann"), "the name is held");
    env.kill_process(env.daemon_pid());
    assert_eq!(waiting.wait().unwrap().code(), Some(69));
    env.start_daemon();
    let tree = worktree_path(&env, "ann").expect("it was written down before");
    let said = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(said.contains("in use by process"), "git is at work in it: {said}");
    let pid = i32::try_from(env.read("out/held").trim().parse::<u32>().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let git = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    env.open_gate("out/gate");
    rustix::event::poll(&mut [rustix::event::PollFd::new(&git, rustix::event::PollFlags::IN)], None).unwrap();
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
    let ran = env.teamctl(["run", path_text(&file)]);
    assert_eq!(ran.code, 0, "the tasks are done: {ran:#?}");
    assert!(ran.stderr.contains("team crew stays") && ran.stderr.contains("--discard"), "{ran:#?}");
    for (branch, name) in [("teamd/crew/ann", "ann"), ("topic", "bob")] {
        let at = format!("{branch}:a");
        assert_eq!(git(&env, &env.path("repo"), &["show", &at]), format!("one\n{name}"));
    }
    git(&env, &env.path("repo"), &["merge", "--quiet", "teamd/crew/ann"]);
    git(&env, &env.path("repo"), &["branch", "kept", "topic"]);
    env.teamctl(["delete", "crew"]).expect_success();
    assert_eq!(git(&env, &env.path("repo"), &["branch", "--list", "topic"]), "  topic", "it has commits");
    env.shut_down();
}
