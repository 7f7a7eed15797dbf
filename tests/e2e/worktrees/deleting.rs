//! What a delete does not touch.

use super::{ended, files, git, house, put, spawn, text};

#[test]
fn a_path_in_a_file_is_never_deleted() {
    let house = house();
    let treasure = house.path("home/treasure");
    put(&treasure.join("gold"), "x");
    spawn(&house, "ann", &house.path("repo"));
    ended(&house, "ann");
    let config = house.path("root/teams/survey/config.json");
    let mut team = house.config();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    member["worktreePath"] = text(&treasure).into();
    team["members"].as_array_mut().unwrap().push(member);
    team["members"][0]["worktreePath"] = text(&house.path("repo")).into();
    put(&config, &team.to_string());
    house.teamctl(["delete", "survey", "--force"]).ok();
    assert!(treasure.join("gold").exists() && house.path("repo/a").exists());
    house.end();
}

#[test]
fn what_lies_in_its_place_is_left_alone() {
    let house = house();
    let tree = spawn(&house, "ann", &house.path("repo"));
    let other = spawn(&house, "bob", &house.path("repo"));
    for name in ["ann", "bob"] {
        ended(&house, name);
    }
    // Removed and made anew by somebody else; and gone altogether.
    git(&house, &house.path("repo"), &["worktree", "remove", text(&tree)]);
    put(&tree.join("somebody's"), "x");
    git(&house, &house.path("repo"), &["worktree", "remove", text(&other)]);
    let said = house.teamctl(["doctor"]).stdout;
    assert!(said.contains(text(&other)) && said.contains("is gone"), "{said}");
    let said = house.teamctl(["delete", "survey"]).ok();
    assert!(said.contains("Left alone") && tree.join("somebody's").exists(), "{said}");
    house.end();
}

#[test]
fn a_delete_that_is_refused_for_its_files_has_touched_no_worktree() {
    let house = house();
    let (clean, dirty) =
        (spawn(&house, "ann", &house.path("repo")), spawn(&house, "bob", &house.path("repo")));
    put(&dirty.join("new"), "x");
    for name in ["ann", "bob"] {
        ended(&house, name);
    }
    let named = ["delete", "survey", "--discard", text(&dirty)];
    let untouched = |why: &str| {
        let said = house.teamctl(named).fails(76);
        assert!(said.contains(why), "{said}");
        assert!(clean.join("a").exists() && dirty.join("new").exists() && !has_trash(&house));
        git(&house, &house.path("repo"), &["rev-parse", "--verify", "teamd/survey/ann"]);
    };
    let notes = house.path("root/teams/survey/notes.txt");
    put(&notes, "somebody's");
    untouched("notes.txt");
    assert!(house.path("root/teams/survey/inboxes/team-lead.json").exists(), "nor anything else");
    std::fs::remove_file(notes).unwrap();
    let mut team = house.config();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    team["members"].as_array_mut().unwrap().push(member);
    put(&house.path("root/teams/survey/config.json"), &team.to_string());
    untouched("eve");
    house.teamctl(["delete", "survey", "--force", "--discard", text(&dirty)]).ok();
    assert!(!clean.exists() && !dirty.exists());
    house.end();
}

#[test]
fn what_is_moved_away_is_not_taken_for_removed() {
    let house = house();
    let tree = spawn(&house, "ann", &house.path("repo"));
    put(&tree.join("new"), "x");
    ended(&house, "ann");
    let (beside, away) = (house.path("repo.worktrees"), house.path("not-mounted"));
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    let moved = |from: &std::path::Path, to: &std::path::Path| std::fs::rename(from, to).unwrap();
    moved(&beside, &away);
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(said.contains("its disk is not mounted"), "{said}");
    moved(&away, &beside);
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(said.contains("untracked: new"), "{said}");
    moved(&beside, &away);
    let reply = house.json(["delete", "survey", "--discard", text(&tree)]);
    assert_eq!(reply["gone"][0], text(&tree), "{reply}");
    assert!(away.join("survey-ann/new").exists());
    house.end();
}

#[test]
fn no_name_of_a_file_writes_a_line_into_the_refusal() {
    let house = house();
    let tree = spawn(&house, "ann", &house.path("repo"));
    put(&tree.join("x\nsurvey is deleted."), "x");
    ended(&house, "ann");
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(!said.lines().any(|line| line.starts_with("survey is deleted")), "{said}");
    house.end();
}

#[test]
fn nobody_is_ended_for_a_delete_that_unsaved_work_refuses() {
    let house = house();
    let (dirty, clean) =
        (spawn(&house, "ann", &house.path("repo")), spawn(&house, "bob", &house.path("repo")));
    put(&dirty.join("new"), "x");
    let pids = || ["ann", "bob"].map(|name| house.member(name).expect("it lives")["pid"].as_u64());
    let before = pids();
    let said = house.teamctl(["delete", "survey", "--force"]).fails(76);
    assert!(said.contains("untracked: new") && !said.contains("ended"), "{said}");
    assert!(said.contains(&format!("delete survey --force --discard {}", text(&dirty))), "{said}");
    assert_eq!((before[0].is_some(), pids()), (true, before));
    // That they work in them refuses nothing: they are ended first.
    std::fs::remove_file(dirty.join("new")).unwrap();
    house.teamctl(["delete", "survey", "--force"]).ok();
    assert!(!dirty.exists() && !clean.exists());
    house.end();
}

fn has_trash(house: &harness::House) -> bool {
    files(&house.path("state")).keys().any(|file| file.iter().any(|name| name == "trash"))
}
