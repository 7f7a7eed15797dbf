//! Checks runs on a team that exists already: kept by an earlier run, left by an interrupted run,
//! or created by another program.

use super::{
    BLOCKING_COMMAND, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, start_run,
    started_tasks, unblock,
};
use harness::TestEnv;

#[test]
fn kept_team_can_be_inspected_and_resumed() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--keep-team"]).expect_success();
    assert!(env.member("ann").is_none(), "the run has ended its members");
    let tasks = env.json(["task", "list"]);
    assert_eq!(
        (&tasks["tasks"][0]["status"], &tasks["tasks"][0]["metadata"]["key"]),
        (&"completed".into(), &"a".into())
    );
    let error = env.teamctl(["run", &file]).expect_failure(73);
    assert!(
        error.contains("nothing is left to do in it") && error.contains("teamctl delete survey"),
        "{error}"
    );
    let output = env.teamctl(["run", &file, "--resume"]);
    assert!(
        output.code == 0 && output.stderr.contains("nothing is left to do, and team survey stays"),
        "{output:#?}"
    );
    assert!(!output.stderr.contains("failed"), "{output:#?}");
    assert_eq!(started_tasks(&env), ["a"], "completed tasks are not run again");
    assert!(env.path("root/teams/survey/config.json").exists());
    env.teamctl(["delete", "survey"]).expect_success();
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["a", "a"], "a run without a team starts from the beginning");
    env.shut_down();
}

/// Writes the run's lock file, in which a killed run leaves its state.
fn write_run_state(env: &TestEnv, text: &str) {
    let directory = std::fs::read_dir(env.path("state/teamd")).unwrap().next().unwrap().unwrap().file_name();
    env.write_file(&format!("state/teamd/{}/run-survey.lock", directory.to_str().unwrap()), text);
}

/// The run was killed after it had ended its members and before it deleted its team.
#[test]
fn team_to_be_deleted_is_deleted_by_the_next_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--keep-team"]).expect_success();
    write_run_state(&env, "delete_team\n");
    let output = env.teamctl(["run", &file, "--resume"]).expect_success();
    assert!(output.contains("1 of 1 tasks are completed"), "{output}");
    assert_eq!(started_tasks(&env), ["a"], "completed tasks are not run again");
    let spawn_count = env.events().iter().filter(|event| event["event"] == "member_spawned").count();
    assert_eq!(spawn_count, 1, "the second run starts no member: {:?}", env.events());
    assert_team_deleted(&env);
    env.shut_down();
}

/// State of a run that has ended with exit code 1 and is deleting its team.
const DELETING_STATE: &str = "deleting exit_code=1\n";

/// The run was killed while it deleted its team. The cases are: nothing is deleted yet, one task is
/// deleted, everything is deleted.
#[test]
fn run_interrupted_during_deletion_only_deletes() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").task("b", "", "blocked_by = ['a']").write_run_file(&env);
    for (deleted, tasks_are_reported) in [("nothing", true), ("a task", false), ("all", false)] {
        env.write_file("out/log", "");
        env.teamctl(["run", &file, "--keep-team"]).expect_success();
        write_run_state(&env, DELETING_STATE);
        match deleted {
            "a task" => {
                let tasks = env.tasks("survey");
                let task = tasks.iter().find(|task| task["subject"] == "do a").unwrap();
                let file = format!("tasks/survey/{}.json", task["id"].as_str().unwrap());
                std::fs::remove_file(env.root().join(file)).unwrap();
            }
            "all" => drop(env.teamctl(["delete", "survey"]).expect_success()),
            _ => {}
        }
        let output = env.teamctl(["run", &file, "--resume"]);
        assert!(output.code == 1 && output.stderr.contains("the run had ended with 1"), "{output:#?}");
        assert_eq!(
            output.stdout.contains("2 of 2 tasks are completed"),
            tasks_are_reported,
            "{deleted}: {output:#?}"
        );
        assert_eq!(started_tasks(&env), ["a", "b"], "finished tasks are not run again");
        assert_team_deleted(&env);
    }
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_eq!(started_tasks(&env), ["a", "b", "a", "b"], "a further run starts from the beginning");
    env.shut_down();
}

#[test]
fn keep_team_on_resume_keeps_it() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    env.teamctl(["run", &file, "--keep-team"]).expect_success();
    write_run_state(&env, DELETING_STATE);
    for args in [&["run", &file, "--resume", "--keep-team"][..], &["run", &file, "--resume"]] {
        let output = env.teamctl_with(args, &[]);
        assert!(output.stderr.contains("nothing is left to do, and team survey stays"), "{output:#?}");
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
    let output = env.teamctl(["run", &file, "--resume", "--json"]);
    assert!(output.code == 1 && output.stderr.contains("teamctl task release ID -t survey"), "{output:#?}");
    let stderr = output.stderr.clone();
    let failed_task = output.json()["tasks"][0].clone();
    let id = failed_task["id"].as_str().unwrap();
    assert!(
        failed_task["outcome"] == "failed" && stderr.contains(&format!("its failed tasks ({id}):")),
        "{stderr}"
    );
    assert_eq!(started_tasks(&env), ["bad"]);
    env.write_file("out/mended", "");
    env.teamctl(["task", "release", id, "-t", "survey"]).expect_success();
    let text = std::fs::read_to_string(&file).unwrap();
    let file = env.write_file("team.toml", text.replace("do next", "do it otherwise"));
    let output = env.teamctl(["run", &file, "--resume", "--json"]);
    assert!(
        output.stderr.contains("task next differs from the file (subject): the team's stays"),
        "{output:#?}"
    );
    assert_eq!(outcomes(&output.json()), ["bad completed", "next completed"]);
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
    let error = env.teamctl(["run", &file, "--resume"]).expect_failure(76);
    assert!(error.contains("none of its tasks"), "{error}");
    assert_eq!(env.json(["task", "list"])["tasks"].as_array().unwrap().len(), 1);
    env.shut_down();
}

#[test]
fn changed_member_is_told_and_added_member_is_left_alone() {
    let env = TestEnv::with_daemon();
    let file =
        run_file(["ann"]).policy("grace = '500ms'").task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    env.kill_process(run.id());
    assert_ne!(finish_run(run).code, 0);
    env.teamctl(["spawn", "eve", "--", "sleep", "3600"]).expect_success();
    let text = std::fs::read_to_string(&file).unwrap();
    let file =
        env.write_file("team.toml", text.replace("name = \"ann\"", "name = \"ann\"\nprompt = \"anew\""));
    let run = start_run(&env, &file, &["--resume"]);
    unblock(&env);
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("member ann differs from the file (prompt)"), "{output:#?}");
    assert!(output.stderr.contains("eve is on the team and not in the file"), "{output:#?}");
    assert_eq!(started_tasks(&env), ["slow"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn concurrent_runs_of_one_team_are_rejected() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    let error = env.teamctl(["run", &file, "--resume"]).expect_failure(73);
    assert!(error.contains("another teamctl run"), "{error}");
    unblock(&env);
    assert_eq!(finish_run(run).code, 0);
    env.shut_down();
}
