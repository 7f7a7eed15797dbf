//! A team that stays after its run, or was there before.

use super::{
    HELD, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, started_tasks, unblock,
};
use harness::TestEnv;

#[test]
fn kept_team_can_be_inspected_and_resumed() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--keep-team"]).expect_success();
    assert!(env.member("ann").is_none(), "its members have ended");
    let tasks = env.json(["task", "list"]);
    assert_eq!(
        (&tasks["tasks"][0]["status"], &tasks["tasks"][0]["metadata"]["key"]),
        (&"completed".into(), &"a".into())
    );
    let said = env.teamctl(["run", &file]).expect_failure(73);
    assert!(said.contains("nothing is left to do in it") && said.contains("teamctl delete survey"), "{said}");
    let ran = env.teamctl(["run", &file, "--resume"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing is left to do, and team survey stays"), "{ran:#?}");
    assert!(!ran.stderr.contains("failed"), "{ran:#?}");
    assert_eq!(started_tasks(&env), ["a"], "what is completed never runs again");
    assert!(env.path("root/teams/survey/config.json").exists());
    env.teamctl(["delete", "survey"]).expect_success();
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["a", "a"], "where nothing is, it begins");
    env.shut_down();
}

/// What the file beside the state says of a run that was killed.
fn write_run_state(env: &TestEnv, text: &str) {
    let place = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().file_name();
    env.write_file(&format!("state/teamd/{}/run-survey.lock", place.to_str().unwrap()), text);
}

/// One that was killed between the end of its members and the deletion of its team.
#[test]
fn team_to_be_deleted_is_deleted_by_the_next_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--keep-team"]).expect_success();
    write_run_state(&env, "delete_team\n");
    let ran = env.teamctl(["run", &file, "--resume"]).expect_success();
    assert!(ran.contains("1 of 1 tasks are completed"), "{ran}");
    assert_eq!(started_tasks(&env), ["a"], "what is completed never runs again");
    let spawned = env.events().iter().filter(|event| event["event"] == "member_spawned").count();
    assert_eq!(spawned, 1, "nobody is started for that: {:?}", env.events());
    assert_team_deleted(&env);
    env.shut_down();
}

const ENDED: &str = "deleting exit_code=1\n";

/// One that was killed while its team was being deleted: nothing of that is done yet, a task is gone, all of it is.
#[test]
fn run_interrupted_during_deletion_only_deletes() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").task("b", "", "blocked_by = ['a']").write_run_file(&env);
    for (gone_by_then, told) in [("nothing", true), ("a task", false), ("all", false)] {
        env.write_file("out/log", "");
        env.teamctl(["run", &file, "--keep-team"]).expect_success();
        write_run_state(&env, ENDED);
        match gone_by_then {
            "a task" => {
                let tasks = env.tasks("survey");
                let task = tasks.iter().find(|task| task["subject"] == "do a").unwrap();
                let file = format!("tasks/survey/{}.json", task["id"].as_str().unwrap());
                std::fs::remove_file(env.root().join(file)).unwrap();
            }
            "all" => drop(env.teamctl(["delete", "survey"]).expect_success()),
            _ => {}
        }
        let ran = env.teamctl(["run", &file, "--resume"]);
        assert!(ran.code == 1 && ran.stderr.contains("the run had ended with 1"), "{ran:#?}");
        assert_eq!(ran.stdout.contains("2 of 2 tasks are completed"), told, "{gone_by_then}: {ran:#?}");
        assert_eq!(started_tasks(&env), ["a", "b"], "what is over never runs again");
        assert_team_deleted(&env);
    }
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["a", "b", "a", "b"], "that is said once");
    env.shut_down();
}

#[test]
fn keep_team_on_resume_keeps_it() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--keep-team"]).expect_success();
    write_run_state(&env, ENDED);
    for words in [&["run", &file, "--resume", "--keep-team"][..], &["run", &file, "--resume"]] {
        let ran = env.teamctl_with(words, &[]);
        assert!(ran.stderr.contains("nothing is left to do, and team survey stays"), "{ran:#?}");
    }
    assert!(env.path("root/teams/survey/config.json").exists());
    env.teamctl(["delete", "survey"]).expect_success();
    env.shut_down();
}

#[test]
fn failed_task_of_a_kept_team_is_retried_after_release() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("bad", "[ -e out/mended ]", "")
        .task("next", "", "blocked_by = ['bad']")
        .write_run_file(&env);
    assert_eq!(env.teamctl(["run", &file, "--keep-team"]).code, 1);
    let ran = env.teamctl(["run", &file, "--resume", "--json"]);
    assert!(ran.code == 1 && ran.stderr.contains("teamctl task release ID -t survey"), "{ran:#?}");
    let said = ran.stderr.clone();
    let bad = ran.json()["tasks"][0].clone();
    let id = bad["id"].as_str().unwrap();
    assert!(bad["outcome"] == "failed" && said.contains(&format!("its failed tasks ({id}):")), "{said}");
    assert_eq!(started_tasks(&env), ["bad"]);
    env.write_file("out/mended", "");
    env.teamctl(["task", "release", id, "-t", "survey"]).expect_success();
    let text = std::fs::read_to_string(&file).unwrap();
    let file = env.write_file("team.toml", text.replace("do next", "do it otherwise"));
    let ran = env.teamctl(["run", &file, "--resume", "--json"]);
    assert!(ran.stderr.contains("task next differs from the file (subject): the team's stays"), "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["bad completed", "next completed"]);
    assert_eq!(started_tasks(&env), ["bad", "bad", "next"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn foreign_team_is_not_resumed() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "somebody's"]).expect_success();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file]).expect_failure(73);
    let said = env.teamctl(["run", &file, "--resume"]).expect_failure(76);
    assert!(said.contains("none of its tasks"), "{said}");
    env.teamctl(["spawn", "eve", "--", "sleep", "3600"]).expect_success();
    let said = env.teamctl(["run", &file, "--resume"]).expect_failure(76);
    assert!(said.contains("eve is on it, and the file has no such member (any more)"), "{said}");
    assert_eq!(env.json(["task", "list"])["tasks"].as_array().unwrap().len(), 1);
    assert!(env.member("eve").is_some());
    env.shut_down();
}

#[test]
fn concurrent_runs_of_one_team_are_rejected() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("slow", HELD, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    let said = env.teamctl(["run", &file, "--resume"]).expect_failure(73);
    assert!(said.contains("another teamctl run"), "{said}");
    unblock(&env);
    assert_eq!(finish_run(run).code, 0);
    env.shut_down();
}
