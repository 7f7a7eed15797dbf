//! What a delete does not touch.

use super::{ended, git, house, put, spawn, text};

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
