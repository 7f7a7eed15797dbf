//! A team that stays after its run, or was there before.

use super::{HELD, ended, gone, let_go, log, outcomes, run_until_held, team};
use harness::House;

#[test]
fn a_team_that_is_kept_can_be_looked_at_and_taken_up() {
    let house = House::start();
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file, "--keep"]).ok();
    assert!(house.member("ann").is_none(), "its members have ended");
    let tasks = house.json(["task", "list"]);
    assert_eq!(
        (&tasks["tasks"][0]["status"], &tasks["tasks"][0]["metadata"]["key"]),
        (&"completed".into(), &"a".into())
    );
    let said = house.teamctl(["run", &file]).fails(73);
    assert!(said.contains("nothing is left to do in it") && said.contains("teamctl delete survey"), "{said}");
    let ran = house.teamctl(["run", &file, "--resume"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing is left to do, and team survey stays"), "{ran:#?}");
    assert!(!ran.stderr.contains("failed"), "{ran:#?}");
    assert_eq!(log(&house), ["a"], "what is completed never runs again");
    assert!(house.path("root/teams/survey/config.json").exists());
    house.teamctl(["delete", "survey"]).ok();
    house.teamctl(["run", &file, "--resume"]).ok();
    assert_eq!(log(&house), ["a", "a"], "where nothing is, it begins");
    house.end();
}

/// What the file beside the state says of a run that was killed.
fn note(house: &House, text: &str) {
    let place = std::fs::read_dir(house.path("state/teamd")).unwrap().next().unwrap().unwrap().file_name();
    house.put(&format!("state/teamd/{}/run-survey.lock", place.to_str().unwrap()), text);
}

/// One that was killed between the end of its members and the deletion of its team.
#[test]
fn a_team_that_was_to_go_with_its_run_goes_with_the_next() {
    let house = House::start();
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file, "--keep"]).ok();
    note(&house, "its team goes with it\n");
    let ran = house.teamctl(["run", &file, "--resume"]).ok();
    assert!(ran.contains("1 of 1 tasks are completed"), "{ran}");
    assert_eq!(log(&house), ["a"], "what is completed never runs again");
    let spawned = house.events().iter().filter(|event| event["event"] == "member_spawned").count();
    assert_eq!(spawned, 1, "nobody is started for that: {:?}", house.events());
    gone(&house);
    house.end();
}

const ENDED: &str = "it has ended, and its team is being deleted; exit code 1\n";

/// One that was killed while its team was being deleted: nothing of that is done yet, a task is gone, all of it is.
#[test]
fn a_run_of_which_only_the_deletion_is_left_is_not_begun_anew() {
    let house = House::start();
    let file = team(["ann"]).task("a", "", "").task("b", "", "blocked_by = ['a']").in_house(&house);
    for (gone_by_then, told) in [("nothing", true), ("a task", false), ("all", false)] {
        house.put("out/log", "");
        house.teamctl(["run", &file, "--keep"]).ok();
        note(&house, ENDED);
        match gone_by_then {
            "a task" => {
                let tasks = house.tasks("survey");
                let task = tasks.iter().find(|task| task["subject"] == "do a").unwrap();
                let file = format!("tasks/survey/{}.json", task["id"].as_str().unwrap());
                std::fs::remove_file(house.root().join(file)).unwrap();
            }
            "all" => drop(house.teamctl(["delete", "survey"]).ok()),
            _ => {}
        }
        let ran = house.teamctl(["run", &file, "--resume"]);
        assert!(ran.code == 1 && ran.stderr.contains("the run had ended with 1"), "{ran:#?}");
        assert_eq!(ran.stdout.contains("2 of 2 tasks are completed"), told, "{gone_by_then}: {ran:#?}");
        assert_eq!(log(&house), ["a", "b"], "what is over never runs again");
        gone(&house);
    }
    house.teamctl(["run", &file, "--resume"]).ok();
    assert_eq!(log(&house), ["a", "b", "a", "b"], "that is said once");
    house.end();
}

#[test]
fn a_team_that_is_kept_after_all_stays() {
    let house = House::start();
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file, "--keep"]).ok();
    note(&house, ENDED);
    for words in [&["run", &file, "--resume", "--keep"][..], &["run", &file, "--resume"]] {
        let ran = house.teamctl_with(words, &[]);
        assert!(ran.stderr.contains("nothing is left to do, and team survey stays"), "{ran:#?}");
    }
    assert!(house.path("root/teams/survey/config.json").exists());
    house.teamctl(["delete", "survey"]).ok();
    house.end();
}

#[test]
fn a_failed_task_of_a_team_that_was_kept_is_tried_again_only_once_it_is_released() {
    let house = House::start();
    let file = team(["ann"])
        .task("bad", "[ -e out/mended ]", "")
        .task("next", "", "blocked_by = ['bad']")
        .in_house(&house);
    assert_eq!(house.teamctl(["run", &file, "--keep"]).code, 1);
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert!(ran.code == 1 && ran.stderr.contains("teamctl task release ID -t survey"), "{ran:#?}");
    let said = ran.stderr.clone();
    let bad = ran.json()["tasks"][0].clone();
    let id = bad["id"].as_str().unwrap();
    assert!(bad["outcome"] == "failed" && said.contains(&format!("its failed tasks ({id}):")), "{said}");
    assert_eq!(log(&house), ["bad"]);
    house.put("out/mended", "");
    house.teamctl(["task", "release", id, "-t", "survey"]).ok();
    let text = std::fs::read_to_string(&file).unwrap();
    let file = house.put("team.toml", text.replace("do next", "do it otherwise"));
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert!(ran.stderr.contains("task next differs from the file (subject): the team's stays"), "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["bad completed", "next completed"]);
    assert_eq!(log(&house), ["bad", "bad", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn a_team_that_others_made_is_not_taken_up() {
    let house = House::with_team();
    house.teamctl(["task", "create", "somebody's"]).ok();
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file]).fails(73);
    let said = house.teamctl(["run", &file, "--resume"]).fails(76);
    assert!(said.contains("none of its tasks"), "{said}");
    house.teamctl(["spawn", "eve", "--", "sleep", "3600"]).ok();
    let said = house.teamctl(["run", &file, "--resume"]).fails(76);
    assert!(said.contains("eve is on it, and the file has no such member (any more)"), "{said}");
    assert_eq!(house.json(["task", "list"])["tasks"].as_array().unwrap().len(), 1);
    assert!(house.member("eve").is_some());
    house.end();
}

#[test]
fn two_runs_of_one_team_do_not_go_on_side_by_side() {
    let house = House::start();
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let run = run_until_held(&house, &file, &[]);
    let said = house.teamctl(["run", &file, "--resume"]).fails(73);
    assert!(said.contains("another teamctl run"), "{said}");
    let_go(&house);
    assert_eq!(ended(run).code, 0);
    house.end();
}
