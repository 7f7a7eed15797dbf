//! Checks runs that end by themselves: the outcomes of their tasks, their exit code and their
//! output.

use super::{assert_team_deleted, outcomes, run_file, sorted_started_tasks, started_tasks, tmux_variable};
use harness::TestEnv;

#[test]
fn run_completes_and_deletes_the_team() {
    let env = TestEnv::new();
    let file = run_file(["ann", "bob", "cat"])
        .task("report", "cat out/log > out/report", "blocked_by = ['a', 'b']\nowner = 'bob'")
        .task("a", "", "owner = 'ann'\nmetadata = { priority = 1 }")
        .task("b", "", "description = 'two'")
        .write_run_file(&env);
    let output = env.teamctl_with(&["run", &file, "--json"], &[("TMUX", &tmux_variable(&env))]);
    assert_eq!(output.code, 0, "{output:#?}");
    let result = output.json();
    assert_eq!(outcomes(&result), ["report completed", "a completed", "b completed"]);
    assert_eq!((&result["completed"], &result["total"], &result["ok"]), (&3.into(), &3.into(), &true.into()));
    assert_eq!((&result["tasks"][0]["owner"], &result["tasks"][1]["owner"]), (&"bob".into(), &"ann".into()));
    assert_eq!(sorted_started_tasks(&env), ["a", "b", "report"]);
    assert_eq!(env.read("out/report").lines().count(), 3, "the task has run after both blockers");
    assert_team_deleted(&env);
    assert_eq!(env.teamctl(["status"]).code, 0, "the daemon is running");
    env.shut_down();
}

#[test]
fn output_depends_on_terminal_and_quiet() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("good", "", "").task("bad", "exit 3", "").write_run_file(&env);
    let output = env.teamctl(["run", &file]);
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(
        output.stdout.contains("ann@survey") && output.stdout.contains("1 of 2 tasks are completed."),
        "{output:#?}"
    );
    let row = output.stdout.lines().find(|line| line.starts_with("bad ")).unwrap();
    assert!(row.contains("ann") && row.contains("failed (exit 3"), "{row}");
    assert!(output.stdout.ends_with("see why: teamctl logs ann -t survey\n"), "{output:#?}");
    let quiet = env.teamctl(["run", &file, "-q"]);
    assert_eq!((quiet.code, quiet.stdout.lines().count()), (1, 2), "{quiet:#?}");
    assert!(quiet.stdout.lines().nth(1).is_some_and(|line| line.starts_with("bad ")), "{quiet:#?}");
    env.shut_down();
}

#[test]
fn tasks_blocked_by_a_failed_task_are_reported() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .task("bad", "exit 7", "")
        .task("next", "", "blocked_by = ['bad']")
        .task("last", "", "blocked_by = ['next']")
        .task("free", "", "")
        .write_run_file(&env);
    let output = env.teamctl(["run", &file, "--json"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let result = output.json();
    let outcomes = outcomes(&result);
    assert!(outcomes[0].starts_with("bad failed: exit 7"), "{outcomes:?}");
    assert_eq!(outcomes[1..3], ["next not_done: it waits for bad", "last not_done: it waits for next"]);
    assert_eq!(outcomes[3], "free completed");
    assert_eq!(sorted_started_tasks(&env), ["bad", "free"]);
    env.shut_down();
}

#[test]
fn failed_task_is_retried_by_policy() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann", "bob"])
        .policy("retries = 2")
        .task("shaky", "[ $(grep -c shaky out/log) -ge 3 ]", "owner = 'ann'")
        .task("next", "", "blocked_by = ['shaky']")
        .write_run_file(&env);
    let output = env.teamctl(["run", &file, "--json"]);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(started_tasks(&env), ["shaky", "shaky", "shaky", "next"]);
    assert_eq!(output.json()["tasks"][0]["owner"], "ann");
    let file = run_file(["ann"]).policy("retries = 2").task("never", "false", "").write_run_file(&env);
    assert_eq!(env.teamctl(["run", &file]).code, 1);
    assert_eq!(started_tasks(&env).iter().filter(|key| *key == "never").count(), 3);
    env.shut_down();
}

#[test]
fn task_added_by_an_agent_counts() {
    let env = TestEnv::with_daemon();
    let file = run_file(["ann"]).task("a", "teamctl task create added", "").write_run_file(&env);
    let output = env.teamctl(["run", &file, "--json"]);
    assert_eq!(output.code, 1, "the added task has no command: {output:#?}");
    let result = output.json();
    assert!(result["tasks"][1]["key"].is_null() && result["tasks"][1]["subject"] == "added", "{result:#}");
    assert_eq!((&result["total"], &result["completed"]), (&2.into(), &1.into()));
    env.shut_down();
}

#[test]
fn team_without_tasks_ends_when_idle() {
    let env = TestEnv::with_daemon();
    let file = env.write_file(
        "team.toml",
        "name = 'survey'\n[[member]]\nname = 'ann'\ncommand = ['sh', '-c', 'echo hi > out/hi']\n",
    );
    let output = env.teamctl(["run", &file, "--json"]);
    assert_eq!((output.code, env.read("out/hi").as_str()), (0, "hi\n"), "{output:#?}");
    assert_eq!(output.json()["total"], 0);
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn task_of_an_ended_owner_is_not_done() {
    let env = TestEnv::with_daemon();
    // eve exits at the second wake, which reports the task.
    let eve = "[[member]]\nname = 'eve'\ncommand = ['sh', '-c', 'read _ <&$TEAMD_WAKE_FD; read _ <&$TEAMD_WAKE_FD; exit 1']\n";
    let ann = "[[member]]\nname = 'ann'\nprofile = 'worker'\n";
    let hers = "[[task]]\nkey = 'hers'\nsubject = 's'\nowner = 'eve'\ncommand = 'true'\n";
    let next = "[[task]]\nkey = 'next'\nsubject = 's'\nblocked_by = ['hers']\ncommand = 'true'\n";
    let free = "[[task]]\nkey = 'free'\nsubject = 's'\ncommand = 'true'\n";
    let file = env.write_file("team.toml", format!("name = 'survey'\n{eve}{ann}{hers}{next}{free}"));
    let output = env.teamctl(["run", &file, "--json"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let outcomes = outcomes(&output.json());
    assert_eq!(outcomes[0], "hers not_done: its owner eve is gone");
    assert!(
        outcomes[1].starts_with("next not_done: it waits for") && outcomes[2] == "free completed",
        "{outcomes:?}"
    );
    assert_team_deleted(&env);
    env.shut_down();
}
