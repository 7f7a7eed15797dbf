//! Checks runs that are ended by Ctrl-C, a signal or a timeout before their tasks are done.

use super::{
    BLOCKING_COMMAND, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, started_tasks,
    unblock, wait_until_blocked,
};
use harness::TestEnv;
use serde_json::Value;

fn signal(pid: u32, name: &str) {
    std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
}

/// Starts `teamctl run` in a pane of its own, which stays open when the run has ended.
fn run_in_pane(env: &TestEnv, args: &str) -> String {
    // The exit code goes to a file, because `wait_until` does not notice new text on the screen.
    let run = format!("trap : INT; teamctl run {args}; echo \"exit $?\" >out/ended; read _");
    env.tmux(["new-session", "-d", "-x90", "-y30", "-PF", "#{pane_id}", "--", "sh", "-c", &run])
}

fn screen(env: &TestEnv, pane: &str) -> String {
    env.tmux(["capture-pane", "-p", "-t", pane])
}

#[test]
fn ctrl_c_lets_current_turns_finish() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("slow", BLOCKING_COMMAND, "")
        .task("next", "", "blocked_by = ['slow']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    signal(run.id(), "INT");
    env.wait_until("ann has a shutdown request", || {
        let is_shutdown_request =
            |message: &Value| message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
        env.inbox("survey", "ann").iter().any(is_shutdown_request).then_some(())
    });
    unblock(&env);
    let output = finish_run(run);
    assert_eq!(output.code, 1, "{output:#?}");
    let result = output.json();
    assert_eq!(outcomes(&result)[0], "slow completed");
    assert!(!started_tasks(&env).contains(&"next".to_owned()));
    assert_eq!((&result["ok"], &result["error"]["kind"]), (&false.into(), &"partial".into()));
    let help = result["error"]["help"].as_str().unwrap();
    assert!(help.contains(&format!("the team is deleted; to begin anew: teamctl run {file}")), "{help}");
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn progress_table_continues_during_shutdown() {
    let env = TestEnv::with_daemon();
    env.create_gate("out/gate");
    let file = run_file(["ann"]).task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let pane = run_in_pane(&env, &file);
    wait_until_blocked(&env);
    env.tmux(["send-keys", "-t", &pane, "C-c"]);
    let message = "stopping: the members are asked, 30s at most; Ctrl-C again ends it at once";
    let running_row = || {
        let screen = screen(&env, &pane);
        let row = screen.lines().find(|line| line.starts_with("running "))?.to_owned();
        screen.contains(message).then_some(row)
    };
    let first = env.wait_until("the screen shows that the run stops", running_row);
    env.wait_until("the table is updated", || running_row().filter(|row| *row != first));
    unblock(&env);
    env.wait_until("the run has ended with 1", || (env.read("out/ended") == "exit 1\n").then_some(()));
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn second_ctrl_c_ends_the_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    signal(run.id(), "INT");
    env.wait_until("ann is stopping", || (env.member("ann")?["lifecycle"] == "stopping").then_some(()));
    signal(run.id(), "TERM");
    let output = finish_run(run);
    assert_eq!(output.code, 1, "{output:#?}");
    let cut_off = "it was cut off: the run was stopped, and its worker was killed at a second stop";
    assert_eq!(outcomes(&output.json()), [format!("slow not_done: {cut_off}")]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn stopped_run_of_a_kept_team_names_the_command_that_goes_on() {
    let env = TestEnv::with_daemon();
    let file =
        run_file(["ann"]).policy("grace = '100ms'").task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json", "--keep-team"]);
    signal(run.id(), "INT");
    let output = finish_run(run);
    let result = output.json();
    assert_eq!(
        result["error"]["help"].as_str().unwrap(),
        format!("the team stays; go on with it: teamctl run {file} --resume --keep-team")
    );
    let cut_off = "it was cut off: the run was stopped, and the grace period of 0.1s passed";
    assert_eq!(outcomes(&result), [format!("slow not_done: {cut_off}")]);
    env.write_file("out/go", "");
    env.teamctl(["run", &file, "--resume"]).expect_success();
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn run_timeout_ends_the_run() {
    let env = TestEnv::with_daemon();
    env.create_gate("out/gate");
    let out = env.path("out/told").display().to_string();
    let script = env.write_script("tell", &format!("#!/bin/sh\necho \"$1\" >>{out}\n"));
    let config = format!("notify_command = ['{}', '{{text}}']\n", script.display());
    env.write_file("home/.config/teamd/config.toml", config);
    let file =
        run_file(["ann"]).policy("grace = '100ms'").task("slow", BLOCKING_COMMAND, "").write_run_file(&env);
    let output = env.teamctl(["run", &file, "--timeout", "2s", "--json"]);
    assert_eq!(output.code, 75, "{output:#?}");
    assert_eq!(output.json()["error"]["kind"], "timeout");
    let notice = "the time of the run of survey is over: 0 of 1 tasks are completed\n";
    assert!(env.read("out/told").contains(notice), "{}", env.read("out/told"));
    assert_team_deleted(&env);
    let output = env.teamctl(["run", &file, "--timeout", "1ms"]);
    let message = "the time is over: the members are asked, 0.1s at most; Ctrl-C ends it at once";
    assert!(output.code == 75 && output.stdout.contains(message), "{output:#?}");
    env.shut_down();
}
