//! What it could do waits, or is not its own.

use super::{says, stays, types, works};
use harness::House;

fn bob(house: &House) {
    house.teamctl(["spawn", "bob", "--", &house.agent(), "stay"]).ok();
}

fn made(house: &House, words: &[&str]) -> String {
    let ran = house.teamctl_with(&[&["--json", "task", "create", "think"], words].concat(), &[]);
    ran.json()["task"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn it_waits_for_a_task_of_somebody_elses() {
    let house = House::with_team();
    works(&house);
    bob(&house);
    let first = made(&house, &["--owner", "bob"]);
    made(&house, &["--owner", "ann", "--blocked-by", &first]);
    let told = says(&house, "blocked");
    assert!(told["evidence"][0].as_str().unwrap().contains("bob's, not begun"), "{told}");
    assert!(types(&house, &told).contains("bob"));
    house.end();
}

#[test]
fn it_waits_for_a_task_that_nobody_has() {
    let house = House::with_team();
    stays(&house);
    let first = made(&house, &[]);
    made(&house, &["--owner", "ann", "--blocked-by", &first]);
    let told = says(&house, "blockers_unowned");
    types(&house, &told);
    assert_eq!(house.json(["task", "get", &first])["task"]["owner"], "ann");
    house.end();
}

#[test]
fn a_chain_is_told_by_what_stands_at_its_end() {
    let house = House::with_team();
    works(&house);
    bob(&house);
    let first = made(&house, &["--owner", "bob"]);
    let second = made(&house, &["--blocked-by", &first]);
    let third = made(&house, &["--owner", "ann", "--blocked-by", &second]);
    let told = says(&house, "blocked");
    let line = format!("task {third} waits for task {first} (think), which is bob's, not begun");
    assert_eq!(told["evidence"], serde_json::json!([line]));
    assert!(types(&house, &told).contains("bob"));
    house.end();
}

#[test]
fn there_is_work_and_it_is_anothers() {
    let house = House::with_team();
    works(&house);
    bob(&house);
    made(&house, &["--owner", "bob"]);
    let told = says(&house, "others_tasks");
    types(&house, &told);
    let id = told["next"][0].as_str().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(house.json(["task", "get", id])["task"]["owner"], "ann");
    house.end();
}
