//! A run whose team has nothing left to use up.

use super::{HELD, ended, gone, let_go, log, outcomes, run_until_held, team};
use harness::{House, Ran};
use serde_json::Value;

/// What it says for people and for programs, and that the team is there for whoever goes on; what became of its tasks.
fn is_spent(house: &House, ran: Ran, why: &str) -> Vec<String> {
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains(&format!("cannot run team survey to its end: {why}")), "{ran:#?}");
    assert!(ran.stderr.contains("give it more in [policy] of its file"), "{ran:#?}");
    let result = ran.json();
    let error = &result["error"];
    let next = error["hint"].as_str().unwrap().rsplit_once(": ").unwrap().1;
    assert!(error["kind"] == "partly" && next == format!("teamctl run {} --resume", file(house)), "{error}");
    assert!(house.path("root/teams/survey/config.json").exists(), "the team stays");
    outcomes(&result)
}

fn file(house: &House) -> String {
    house.path("team.toml").display().to_string()
}

/// Whoever is in a turn comes to its end, and has read by then that it is to begin no other.
fn let_go_once_asked(house: &House) {
    let asks = |letter: &Value| letter["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
    house.until("she is asked to end", || house.inbox("survey", "ann").iter().any(asks).then_some(()));
    let_go(house);
}

#[test]
fn its_turns_are_used_up_and_with_more_of_them_it_goes_on() {
    let house = House::start();
    let three = |policy| team(["ann"]).policy(policy).task("a", "", "").task("b", HELD, "").task("c", "", "");
    let file = three("turns = 2").in_house(&house);
    let run = run_until_held(&house, &file, &["--json"]);
    let_go_once_asked(&house);
    let came = ["a completed", "b completed", "c not_done: it was not begun"];
    assert_eq!(is_spent(&house, ended(run), "its budget of 2 turns is used up"), came);
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(is_spent(&house, ran, "its budget of 2 turns is used up"), came);
    three("turns = 20").in_house(&house);
    house.teamctl(["run", &file, "--resume"]).ok();
    assert_eq!(log(&house), ["a", "b", "c"], "what is completed never runs again");
    gone(&house);
    house.end();
}

#[test]
fn its_time_is_over_and_with_more_of_it_it_goes_on() {
    let house = House::start();
    let slow = team(["ann"]).policy("time = '8h'").task("slow", HELD, "");
    let file = slow.task("next", "", "blocked_by = ['slow']").in_house(&house);
    let run = run_until_held(&house, &file, &["--json"]);
    let short = house.put("out/policy.toml", "[policy]\ntime = '1ms'\n");
    house.teamctl(["policy", &short, "-t", "survey"]).ok();
    let_go_once_asked(&house);
    let came = is_spent(&house, ended(run), "its time is used up");
    assert_eq!(came, ["slow completed", "next not_done: it was not begun"]);
    house.teamctl(["run", &file, "--resume"]).ok();
    assert_eq!(log(&house), ["slow", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn with_the_last_turn_of_its_budget_all_is_done() {
    let house = House::start();
    let file = team(["ann"]).policy("turns = 1").task("a", "", "").in_house(&house);
    let ran = house.teamctl(["run", &file]).ok();
    assert!(ran.contains("1 of 1 tasks are completed."), "{ran}");
    gone(&house);
    house.end();
}

/// Before its members were there.
#[test]
fn it_has_nothing_to_begin_with() {
    let house = House::start();
    let file = team(["ann", "bob"]).policy("turns = 0").task("a", "", "").in_house(&house);
    let ran = house.teamctl(["run", &file, "--json"]);
    let came = is_spent(&house, ran, "its budget of 0 turns is used up");
    assert_eq!(came, ["a not_done: it was never made"]);
    let root = house.path("root").display().to_string();
    let typed = ["run", &file, "--resume", "--json", "--root", &root];
    let ran = house.teamctl_with(&typed, &[("TEAMD_ROOT", "/nothing")]);
    let next = format!("teamctl run --root {root} {file} --resume");
    assert!(ran.stderr.trim_end().ends_with(&next), "{ran:#?}");
    assert!(ran.json()["error"]["hint"].as_str().unwrap().ends_with(&next));
    team(["ann", "bob"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file, "--resume"]).ok();
    gone(&house);
    house.end();
}
