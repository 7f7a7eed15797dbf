//! Members of `kind = "once"`: each is started for one task, and ends with it.

use super::{assert_team_deleted, finish_run, outcomes, start_run};
use crate::worktrees::{create_repository, git_variables};
use harness::TestEnv;
use serde_json::{Value, json};

/// Writes the profile `answerer`, whose turns run `script`.
fn write_profile(env: &TestEnv, script: &str) {
    let script =
        env.write_script("out/answerer", &format!("#!/bin/sh\necho $TEAMD_MEMBER >>out/started\n{script}\n"));
    let profile = format!(
        "delivery = 'turn'\nprogram = '{}'\nargs = []\nreply = {{ key = 'text' }}\n\
         usage = {{ tokens = ['tokens'], scope = 'turn' }}\n",
        script.display()
    );
    env.write_profile("answerer", &profile);
}

/// A run file with the worker ann, and with eve for the task `review`, which waits for the task `build`.
fn write_run_file(env: &TestEnv, build: &str, more: &str) -> String {
    env.write_file(
        "team.toml",
        format!(
            "name = 'survey'\n[policy]\nretries = 1\n[[member]]\nname = 'ann'\nprofile = 'worker'\n\
             [[member]]\nname = 'eve'\nprofile = 'answerer'\nkind = 'once'\n\
             [[task]]\nkey = 'build'\nsubject = 'build'\ncommand = '{build}'\nowner = 'ann'\n\
             [[task]]\nkey = 'review'\nsubject = 'review it'\nowner = 'eve'\nblocked_by = ['build']\n{more}"
        ),
    )
}

fn lifecycle(env: &TestEnv, name: &str) -> Option<String> {
    Some(env.member(name)?["lifecycle"].as_str()?.to_owned())
}

#[test]
fn member_starts_with_its_task_answers_and_ends() {
    let env = TestEnv::with_daemon();
    write_profile(&env, "read line; echo '{\"text\":\"fine\",\"tokens\":7}'");
    let (first, last) = (env.create_gate("out/first"), env.create_gate("out/last"));
    let more = format!(
        "[[task]]\nkey = 'after'\nsubject = 'after'\ncommand = 'read _ <{last}'\nblocked_by = ['review']\n\
         [[task]]\nkey = 'open'\nsubject = 'open'\ncommand = 'true'\nblocked_by = ['review']\n"
    );
    let file = write_run_file(&env, &format!("echo >out/begun; read _ <{first}"), &more);
    let run = start_run(&env, &file, &["--json", "--keep-team"]);
    env.wait_until("the first task has begun", || env.path("out/begun").exists().then_some(()));
    assert_eq!(env.member("eve"), None, "the task of eve cannot start");
    env.open_gate("out/first");
    env.wait_until("eve has ended", || {
        let has_run = env.read("out/started") == "eve\n";
        (has_run && env.member("eve").is_none()).then_some(())
    });
    assert_eq!(lifecycle(&env, "ann").as_deref(), Some("running"));
    env.open_gate("out/last");
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    let result = output.json();
    assert_eq!(
        outcomes(&result),
        ["build completed", "review completed", "after completed", "open completed"]
    );
    let review = &result["tasks"][1];
    assert_eq!((&review["owner"], &review["answer"]), (&json!("eve"), &json!("fine")));
    assert_eq!(result["tasks"][3]["owner"], "ann", "eve claims no other task");
    assert_eq!(env.read("out/started"), "eve\n");
    let page = env.teamctl(["report", "-t", "survey"]).expect_success();
    assert!(page.contains("eve: 1 turn, 7 tokens"), "{page}");
    env.shut_down();
}

#[test]
fn failed_task_is_retried_and_a_killed_member_is_started_again() {
    let env = TestEnv::with_daemon();
    let once = "[ -e out/again ] || { echo >out/again; exit 3; }; echo '{\"text\":\"second\"}'";
    write_profile(&env, once);
    let file = write_run_file(&env, "true", "");
    let result = env.teamctl(["run", &file, "--json"]).json();
    assert_eq!(outcomes(&result), ["build completed", "review completed"], "{result:#}");
    assert_eq!(result["tasks"][1]["answer"], "second");
    assert_team_deleted(&env);

    std::fs::remove_file(env.path("out/started")).unwrap();
    let gate = env.create_gate("out/gate");
    let third = "echo '{\"text\":\"third\"}'";
    write_profile(&env, &format!("[ $(wc -l <out/started) -gt 1 ] || read _ <{gate}; {third}"));
    let run = start_run(&env, &file, &["--json"]);
    env.wait_until("eve works", || (env.read("out/started") == "eve\n").then_some(()));
    let panes = env.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let pid = panes.lines().find_map(|line| line.strip_prefix("eve ")).unwrap().parse().unwrap();
    env.kill_process(pid);
    let output = finish_run(run);
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(output.json()["tasks"][1]["answer"], "third");
    assert_eq!(env.read("out/started"), "eve\neve\n");
    env.shut_down();
}

/// The repository of its worktree is gone when its task can start.
#[test]
fn member_that_cannot_start_fails_its_task_and_the_run_goes_on() {
    let mut env = TestEnv::new();
    env.variables = git_variables();
    env.start_daemon();
    write_profile(&env, "exit 1");
    let repository = create_repository(&env, "repo").display().to_string();
    let more = "[[task]]\nkey = 'other'\nsubject = 'other'\ncommand = 'true'\nblocked_by = ['build']\n";
    let file = write_run_file(&env, &format!("rm -rf {repository}/.git"), more);
    let once = format!("kind = 'once'\nworktree = true\ncwd = '{repository}'");
    env.write_file("team.toml", env.read("team.toml").replace("kind = 'once'", &once));
    let output = env.teamctl(["run", &file, "--json", "--keep-team"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let result = output.json();
    let outcomes = outcomes(&result);
    assert!(outcomes[1].starts_with("review failed: ") && outcomes[1].contains(&repository), "{outcomes:?}");
    assert_eq!((outcomes[0].as_str(), outcomes[2].as_str()), ("build completed", "other completed"));
    assert_eq!(result["tasks"][1]["owner"], "eve");
    let id = result["tasks"][1]["id"].as_str().unwrap();
    let task: Value = serde_json::from_str(&env.read(&format!("root/tasks/survey/{id}.json"))).unwrap();
    assert_eq!(task["metadata"]["retries"], 1, "it was tried again: {task:#}");
    assert_eq!(env.read("out/started"), "");
    env.shut_down();
}

#[test]
fn run_that_was_killed_is_resumed_with_its_member() {
    let env = TestEnv::with_daemon();
    let gate = env.create_gate("out/gate");
    write_profile(&env, &format!("read _ <{gate}; echo '{{\"text\":\"late\"}}'"));
    let file = write_run_file(&env, "true", "");
    let mut run = start_run(&env, &file, &["--json"]);
    env.wait_until("eve works", || (env.read("out/started") == "eve\n").then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    let resumed = start_run(&env, &file, &["--json", "--resume"]);
    env.open_gate("out/gate");
    let output = finish_run(resumed);
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(!output.stderr.contains("differs"), "{output:#?}");
    assert_eq!(
        (&output.json()["tasks"][1]["answer"], env.read("out/started").as_str()),
        (&json!("late"), "eve\n")
    );
    assert_team_deleted(&env);
    env.shut_down();
}

#[test]
fn member_whose_task_can_never_start_is_not_started() {
    let env = TestEnv::with_daemon();
    write_profile(&env, "exit 1");
    let output = env.teamctl(["run", &write_run_file(&env, "exit 4", ""), "--json"]);
    assert_eq!(output.code, 1);
    let result = output.json();
    assert!(outcomes(&result)[1].starts_with("review not_done: it waits for build"), "{result:#}");
    assert_eq!((result["tasks"][1]["answer"].clone(), env.read("out/started")), (Value::Null, String::new()));
    env.shut_down();
}

#[test]
fn errors_of_the_kind_name_line_and_column() {
    let env = TestEnv::new();
    write_profile(&env, "true");
    let member = |name: &str, more: &str| format!("[[member]]\nname = '{name}'\n{more}\n");
    let task = |key: &str, more: &str| format!("[[task]]\nkey = '{key}'\nsubject = 's'\n{more}\n");
    let errors = |members: &[String]| {
        let file = env.write_file("team.toml", format!("name = 'survey'\n{}", members.concat()));
        let output = env.teamctl(["run", &file]);
        assert_eq!(output.code, 65, "{output:#?}");
        output.stderr.replace(&file, "F")
    };
    let once = "profile = 'answerer'\nkind = 'once'";
    let two = errors(&[member("eve", once), task("a", "owner = 'eve'"), task("b", "owner = 'eve'")]);
    assert!(two.contains("F:5:1: a member of kind \"once\" owns one task, and eve owns 2"), "{two}");
    let none = errors(&[member("eve", once), task("a", "")]);
    assert!(none.contains("F:5:1: ") && none.contains("owns 0"), "{none}");
    assert!(none.contains("F:6:1: a task needs the key owner"), "{none}");
    let pull = errors(&[member("eve", "command = ['sh']\nkind = 'once'"), task("a", "owner = 'eve'")]);
    assert!(pull.contains("F:5:1: kind = \"once\" needs a profile with delivery turn"), "{pull}");
    let other = errors(&[member("eve", "profile = 'answerer'\nkind = 'twice'"), task("a", "owner = 'eve'")]);
    assert!(other.contains("F:5:8: ") && other.contains("once"), "{other}");
    env.shut_down();
}
