//! Whatever is killed in the middle, what is completed never runs again.

use super::{
    HELD, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, sorted_started_tasks,
    start_run, started_tasks, tmux_variable, unblock,
};
use harness::TestEnv;

#[test]
fn task_of_a_killed_worker_is_taken_by_others() {
    let house = TestEnv::with_daemon();
    let tasks = ["b", "c", "d", "e"];
    let mut team = run_file(["ann", "bob"]).task("slow", HELD, "");
    for key in tasks {
        team = team.task(key, "", "blocked_by = ['slow']");
    }
    let run = run_until_blocked(&house, &team.write_run_file(&house), &["--json"]);
    kill_worker(&house);
    let ran = finish_run(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(
        sorted_started_tasks(&house),
        ["b", "c", "d", "e", "slow", "slow"],
        "none twice but the one it was in"
    );
    assert_team_deleted(&house);
    house.shut_down();
}

#[test]
fn respawned_worker_resumes_its_task() {
    let house = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("slow", HELD, "owner = 'ann'")
        .task("next", "", "owner = 'ann'\nblocked_by = ['slow']")
        .write_run_file(&house);
    let text = std::fs::read_to_string(&file).unwrap();
    let file = house.write_file(
        "team.toml",
        text.replace("profile = \"worker\"", "profile = \"worker\"\nrestart = \"on-failure\""),
    );
    let run = run_until_blocked(&house, &file, &["--json"]);
    kill_worker(&house);
    let ran = finish_run(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(started_tasks(&house), ["slow", "slow", "next"]);
    house.shut_down();
}

#[test]
fn killed_daemon_is_restarted_and_no_task_runs_twice() {
    let house = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("slow", HELD, "")
        .task("b", "", "")
        .task("next", "", "blocked_by = ['slow', 'b']")
        .write_run_file(&house);
    let run = run_until_blocked(&house, &file, &["--json"]);
    kill_daemon(&house);
    unblock(&house);
    let ran = finish_run(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(sorted_started_tasks(&house), ["b", "next", "slow"]);
    assert_team_deleted(&house);
    house.shut_down();
}

#[test]
fn repeatedly_dying_daemon_ends_the_run() {
    let house = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("slow", HELD, "").write_run_file(&house);
    let run = run_until_blocked(&house, &file, &[]);
    (0..5).for_each(|_| kill_daemon(&house));
    house.kill_process(house.daemon_pid());
    let said = finish_run(run).expect_failure(69);
    assert!(said.contains("died 5 times within a minute") && said.contains("ann may still run"), "{said}");
    house.start_daemon();
    let run = start_run(&house, &file, &["--resume"]);
    unblock(&house);
    assert_eq!(finish_run(run).code, 0);
    assert_eq!(started_tasks(&house), ["slow"]);
    house.shut_down();
}

#[test]
fn down_ends_the_run() {
    let house = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("slow", HELD, "owner = 'ann'")
        .task("next", "", "owner = 'bob'\nblocked_by = ['slow']")
        .write_run_file(&house);
    let run = run_until_blocked(&house, &file, &[]);
    let down = house.start_teamctl(["down"]);
    let said = finish_run(run).expect_failure(69);
    assert!(said.contains("teamd was stopped with teamctl down") && said.contains("--resume"), "{said}");
    unblock(&house);
    down.wait_with_output().unwrap();
    assert_eq!(house.teamctl(["status"]).code, 69, "no daemon was started");
    assert!(house.path("root/teams/survey/config.json").exists(), "{}", house.dump_state());
    house.start_daemon();
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(started_tasks(&house), ["slow", "next"]);
    assert_team_deleted(&house);
    house.shut_down();
}

#[test]
fn killed_run_is_resumed() {
    let house = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("first", "", "")
        .task("slow", HELD, "blocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .write_run_file(&house);
    let run = run_until_blocked(&house, &file, &[]);
    house.kill_process(run.id());
    assert_ne!(finish_run(run).code, 0);
    let said = house.teamctl(["run", &file]).expect_failure(73);
    assert!(said.contains("--resume"), "{said}");
    let run = start_run(&house, &file, &["--resume", "--json"]);
    unblock(&house);
    let ran = finish_run(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["first completed", "slow completed", "next completed"]);
    assert_eq!(started_tasks(&house), ["first", "slow", "next"]);
    assert_team_deleted(&house);
    house.shut_down();
}

#[test]
fn killed_run_without_workers_is_resumed() {
    let house = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("first", "", "")
        .task("slow", HELD, "owner = 'ann'\nblocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .write_run_file(&house);
    let run = run_until_blocked(&house, &file, &[]);
    house.kill_process(run.id());
    assert_ne!(finish_run(run).code, 0);
    house.kill_process(house.daemon_pid());
    kill_pane_process(&house, "ann");
    house.write_file("out/go", "");
    let ran = house.teamctl_with(&["run", &file, "--resume", "--json"], &[("TMUX", &tmux_variable(&house))]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(started_tasks(&house), ["first", "slow", "slow", "next"]);
    house.shut_down();
}

/// Kills the first process of the worker that is in the task, once it can't be held up any more.
fn kill_worker(house: &TestEnv) {
    house.write_file("out/go", "");
    let tasks = house.json(["task", "list"]);
    let busy = tasks["tasks"].as_array().unwrap().iter().find(|task| task["status"] == "in_progress");
    let owner = busy.unwrap()["owner"].as_str().unwrap().to_owned();
    kill_pane_process(house, &owner);
}

fn kill_pane_process(house: &TestEnv, name: &str) {
    let panes = house.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let pid = panes.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
    house.kill_process(pid.parse().unwrap());
}

/// Kills the daemon, and waits for the one that the run starts in its place.
fn kill_daemon(house: &TestEnv) {
    let daemon = house.daemon_pid();
    house.kill_process(daemon);
    house.wait_until("the next daemon answers", || {
        let status = house.teamctl(["status", "--json"]);
        (status.code == 0 && status.json()["daemon"]["pid"] != daemon).then_some(())
    });
}
