//! Where a worktree is, who gets it, and who does not.

use super::{ended, files, git, house, path, path_of, put, spawn, text};
use std::path::Path;

#[test]
fn it_is_made_beside_the_repository_and_goes_with_the_team() {
    let house = house();
    let repository = house.path("repo");
    let sub = repository.join("sub");
    let agent = house.script("where.sh", "#!/bin/sh\npwd >\"$HOUSE/out/$TEAMD_AGENT\"\nexec cat <&0\n");
    for name in ["ann", "bob"] {
        let cwd = text(&sub);
        house
            .teamctl(["spawn", name, "--cwd", cwd, "--worktree", "--backend", "window", "--", text(&agent)])
            .ok();
    }
    for name in ["ann", "bob"] {
        let tree = house.path(&format!("repo.worktrees/survey-{name}"));
        let at = house.until("it says where it is", || {
            let said = house.read(&format!("out/{name}"));
            said.ends_with('\n').then_some(said)
        });
        assert_eq!(at.trim_end(), text(&tree.join("sub")));
        assert_eq!(git(&house, &tree, &["branch", "--show-current"]), format!("teamd/survey/{name}"));
        let config = house.config();
        let entry = config["members"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        assert_eq!((path(&entry["worktreePath"]), path(&entry["cwd"])), (tree.clone(), tree.join("sub")));
        let said = house.teamctl(["status", name]).ok();
        assert!(said.contains(&format!("worktree {}, branch teamd/survey/{name}", text(&tree))), "{said}");
    }
    assert_eq!(house.json(["delete", "survey", "--force"])["removed"].as_array().unwrap().len(), 2);
    assert!(!house.path("repo.worktrees").exists());
    assert_eq!(git(&house, &repository, &["branch", "--list", "teamd/*"]), "");
    house.end();
}

#[test]
fn a_member_that_comes_again_goes_on_in_its_worktree() {
    let house = house();
    let repository = house.path("repo");
    let tree = spawn(&house, "ann", &repository);
    put(&tree.join("half"), "done\n");
    ended(&house, "ann");
    let said = house.teamctl(["status", "ann"]).ok();
    assert!(said.contains(text(&tree)), "also of one that has ended: {said}");
    // Across daemons.
    house.kill_9(house.daemon());
    house.start_daemon();
    assert_eq!(spawn(&house, "ann", &repository), tree);
    assert_eq!(files(&tree)[Path::new("half")], b"done\n");
    ended(&house, "ann");
    // In another repository it is another one.
    let other = super::repository(&house, "other");
    let cwd = text(&other);
    house.teamctl(["spawn", "ann", "--agent", "worker", "--cwd", cwd, "--worktree", "topic"]).ok();
    assert!(house.path("other.worktrees/survey-ann/a").exists());
    assert_eq!(git(&house, &other, &["branch", "--list", "topic"]), "+ topic");
    let again = ["spawn", "bob", "--agent", "worker", "--cwd", cwd, "--worktree", "topic"];
    let said = house.teamctl(again).fails(73);
    assert!(said.contains("cannot check out topic"), "{said}");
    assert!(house.member("bob").is_none() && path_of(&house, "bob").is_none(), "nothing is left of it");
    house.end();
}

#[test]
fn what_can_not_be_had_is_refused_before_anything_runs() {
    let house = house();
    let spawn = |cwd: &str, branch: &[&str], variables: &[(&str, &str)]| {
        let words = ["spawn", "ann", "--agent", "worker", "--cwd", cwd, "--worktree"];
        house.teamctl_with(&[&words, branch].concat(), variables)
    };
    let (home, repository) = (house.path("home"), house.path("repo"));
    assert!(spawn(text(&home), &[], &[]).fails(76).contains("in no git repository"));
    let empty = house.path("empty");
    git(&house, &house.path(""), &["init", "--quiet", text(&empty)]);
    assert!(spawn(text(&empty), &[], &[]).fails(76).contains("no commit yet"));
    assert!(spawn(text(&repository), &["a..b"], &[]).fails(64).contains("a..b"));
    assert!(spawn(text(&repository), &[], &[("PATH", "/nowhere")]).fails(72).contains("cannot find git"));
    assert!(house.member("ann").is_none());
    // A worktree of another repository is none of the team's.
    let said = house.teamctl(["delete", "survey", "--discard", text(&repository)]).fails(64);
    assert!(said.contains("no worktree of survey"), "{said}");
    house.teamctl(["delete", "survey"]).ok();
    assert!(repository.join("a").exists());
    house.end();
}

#[test]
fn a_daemon_that_is_killed_while_it_makes_one_knows_of_it() {
    let house = house();
    let repository = house.path("repo");
    // The hook holds git up until somebody opens the gate, and tells who git is.
    let (held, gate) = (house.path("out/held"), house.path("out/gate"));
    git(&house, &repository, &["config", "core.hooksPath", text(&house.path("hooks"))]);
    std::fs::create_dir(house.path("hooks")).unwrap();
    house.gate("out/gate");
    let hook = format!(
        "#!/bin/sh\necho $PPID >'{0}.new'; mv '{0}.new' '{0}'\nread _ <'{1}'\n",
        text(&held),
        text(&gate)
    );
    house.script("hooks/post-checkout", &hook);
    let words = ["spawn", "ann", "--agent", "worker", "--cwd", text(&repository), "--worktree"];
    let mut waiting = house.teamctl_running(words);
    house.until("git is at work", || held.exists().then_some(()));
    assert!(house.teamctl(["delete", "survey"]).fails(76).contains("is being made"));
    assert!(house.teamctl(words).fails(73).contains("ann"), "the name is held");
    house.kill_9(house.daemon());
    assert_eq!(waiting.wait().unwrap().code(), Some(69));
    house.start_daemon();
    let tree = path_of(&house, "ann").expect("it was written down before");
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(said.contains("in use by process"), "git is at work in it: {said}");
    let pid = i32::try_from(house.read("out/held").trim().parse::<u32>().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let git = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    house.open_gate("out/gate");
    rustix::event::poll(&mut [rustix::event::PollFd::new(&git, rustix::event::PollFlags::IN)], None).unwrap();
    std::fs::remove_file(&gate).unwrap();
    house.teamctl(["delete", "survey"]).ok();
    assert!(!tree.exists());
    house.end();
}

#[test]
fn a_run_gives_each_member_its_worktree_and_stays_where_work_is_left() {
    let house = house();
    let file = house.path("run.toml");
    let commit = "echo $TEAMD_AGENT >>a && git commit --quiet --all --message work";
    put(
        &file,
        &format!(
            "name = 'crew'\ncwd = 'repo'\nagent = 'worker'\n\
             [[member]]\nname = 'ann'\nworktree = true\n[[member]]\nname = 'bob'\nworktree = 'topic'\n\
             [[task]]\nkey = 'one'\nsubject = 'x'\nowner = 'ann'\ncommand = '{commit}'\n\
             [[task]]\nkey = 'two'\nsubject = 'y'\nowner = 'bob'\ncommand = '{commit}'\n"
        ),
    );
    let ran = house.teamctl(["run", text(&file)]);
    assert_eq!(ran.code, 0, "the tasks are done: {ran:#?}");
    assert!(ran.stderr.contains("team crew stays") && ran.stderr.contains("--discard"), "{ran:#?}");
    for (branch, name) in [("teamd/crew/ann", "ann"), ("topic", "bob")] {
        let at = format!("{branch}:a");
        assert_eq!(git(&house, &house.path("repo"), &["show", &at]), format!("one\n{name}"));
    }
    git(&house, &house.path("repo"), &["merge", "--quiet", "teamd/crew/ann"]);
    git(&house, &house.path("repo"), &["branch", "kept", "topic"]);
    house.teamctl(["delete", "crew"]).ok();
    assert_eq!(git(&house, &house.path("repo"), &["branch", "--list", "topic"]), "  topic", "it has commits");
    house.end();
}
