//! Where a worktree is, who gets it, and who does not.

use super::{
    env_with_repository, files_below, git, path_from_json, path_text, spawn, wait_until_exited,
    worktree_path, write_file,
};
use std::path::Path;

#[test]
fn worktree_is_created_beside_the_repository_and_deleted_with_the_team() {
    let house = env_with_repository();
    let repository = house.path("repo");
    let sub = repository.join("sub");
    let agent =
        house.write_script("where.sh", "#!/bin/sh\npwd >\"$HOUSE/out/$TEAMD_MEMBER\"\nexec cat <&0\n");
    for name in ["ann", "bob"] {
        let cwd = path_text(&sub);
        house
            .teamctl([
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
        let tree = house.path(&format!("repo.worktrees/survey-{name}"));
        let at = house.wait_until("it says where it is", || {
            let said = house.read(&format!("out/{name}"));
            said.ends_with('\n').then_some(said)
        });
        assert_eq!(at.trim_end(), path_text(&tree.join("sub")));
        assert_eq!(git(&house, &tree, &["branch", "--show-current"]), format!("teamd/survey/{name}"));
        let config = house.read_config();
        let entry = config["members"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(
            (path_from_json(&entry["worktreePath"]), path_from_json(&entry["cwd"])),
            (tree.clone(), tree.join("sub"))
        );
        let said = house.teamctl(["status", name]).expect_success();
        assert!(
            said.contains(&format!("worktree {}, branch teamd/survey/{name}", path_text(&tree))),
            "{said}"
        );
    }
    assert_eq!(house.json(["delete", "survey", "--force"])["removed"].as_array().unwrap().len(), 2);
    assert!(!house.path("repo.worktrees").exists());
    assert_eq!(git(&house, &repository, &["branch", "--list", "teamd/*"]), "");
    house.shut_down();
}

#[test]
fn returning_member_reuses_its_worktree() {
    let house = env_with_repository();
    let repository = house.path("repo");
    let tree = spawn(&house, "ann", &repository);
    write_file(&tree.join("half"), "done\n");
    wait_until_exited(&house, "ann");
    let said = house.teamctl(["status", "ann"]).expect_success();
    assert!(said.contains(path_text(&tree)), "also of one that has ended: {said}");
    // Across daemons.
    house.kill_process(house.daemon_pid());
    house.start_daemon();
    assert_eq!(spawn(&house, "ann", &repository), tree);
    assert_eq!(files_below(&tree)[Path::new("half")], b"done\n");
    wait_until_exited(&house, "ann");
    // In another repository it is another one.
    let other = super::repository(&house, "other");
    let cwd = path_text(&other);
    house
        .teamctl(["spawn", "ann", "--profile", "worker", "--cwd", cwd, "--worktree", "topic"])
        .expect_success();
    assert!(house.path("other.worktrees/survey-ann/a").exists());
    assert_eq!(git(&house, &other, &["branch", "--list", "topic"]), "+ topic");
    let again = ["spawn", "bob", "--profile", "worker", "--cwd", cwd, "--worktree", "topic"];
    let said = house.teamctl(again).expect_failure(73);
    assert!(said.contains("cannot check out topic"), "{said}");
    assert!(house.member("bob").is_none() && worktree_path(&house, "bob").is_none(), "nothing is left of it");
    house.shut_down();
}

#[test]
fn invalid_worktree_request_starts_nothing() {
    let house = env_with_repository();
    let spawn = |cwd: &str, branch: &[&str], variables: &[(&str, &str)]| {
        let words = ["spawn", "ann", "--profile", "worker", "--cwd", cwd, "--worktree"];
        house.teamctl_with(&[&words, branch].concat(), variables)
    };
    let (home, repository) = (house.path("home"), house.path("repo"));
    assert!(spawn(path_text(&home), &[], &[]).expect_failure(76).contains("in no git repository"));
    let empty = house.path("empty");
    git(&house, &house.path(""), &["init", "--quiet", path_text(&empty)]);
    assert!(spawn(path_text(&empty), &[], &[]).expect_failure(76).contains("no commit yet"));
    assert!(spawn(path_text(&repository), &["a..b"], &[]).expect_failure(64).contains("a..b"));
    assert!(
        spawn(path_text(&repository), &[], &[("PATH", "/nowhere")])
            .expect_failure(72)
            .contains("cannot find git")
    );
    assert!(house.member("ann").is_none());
    // A worktree of another repository is none of the team's.
    let said = house.teamctl(["delete", "survey", "--discard", path_text(&repository)]).expect_failure(64);
    assert!(said.contains("no worktree of survey"), "{said}");
    house.teamctl(["delete", "survey"]).expect_success();
    assert!(repository.join("a").exists());
    house.shut_down();
}

#[test]
fn worktree_survives_a_daemon_killed_during_creation() {
    let house = env_with_repository();
    let repository = house.path("repo");
    // The hook holds git up until somebody opens the gate, and tells who git is.
    let (held, gate) = (house.path("out/held"), house.path("out/gate"));
    git(&house, &repository, &["config", "core.hooksPath", path_text(&house.path("hooks"))]);
    std::fs::create_dir(house.path("hooks")).unwrap();
    house.create_gate("out/gate");
    let hook = format!(
        "#!/bin/sh\necho $PPID >'{0}.new'; mv '{0}.new' '{0}'\nread _ <'{1}'\n",
        path_text(&held),
        path_text(&gate)
    );
    house.write_script("hooks/post-checkout", &hook);
    let words = ["spawn", "ann", "--profile", "worker", "--cwd", path_text(&repository), "--worktree"];
    let mut waiting = house.start_teamctl(words);
    house.wait_until("git is at work", || held.exists().then_some(()));
    assert!(house.teamctl(["delete", "survey"]).expect_failure(76).contains("is being made"));
    assert!(house.teamctl(words).expect_failure(73).contains("ann"), "the name is held");
    house.kill_process(house.daemon_pid());
    assert_eq!(waiting.wait().unwrap().code(), Some(69));
    house.start_daemon();
    let tree = worktree_path(&house, "ann").expect("it was written down before");
    let said = house.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(said.contains("in use by process"), "git is at work in it: {said}");
    let pid = i32::try_from(house.read("out/held").trim().parse::<u32>().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let git = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    house.open_gate("out/gate");
    rustix::event::poll(&mut [rustix::event::PollFd::new(&git, rustix::event::PollFlags::IN)], None).unwrap();
    std::fs::remove_file(&gate).unwrap();
    house.teamctl(["delete", "survey"]).expect_success();
    assert!(!tree.exists());
    house.shut_down();
}

#[test]
fn run_keeps_the_team_if_a_worktree_has_unsaved_work() {
    let house = env_with_repository();
    let file = house.path("run.toml");
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
    let ran = house.teamctl(["run", path_text(&file)]);
    assert_eq!(ran.code, 0, "the tasks are done: {ran:#?}");
    assert!(ran.stderr.contains("team crew stays") && ran.stderr.contains("--discard"), "{ran:#?}");
    for (branch, name) in [("teamd/crew/ann", "ann"), ("topic", "bob")] {
        let at = format!("{branch}:a");
        assert_eq!(git(&house, &house.path("repo"), &["show", &at]), format!("one\n{name}"));
    }
    git(&house, &house.path("repo"), &["merge", "--quiet", "teamd/crew/ann"]);
    git(&house, &house.path("repo"), &["branch", "kept", "topic"]);
    house.teamctl(["delete", "crew"]).expect_success();
    assert_eq!(git(&house, &house.path("repo"), &["branch", "--list", "topic"]), "  topic", "it has commits");
    house.shut_down();
}
