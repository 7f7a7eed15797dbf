//! Checks `teamctl report`, which says on one page what a team did: finished tasks, failures,
//! branches, costs, and what waits for a person.

use crate::worktrees::{env_with_repository, git, path_text, spawn, write_file};
use harness::{Facility, TestEnv};
use serde_json::{Value, json};

const PERMISSION: &str = r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"cat","tool_name":"Bash","tool_use_id":"t","description":"count the lines","input":{"command":"wc -l"}}"#;

/// Creates a task with a command, and returns its id when the event `event` of the task is in the
/// event log.
fn run_task(env: &TestEnv, owner: &str, subject: &str, command: &str, event: &str) -> String {
    let task = env.json(["task", "create", subject, "--owner", owner, "--command", command]);
    let id = task["task"]["id"].as_str().unwrap().to_owned();
    env.wait_until(&format!("{event} of task {id} is logged"), || {
        env.events().iter().any(|line| line["event"] == event && line["task"] == *id).then_some(())
    });
    id
}

fn wait_for_event(env: &TestEnv, event: &str, member: &str) {
    env.wait_until(&format!("{event} of {member} is logged"), || {
        env.events().iter().any(|line| line["event"] == event && line["member"] == member).then_some(())
    });
}

fn subjects(report: &Value) -> Vec<&str> {
    report["tasks"].as_array().unwrap().iter().map(|task| task["subject"].as_str().unwrap()).collect()
}

/// A team whose members ann and bob have worktrees: ann has committed twice and left a file, bob's
/// task failed, and bob was killed. cat has an open request.
fn env_after_a_night() -> TestEnv {
    let env = env_with_repository();
    let repository = env.path("repo");
    let ann_tree = spawn(&env, "ann", &repository);
    spawn(&env, "bob", &repository);
    env.teamctl(["spawn", "cat", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let commits = "for i in 1 2; do echo $i >>a; git commit --quiet --all --message \"step $i\"; done";
    run_task(&env, "ann", "change the lexer", commits, "task_completed");
    run_task(&env, "bob", "merge", "echo no such branch >&2; exit 3", "task_failed");
    write_file(&ann_tree.join("notes"), "x\n");
    let request = ["ask", "cat", PERMISSION];
    let status = env.command(harness::programs().join("scripted-agent")).args(request).status();
    assert!(status.unwrap().success());
    wait_for_event(&env, "request_opened", "cat");
    env.teamctl(["kill", "bob"]).expect_success();
    wait_for_event(&env, "member_exited", "bob");
    env
}

#[test]
fn page_shows_a_night_with_and_without_a_daemon() {
    let env = env_after_a_night();
    let repository = env.path("repo").display().to_string();
    let command = format!("git -C {repository} log --oneline main..teamd/survey/ann");
    let tree = env.path("repo.worktrees/survey-ann").display().to_string();
    let facts = [
        "# survey, from 2".to_owned(),
        "## Tasks: 1 completed, 1 failed, 0 open".to_owned(),
        "(merge) of bob: exit 3: no such branch".to_owned(),
        "- bob ended, killed: killed".to_owned(),
        "See why: teamctl logs bob -t survey".to_owned(),
        "Then try it again: `teamctl task release ".to_owned(),
        "- cat asks to use Bash: count the lines (perm-1-abcdefg".to_owned(),
        "See and answer the requests: `teamctl requests`".to_owned(),
        "- ann, teamd/survey/ann: 2 new commits, 2 not in main\n  - step 2\n  - step 1\n".to_owned(),
        format!("  `{command}`"),
        format!("  not committed in {tree}: untracked: notes"),
        "- bob, teamd/survey/bob: 0 new commits, nothing that main lacks".to_owned(),
        "## Cost: 2 turns\n\nann: 1 turn; bob: 1 turn".to_owned(),
    ];
    let check_page = || {
        let page = env.teamctl(["report"]).expect_success();
        for fact in &facts {
            assert!(page.contains(fact), "{fact} is not in:\n{page}");
        }
        let row = page.lines().find(|line| line.ends_with("completed  change the lexer"));
        assert!(row.is_some_and(|row| row.contains("  ann  ")), "{page}");
        page
    };
    let page = check_page();
    assert!(page.lines().count() <= 40 && !page.contains("teamd is not running"), "{page}");
    let log = env.command("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 2, "the command shows the commits");
    env.kill_process(env.daemon_pid());
    let page = check_page();
    let line = "- teamd is not running: ann is not supervised, and is not woken. Likewise: cat. `teamctl up`";
    assert!(page.contains(line), "{page}");
    env.start_daemon();
    env.shut_down();
}

#[test]
fn object_has_the_same_facts() {
    let env = env_after_a_night();
    let report = env.json(["report"]);
    assert_eq!(
        (&report["ok"], &report["team"], &report["since"]),
        (&json!(true), &json!("survey"), &Value::Null)
    );
    assert_eq!(subjects(&report), ["change the lexer", "merge"]);
    assert_eq!(report["task_counts"], json!({"completed": 1, "failed": 1, "open": 0}));
    let failures = report["failures"].as_array().unwrap();
    let kinds: Vec<&Value> = failures.iter().map(|failure| &failure["kind"]).collect();
    assert_eq!(kinds, ["task", "exit"]);
    assert_eq!((&failures[0]["owner"], &failures[0]["now"]), (&json!("bob"), &json!("failed")));
    assert_eq!((&failures[1]["member"], &failures[1]["outcome"]), (&json!("bob"), &json!("killed")));
    assert_eq!(report["waiting"]["requests"], env.json(["requests"])["requests"]);
    let [ann, bob] = report["branches"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(
        (&ann["member"], &ann["state"], &ann["commits"]),
        (&json!("ann"), &json!("present"), &json!(2))
    );
    assert_eq!((&ann["unmerged"], &ann["target"]), (&json!(2), &json!("main")));
    assert_eq!(
        (&ann["newest"][0]["subject"], &ann["uncommitted"]),
        (&json!("step 2"), &json!(["untracked: notes"]))
    );
    assert_eq!((&bob["unmerged"], &bob["command"]), (&json!(0), &Value::Null));
    assert_eq!(report["cost"]["turns"], 2);
    // A person merges the branch, and deletes the other one.
    git(&env, &env.path("repo"), &["merge", "--quiet", "teamd/survey/ann"]);
    git(
        &env,
        &env.path("repo"),
        &["worktree", "remove", "--force", path_text(&env.path("repo.worktrees/survey-bob"))],
    );
    git(&env, &env.path("repo"), &["branch", "--quiet", "-D", "teamd/survey/bob"]);
    let report = env.json(["report"]);
    let [ann, bob] = report["branches"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&ann["commits"], &ann["unmerged"]), (&json!(2), &json!(0)));
    assert_eq!(bob["state"], "missing");
    env.shut_down();
}

#[test]
fn since_leaves_out_what_was_before() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    run_task(&env, "ann", "early failure", "exit 1", "task_failed");
    run_task(&env, "ann", "early", "true", "task_completed");
    let late = run_task(&env, "ann", "late", "true", "task_completed");
    let started =
        env.events().into_iter().find(|event| event["event"] == "task_started" && event["task"] == *late);
    let time = started.unwrap()["time"].as_str().unwrap().to_owned();
    let report = env.json(["report", "--since", &time]);
    assert_eq!((subjects(&report), &report["failures"]), (vec!["late"], &json!([])), "{report}");
    assert!(report["since"].is_u64(), "{report}");
    assert_eq!(subjects(&env.json(["report", "--since", "1h"])).len(), 3);
    let page = env.teamctl(["report", "--since", "0s"]).expect_success();
    assert!(page.contains("## Tasks: 0 completed, 0 failed, 1 open\n\nNothing failed."), "{page}");
    let output = env.teamctl(["report", "--since", "yesterday"]);
    let reason =
        "cannot read the duration yesterday: write it as 500ms, 5s, 10m or 2h, or as a time like 2026-02-13";
    assert!(output.code == 64 && output.stderr.contains(reason), "{output:?}");
    let output = env.teamctl(["report", "--since", "2999-01-01"]);
    assert!(output.code == 64 && output.stderr.contains("this time is in the future"), "{output:?}");
    env.shut_down();
}

#[test]
fn deleted_team_is_reported_from_the_event_log() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    run_task(&env, "ann", "count", "true", "task_completed");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.wait_until("the deletion is logged", || {
        env.events().iter().any(|event| event["event"] == "team_deleted").then_some(())
    });
    let error = env.teamctl(["report"]).expect_failure(67);
    assert!(error.contains("teamctl report -t survey"), "{error}");
    let page = env.teamctl(["report", "-t", "survey"]).expect_success();
    assert!(page.contains("The team was deleted at 2") && page.contains("are not known any more"), "{page}");
    assert!(page.contains("completed  count") && !page.contains("## Branches"), "{page}");
    let report = env.json(["report", "-t", "survey"]);
    assert_eq!((&report["waiting"], &report["cost"]["usage"]), (&Value::Null, &Value::Null));
    assert_eq!((subjects(&report), report["deleted_at"].is_u64()), (vec!["count"], true));
    env.teamctl(["create", "survey"]).expect_success();
    assert_eq!(env.json(["report"])["tasks"], json!([]), "a new team has the name");
    let error = env.teamctl(["report", "-t", "surveys"]).expect_failure(67);
    assert!(
        error.contains("cannot find the team surveys") && error.contains("did you mean survey"),
        "{error}"
    );
    env.shut_down();
}

#[test]
fn cost_is_known_without_a_daemon() {
    let env = TestEnv::with_team();
    let usage = r#"{"usage":{"out":500},"cost":0.5}"#;
    let profile = format!(
        "delivery = 'turn'\nprogram = 'sh'\nargs = ['-c', 'echo \"$0\"; : {{prompt}}', '{usage}']\nusage = {{ tokens = ['usage.out'], cost = 'cost' }}\n"
    );
    env.write_profile("counter", &profile);
    env.teamctl(["spawn", "ann", "--profile", "counter", "--prompt", "go"]).expect_success();
    let cost = || env.json(["report"])["cost"].clone();
    let expected = json!({"tokens": 500, "microdollars": 500_000});
    env.wait_until("the usage is known", || (cost()["usage"] == expected).then_some(()));
    let page = env.teamctl(["report"]).expect_success();
    assert!(page.contains("## Cost: 1 turn, 500 tokens, $0.50\n\nann: 1 turn, 500 tokens, $0.50"), "{page}");
    env.kill_process(env.daemon_pid());
    assert_eq!(cost()["members"], json!([{"name": "ann", "turns": 1, "usage": expected}]));
    env.start_daemon();
    env.shut_down();
}

#[test]
fn row_of_a_task_is_that_of_the_run() {
    let env = TestEnv::with_daemon();
    let file = env.write_file(
        "team.toml",
        "name = \"survey\"\n[[member]]\nname = \"ann\"\nprofile = \"worker\"\n\
         [[task]]\nkey = \"good\"\nsubject = \"do it\"\ncommand = \"true\"\n",
    );
    let run = env.teamctl(["run", &file, "--keep-team"]).expect_success();
    let row = run.lines().find(|line| line.starts_with("good  ")).unwrap();
    let page = env.teamctl(["report"]).expect_success();
    // The daemon may not see that this short task begins.
    if !harness::skips_without(Facility::NamesInFileEvents) {
        assert!(page.contains(row), "{row} is not in:\n{page}");
    }
    env.shut_down();
}
