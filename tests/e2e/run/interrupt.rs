//! A run that is to end before its tasks are done.

use super::{
    HELD, assert_team_deleted, finish_run, outcomes, run_file, run_until_blocked, started_tasks, unblock,
    wait_until_blocked,
};
use harness::TestEnv;
use serde_json::Value;

fn signal(pid: u32, name: &str) {
    std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
}

/// `teamctl run …` in a pane of its own, which stays when it has ended.
fn run_in_pane(env: &TestEnv, words: &str) -> String {
    // Into a file, since nobody is told of what comes on the screen.
    let run = format!("trap : INT; teamctl run {words}; echo \"exit $?\" >out/ended; read _");
    env.tmux(["new-session", "-d", "-x90", "-y30", "-PF", "#{pane_id}", "--", "sh", "-c", &run])
}

fn screen(env: &TestEnv, pane: &str) -> String {
    env.tmux(["capture-pane", "-p", "-t", pane])
}

#[test]
fn ctrl_c_lets_current_turns_finish() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"])
        .task("slow", HELD, "")
        .task("next", "", "blocked_by = ['slow']")
        .write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    signal(run.id(), "INT");
    env.wait_until("it is asked", || {
        let asked =
            |message: &Value| message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
        env.inbox("survey", "ann").iter().any(asked).then_some(())
    });
    unblock(&env);
    let ran = finish_run(run);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let result = ran.json();
    assert_eq!(outcomes(&result)[0], "slow completed");
    assert!(!started_tasks(&env).contains(&"next".to_owned()));
    assert_eq!((&result["ok"], &result["error"]["kind"]), (&false.into(), &"partial".into()));
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn progress_table_continues_during_shutdown() {
    let env = TestEnv::with_daemon();
    env.create_gate("out/gate");
    let file = run_file(["ann"]).task("slow", HELD, "").write_run_file(&env);
    let pane = run_in_pane(&env, &file);
    wait_until_blocked(&env);
    env.tmux(["send-keys", "-t", &pane, "C-c"]);
    let stops = "stopping: the members are asked, 30s at most; Ctrl-C again ends it at once";
    let row = || {
        let screen = screen(&env, &pane);
        let row = screen.lines().find(|line| line.starts_with("running "))?.to_owned();
        screen.contains(stops).then_some(row)
    };
    let first = env.wait_until("it says that it stops", row);
    env.wait_until("the clock goes on", || row().filter(|row| *row != first));
    unblock(&env);
    env.wait_until("it has ended", || (env.read("out/ended") == "exit 1\n").then_some(()));
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn second_ctrl_c_ends_the_run() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("slow", HELD, "").write_run_file(&env);
    let run = run_until_blocked(&env, &file, &["--json"]);
    signal(run.id(), "INT");
    env.wait_until("it is asked", || (env.member("ann")?["lifecycle"] == "stopping").then_some(()));
    signal(run.id(), "TERM");
    let ran = finish_run(run);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["slow not_done: it was not finished"]);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn run_timeout_ends_the_run() {
    let env = TestEnv::with_daemon();
    env.create_gate("out/gate");
    let file = run_file(["ann"]).policy("grace = '100ms'").task("slow", HELD, "").write_run_file(&env);
    let ran = env.teamctl(["run", &file, "--timeout", "2s", "--json"]);
    assert_eq!(ran.code, 75, "{ran:#?}");
    assert_eq!(ran.json()["error"]["kind"], "timeout");
    assert_team_deleted(&env);
    let ran = env.teamctl(["run", &file, "--timeout", "1ms"]);
    let said = "the time is over: the members are asked, 0.1s at most; Ctrl-C ends it at once";
    assert!(ran.code == 75 && ran.stdout.contains(said), "{ran:#?}");
    env.shut_down();
}
