//! What a delete does not touch.

use super::{env_with_repository, files_below, git, path_text, spawn, wait_until_exited, write_file};

#[test]
fn paths_in_files_are_never_deleted() {
    let env = env_with_repository();
    let treasure = env.path("home/treasure");
    write_file(&treasure.join("gold"), "x");
    spawn(&env, "ann", &env.path("repo"));
    wait_until_exited(&env, "ann");
    let config = env.path("root/teams/survey/config.json");
    let mut team = env.read_config();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    member["worktreePath"] = path_text(&treasure).into();
    team["members"].as_array_mut().unwrap().push(member);
    team["members"][0]["worktreePath"] = path_text(&env.path("repo")).into();
    write_file(&config, &team.to_string());
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(treasure.join("gold").exists() && env.path("repo/a").exists());
    env.shut_down();
}

#[test]
fn replaced_worktree_is_left_alone() {
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    let other = spawn(&env, "bob", &env.path("repo"));
    for name in ["ann", "bob"] {
        wait_until_exited(&env, name);
    }
    // Removed and made anew by somebody else; and gone altogether.
    git(&env, &env.path("repo"), &["worktree", "remove", path_text(&tree)]);
    write_file(&tree.join("somebody's"), "x");
    git(&env, &env.path("repo"), &["worktree", "remove", path_text(&other)]);
    let said = env.teamctl(["doctor"]).stdout;
    assert!(said.contains(path_text(&other)) && said.contains("is gone"), "{said}");
    let said = env.teamctl(["delete", "survey"]).expect_success();
    assert!(said.contains("Left alone") && tree.join("somebody's").exists(), "{said}");
    env.shut_down();
}

#[test]
fn rejected_delete_touches_no_worktree() {
    let env = env_with_repository();
    let (clean, dirty) = (spawn(&env, "ann", &env.path("repo")), spawn(&env, "bob", &env.path("repo")));
    write_file(&dirty.join("new"), "x");
    for name in ["ann", "bob"] {
        wait_until_exited(&env, name);
    }
    let named = ["delete", "survey", "--discard", path_text(&dirty)];
    let untouched = |why: &str| {
        let said = env.teamctl(named).expect_failure(76);
        assert!(said.contains(why), "{said}");
        assert!(clean.join("a").exists() && dirty.join("new").exists() && !has_trash(&env));
        git(&env, &env.path("repo"), &["rev-parse", "--verify", "teamd/survey/ann"]);
    };
    let notes = env.path("root/teams/survey/notes.txt");
    write_file(&notes, "somebody's");
    untouched("notes.txt");
    assert!(env.path("root/teams/survey/inboxes/team-lead.json").exists(), "nor anything else");
    std::fs::remove_file(notes).unwrap();
    let mut team = env.read_config();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    team["members"].as_array_mut().unwrap().push(member);
    write_file(&env.path("root/teams/survey/config.json"), &team.to_string());
    untouched("eve");
    env.teamctl(["delete", "survey", "--force", "--discard", path_text(&dirty)]).expect_success();
    assert!(!clean.exists() && !dirty.exists());
    env.shut_down();
}

#[test]
fn moved_worktree_is_not_treated_as_removed() {
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    write_file(&tree.join("new"), "x");
    wait_until_exited(&env, "ann");
    let (beside, away) = (env.path("repo.worktrees"), env.path("not-mounted"));
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    let moved = |from: &std::path::Path, to: &std::path::Path| std::fs::rename(from, to).unwrap();
    moved(&beside, &away);
    let said = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(said.contains("its disk is not mounted"), "{said}");
    moved(&away, &beside);
    let said = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(said.contains("untracked: new"), "{said}");
    moved(&beside, &away);
    let reply = env.json(["delete", "survey", "--discard", path_text(&tree)]);
    assert_eq!(reply["missing"][0], path_text(&tree), "{reply}");
    assert!(away.join("survey-ann/new").exists());
    env.shut_down();
}

#[test]
fn file_names_cannot_add_lines_to_the_error() {
    let env = env_with_repository();
    let tree = spawn(&env, "ann", &env.path("repo"));
    write_file(&tree.join("x\nsurvey is deleted."), "x");
    wait_until_exited(&env, "ann");
    let said = env.teamctl(["delete", "survey"]).expect_failure(76);
    assert!(!said.lines().any(|line| line.starts_with("survey is deleted")), "{said}");
    env.shut_down();
}

#[test]
fn rejected_delete_ends_no_member() {
    let env = env_with_repository();
    let (dirty, clean) = (spawn(&env, "ann", &env.path("repo")), spawn(&env, "bob", &env.path("repo")));
    write_file(&dirty.join("new"), "x");
    let pids = || ["ann", "bob"].map(|name| env.member(name).expect("it lives")["pid"].as_u64());
    let before = pids();
    let said = env.teamctl(["delete", "survey", "--force"]).expect_failure(76);
    assert!(said.contains("untracked: new") && !said.contains("ended"), "{said}");
    assert!(said.contains(&format!("delete survey --force --discard {}", path_text(&dirty))), "{said}");
    assert_eq!((before[0].is_some(), pids()), (true, before));
    // That they work in them refuses nothing: they are ended first.
    std::fs::remove_file(dirty.join("new")).unwrap();
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    assert!(!dirty.exists() && !clean.exists());
    env.shut_down();
}

fn has_trash(env: &harness::TestEnv) -> bool {
    files_below(&env.path("state")).keys().any(|file| file.iter().any(|name| name == "trash"))
}
