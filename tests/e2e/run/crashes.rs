//! Checks that a run survives kills of workers, of the daemon and of itself, and that completed
//! tasks are not run again.

use super::{
    BLOCKING_COMMAND, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked,
    sorted_started_tasks, start_run, started_tasks, tmux_variable, unblock,
};
use harness::TestEnv;
use serde_json::json;

#[test]
fn task_of_a_killed_worker_is_taken_by_others() {
    let env = TestEnv::with_daemon();
    let tasks = ["b", "c", "d", "e"];
    let mut builder = run_file(["ann", "bob"]).task("slow", BLOCKING_COMMAND, "");
    for key in tasks {
        builder = builder.task(key, "", "blocked_by = ['slow']");
    }
    let run = run_until_blocked(&env, &builder.write_run_file(&env), &["--json"]);
    kill_worker(&env);
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(
        sorted_started_tasks(&env),
        ["b", "c", "d", "e", "slow", "slow"],
        "only the task of the killed worker is run again"
    );
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn respawned_worker_resumes_its_task() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("slow", BLOCKING_COMMAND, "owner = 'ann'")
        .task("next", "", "owner = 'ann'\nblocked_by = ['slow']")
        .write_run_file(&env);
    let text = std::fs::read_to_string(&file).unwrap();
    let file = env.write_file(
        "team.toml",
        text.replace("profile = \"worker\"", "profile = \"worker\"\nrestart = \"on-failure\""),
    );
    let run = run_until_blocked(&env, &file, &["--json"]);
    kill_worker(&env);
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(started_tasks(&env), ["slow", "slow", "next"]);
    env.shut_down();
}

#[test]
fn killed_daemon_is_restarted_and_no_task_runs_twice() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("slow", BLOCKING_COMMAND, "")
        .task("b", "", "")
        .task("next", "", "blocked_by = ['slow', 'b']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    kill_daemon(&env);
    unblock(&env);
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(sorted_started_tasks(&env), ["b", "next", "slow"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn repeatedly_dying_daemon_ends_the_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    (0..5).for_each(|_| kill_daemon(&env));
    env.kill_process(env.daemon_pid());
    let error = finish_run(run).expect_failure(69);
    assert!(error.contains("died 5 times within a minute") && error.contains("ann may still run"), "{error}");
    env.start_daemon();
    let run = start_run(&env, &file, &["--resume"]);
    unblock(&env);
    assert_eq!(finish_run(run).code, 0);
    assert_eq!(started_tasks(&env), ["slow"]);
    env.shut_down();
}

#[test]
fn down_ends_the_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("slow", BLOCKING_COMMAND, "owner = 'ann'")
        .task("next", "", "owner = 'bob'\nblocked_by = ['slow']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    let down = env.start_teamctl(["down"]);
    let error = finish_run(run).expect_failure(69);
    assert!(error.contains("teamd was stopped with teamctl down") && error.contains("--resume"), "{error}");
    unblock(&env);
    down.wait_with_output().unwrap();
    assert_eq!(env.teamctl(["status"]).code, 69, "no daemon was started");
    assert!(env.path("root/teams/survey/config.json").exists(), "{}", env.dump_state());
    env.start_daemon();
    let output = env.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(started_tasks(&env), ["slow", "next"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn killed_run_is_resumed() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("first", "", "")
        .task("slow", BLOCKING_COMMAND, "blocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    env.kill_process(run.id());
    assert_ne!(finish_run(run).code, 0);
    let error = env.teamctl(["run", &file]).expect_failure(73);
    assert!(error.contains("--resume"), "{error}");
    let told = format!(
        "no run drives the team any more, so failed tasks are not retried; go on with: teamctl run {file} --resume"
    );
    for args in [&["status"][..], &["why"], &["why", "ann"]] {
        let output = env.teamctl_with(args, &[]).expect_success();
        assert!(output.contains(&told), "{args:?}: {output}");
    }
    assert_eq!(
        env.json(["status"])["teams"][0]["interrupted_run"],
        json!({"file": file, "keeps_team": false})
    );
    let run = start_run(&env, &file, &["--resume", "--json"]);
    env.wait_until("a run drives the team again", || {
        (!env.teamctl(["status"]).stdout.contains("no run drives")).then_some(())
    });
    unblock(&env);
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(outcomes(&output.json()), ["first completed", "slow completed", "next completed"]);
    assert_eq!(started_tasks(&env), ["first", "slow", "next"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn killed_run_without_workers_is_resumed() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("first", "", "")
        .task("slow", BLOCKING_COMMAND, "owner = 'ann'\nblocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    env.kill_process(run.id());
    assert_ne!(finish_run(run).code, 0);
    env.kill_process(env.daemon_pid());
    kill_pane_process(&env, "ann");
    env.write_file("out/go", "");
    let output = env.teamctl_with(&["run", &file, "--resume", "--json"], &[("TMUX", &tmux_variable(&env))]);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(started_tasks(&env), ["first", "slow", "slow", "next"]);
    env.shut_down();
}

/// After a reboot, teamd suspends the members only when it has seen that their processes are gone.
#[test]
fn run_is_resumed_after_a_reboot() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("first", "", "owner = 'bob'")
        .task("slow", BLOCKING_COMMAND, "owner = 'ann'\nblocked_by = ['first']")
        .task("next", "", "owner = 'bob'\nblocked_by = ['slow']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &[]);
    env.reboot();
    assert_ne!(finish_run(run).code, 0);
    env.write_file("out/go", "");
    let output = env.teamctl_with(&["run", &file, "--resume", "--json"], &[("TMUX", &tmux_variable(&env))]);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(started_tasks(&env), ["first", "slow", "slow", "next"]);
    env.shut_down();
}

/// Kills the shim of the worker whose task is in progress. The task does not block when it is run
/// again.
fn kill_worker(env: &TestEnv) {
    env.write_file("out/go", "");
    let tasks = env.json(["task", "list"]);
    let task = tasks["tasks"].as_array().unwrap().iter().find(|task| task["status"] == "in_progress");
    let owner = task.unwrap()["owner"].as_str().unwrap().to_owned();
    kill_pane_process(env, &owner);
}

fn kill_pane_process(env: &TestEnv, name: &str) {
    let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let pid = panes.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
    env.kill_process(pid.parse().unwrap());
}

/// Kills the daemon and waits for the daemon that the run starts instead.
fn kill_daemon(env: &TestEnv) {
    let daemon = env.daemon_pid();
    env.kill_process(daemon);
    env.wait_until("the new daemon answers", || {
        let status = env.teamctl(["status", "--json"]);
        (status.code == 0 && status.json()["daemon"]["pid"] != daemon).then_some(())
    });
}
