//! Whatever is killed in the middle, what is completed never runs again.

use super::{HELD, ended, gone, let_go, log, outcomes, run_until_held, running, sorted, team, tmux};
use harness::House;

#[test]
fn a_worker_that_is_killed_leaves_its_task_to_the_others() {
    let house = House::start();
    let tasks = ["b", "c", "d", "e"];
    let mut team = team(["ann", "bob"]).task("slow", HELD, "");
    for key in tasks {
        team = team.task(key, "", "blocked_by = ['slow']");
    }
    let run = run_until_held(&house, &team.in_house(&house), &["--json"]);
    kill_worker(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(sorted(&house), ["b", "c", "d", "e", "slow", "slow"], "none twice but the one it was in");
    gone(&house);
    house.end();
}

#[test]
fn a_worker_that_is_killed_and_comes_back_takes_up_its_task() {
    let house = House::start();
    let file = team(["ann"])
        .task("slow", HELD, "owner = 'ann'")
        .task("next", "", "owner = 'ann'\nblocked_by = ['slow']")
        .in_house(&house);
    let text = std::fs::read_to_string(&file).unwrap();
    let file = house
        .put("team.toml", text.replace("agent = \"worker\"", "agent = \"worker\"\nrestart = \"on-failure\""));
    let run = run_until_held(&house, &file, &["--json"]);
    kill_worker(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["slow", "slow", "next"]);
    house.end();
}

#[test]
fn a_daemon_that_is_killed_is_started_again_and_nothing_runs_twice() {
    let house = House::start();
    let file = team(["ann", "bob"])
        .task("slow", HELD, "")
        .task("b", "", "")
        .task("next", "", "blocked_by = ['slow', 'b']")
        .in_house(&house);
    let run = run_until_held(&house, &file, &["--json"]);
    kill_daemon(&house);
    let_go(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(sorted(&house), ["b", "next", "slow"]);
    gone(&house);
    house.end();
}

#[test]
fn a_daemon_that_keeps_dying_is_given_up_and_the_team_is_left_as_it_is() {
    let house = House::start();
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let run = run_until_held(&house, &file, &[]);
    (0..5).for_each(|_| kill_daemon(&house));
    house.kill_9(house.daemon());
    let said = ended(run).fails(69);
    assert!(said.contains("died 5 times within a minute") && said.contains("ann may still run"), "{said}");
    house.start_daemon();
    let run = running(&house, &file, &["--resume"]);
    let_go(&house);
    assert_eq!(ended(run).code, 0);
    assert_eq!(log(&house), ["slow"]);
    house.end();
}

#[test]
fn a_daemon_that_is_taken_down_stays_down_and_the_run_ends() {
    let house = House::start();
    let file = team(["ann", "bob"])
        .task("slow", HELD, "owner = 'ann'")
        .task("next", "", "owner = 'bob'\nblocked_by = ['slow']")
        .in_house(&house);
    let run = run_until_held(&house, &file, &[]);
    let down = house.teamctl_running(["down"]);
    let said = ended(run).fails(69);
    assert!(said.contains("somebody has taken teamd down") && said.contains("--resume"), "{said}");
    let_go(&house);
    down.wait_with_output().unwrap();
    assert_eq!(house.teamctl(["status"]).code, 69, "no daemon was started");
    assert!(house.path("root/teams/survey/config.json").exists(), "{}", house.portrait());
    house.start_daemon();
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["slow", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn a_run_that_is_killed_is_taken_up_where_it_was() {
    let house = House::start();
    let file = team(["ann", "bob"])
        .task("first", "", "")
        .task("slow", HELD, "blocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .in_house(&house);
    let run = run_until_held(&house, &file, &[]);
    house.kill_9(run.id());
    assert_ne!(ended(run).code, 0);
    let said = house.teamctl(["run", &file]).fails(73);
    assert!(said.contains("--resume"), "{said}");
    let run = running(&house, &file, &["--resume", "--json"]);
    let_go(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["first completed", "slow completed", "next completed"]);
    assert_eq!(log(&house), ["first", "slow", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn a_run_that_is_killed_with_all_its_workers_is_taken_up_too() {
    let house = House::start();
    let file = team(["ann"])
        .task("first", "", "")
        .task("slow", HELD, "owner = 'ann'\nblocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .in_house(&house);
    let run = run_until_held(&house, &file, &[]);
    house.kill_9(run.id());
    assert_ne!(ended(run).code, 0);
    house.kill_9(house.daemon());
    kill_pane_process(&house, "ann");
    house.put("out/go", "");
    let ran = house.teamctl_with(&["run", &file, "--resume", "--json"], &[("TMUX", &tmux(&house))]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["first", "slow", "slow", "next"]);
    house.end();
}

/// Kills the first process of the worker that is in the task, once it can't be held up any more.
fn kill_worker(house: &House) {
    house.put("out/go", "");
    let tasks = house.json(["task", "list"]);
    let busy = tasks["tasks"].as_array().unwrap().iter().find(|task| task["status"] == "in_progress");
    let owner = busy.unwrap()["owner"].as_str().unwrap().to_owned();
    kill_pane_process(house, &owner);
}

fn kill_pane_process(house: &House, name: &str) {
    let panes = house.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let pid = panes.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
    house.kill_9(pid.parse().unwrap());
}

/// Kills the daemon, and waits for the one that the run starts in its place.
fn kill_daemon(house: &House) {
    let daemon = house.daemon();
    house.kill_9(daemon);
    house.until("the next daemon answers", || {
        let status = house.teamctl(["status", "--json"]);
        (status.code == 0 && status.json()["daemon"]["pid"] != daemon).then_some(())
    });
}
