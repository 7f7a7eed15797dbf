//! A teammate's life, the same in a pane, in a window of its own and without either.

use harness::TestEnv;
use serde_json::Value;

const BACKENDS: [&str; 3] = ["tmux", "window", "in-process"];

/// The story on an environment of its own for each backend.
fn on_all_backends(story: fn(&TestEnv, &str)) {
    for backend in BACKENDS {
        let env = TestEnv::with_team();
        story(&env, backend);
        env.shut_down();
    }
}

fn spawn(env: &TestEnv, backend: &str, more: &[&str]) -> Value {
    let all = [&["--json", "spawn", "ann", "--profile", "worker", "--backend", backend], more].concat();
    let ran = env.teamctl_with(&all, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

fn create_task(env: &TestEnv, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let made = env.json(["task", "create", "do it", "--metadata", &metadata]);
    made["task"]["id"].as_str().unwrap().to_owned()
}

fn task_details(env: &TestEnv, id: &str) -> Value {
    env.json(["task", "get", id])["task"].clone()
}

fn wait_until_idle(env: &TestEnv) {
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
}

fn shim_pid(env: &TestEnv, backend: &str) -> u32 {
    let member = env.member("ann").unwrap();
    let pid = match backend {
        "in-process" => member["pid"].as_u64().unwrap().to_string(),
        _ => env.tmux(["display-message", "-p", "-t", member["pane"].as_str().unwrap(), "#{pane_pid}"]),
    };
    pid.parse().unwrap()
}

#[test]
fn worker_spawns_works_and_shuts_down() {
    on_all_backends(|env, backend| {
        let reply = spawn(env, backend, &[]);
        assert_eq!(reply["backend"], backend);
        wait_until_idle(env);
        let id = create_task(env, "echo from the task; pwd");
        env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
        env.wait_until("the lead is told", || {
            env.payloads_to_lead("ann", "idle_notification").first().map(drop)
        });
        let told = env.payloads_to_lead("ann", "idle_notification").pop().unwrap();
        assert_eq!(
            (&told["completedTaskId"], &told["completedStatus"]),
            (&id.as_str().into(), &"completed".into())
        );
        env.wait_until("the log has it", || {
            env.teamctl(["logs", "ann"]).expect_success().contains("from the task").then_some(())
        });
        let config = env.read_config();
        let member = &config["members"][1];
        let words = if backend == "in-process" { ("in-process", true) } else { ("tmux", false) };
        assert_eq!((member["backendType"].as_str().unwrap(), member["tmuxPaneId"] == "in-process"), words);
        let ended = env.json(["shutdown", "ann"]);
        assert_eq!(ended["exits"][0]["description"], "approved", "{ended:#}");
        assert!(env.member("ann").is_none_or(|member| member["lifecycle"] == "completed"));
        env.teamctl(["delete", "survey"]).expect_success();
    });
}

#[test]
fn failed_task_is_reported_and_the_agent_continues() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        let id = create_task(env, "echo the reason; exit 3");
        env.wait_until("the task has failed", || {
            task_details(env, &id)["metadata"]["failure"].as_str().map(drop)
        });
        let failure = task_details(env, &id)["metadata"]["failure"].as_str().unwrap().to_owned();
        assert!(failure.contains("exit 3"), "{failure}");
        assert_eq!(task_details(env, &id)["status"], "in_progress");
        let failed = env.wait_until("the lead is told", || {
            env.payloads_to_lead("ann", "idle_notification")
                .into_iter()
                .find(|told| told["idleReason"] == "failed")
        });
        assert_eq!(failed["completedStatus"], "failed");
        assert!(failed["failureReason"].as_str().unwrap().contains("the reason"), "{failed}");
        let next = create_task(env, "true");
        env.wait_until("it goes on", || (task_details(env, &next)["status"] == "completed").then_some(()));
    });
}

#[test]
fn interrupt_ends_the_turn_only() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        wait_until_idle(env);
        let nothing = env.json(["interrupt", "ann"]);
        assert_eq!(nothing["was_in_turn"], false);
        let id = create_task(env, "sleep 3600");
        env.wait_until("it works", || (env.member("ann")?["activity"] == "active").then_some(()));
        env.wait_until("the turn has its process", || {
            env.member("ann")?["evidence"].as_str()?.contains("pid").then_some(())
        });
        let ended = env.json(["interrupt", "ann"]);
        assert_eq!(ended["was_in_turn"], true);
        env.wait_until("the lead is told", || {
            env.payloads_to_lead("ann", "idle_notification")
                .into_iter()
                .find(|told| told["idleReason"] == "interrupted")
        });
        assert_eq!(task_details(env, &id)["metadata"]["failure"], "interrupted");
        assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    });
}

#[test]
fn turn_survives_the_daemon() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        let (begun, go) = (env.path("out/begun"), env.path("out/go"));
        let command =
            format!("echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done", begun.display(), go.display());
        let id = create_task(env, &command);
        env.wait_until("the turn has begun", || begun.exists().then_some(()));
        let pid = shim_pid(env, backend);
        env.kill_process(env.daemon_pid());
        env.start_daemon();
        env.wait_until("it is adopted", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
        assert_eq!(shim_pid(env, backend), pid);
        env.wait_until("its turn is known again", || {
            env.member("ann")?["evidence"].as_str()?.contains("do it").then_some(())
        });
        std::fs::File::create(&go).unwrap();
        env.wait_until("the task is done", || {
            (task_details(env, &id)["status"] == "completed").then_some(())
        });
        assert_eq!(env.read("out/begun"), "x\n", "once");
    });
}

#[test]
fn task_of_a_killed_agent_is_abandoned_and_reported() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        let id = create_task(env, "sleep 3600");
        env.wait_until("its turn runs", || {
            env.member("ann")?["evidence"].as_str()?.contains("pid").then_some(())
        });
        env.kill_process(shim_pid(env, backend));
        let told =
            env.wait_until("the lead is told", || env.payloads_to_lead("ann", "teammate_terminated").pop());
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(&format!("left in progress: {id}")), "{message}");
        assert_eq!(task_details(env, &id)["status"], "in_progress");
        env.wait_until("status says so", || {
            let status = env.json(["status"]);
            (status["teams"][0]["abandoned_tasks"][0]["id"] == id.as_str()).then_some(())
        });
        env.teamctl(["task", "release", &id]).expect_success();
        assert_eq!(
            (&task_details(env, &id)["status"], &task_details(env, &id)["owner"]),
            (&"pending".into(), &Value::Null)
        );
    });
}

#[test]
fn respawned_agent_resumes_its_task() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &["--restart", "on-failure"]);
        let (runs, go) = (env.path("out/runs"), env.path("out/go"));
        let command =
            format!("echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done", runs.display(), go.display());
        let id = create_task(env, &command);
        // It may be killed once this is written; before, there would be one line too few.
        env.wait_until("the turn has begun", || (env.read("out/runs") == "x\n").then_some(()));
        let pid = shim_pid(env, backend);
        env.kill_process(pid);
        env.wait_until("it is back", || {
            let member = env.member("ann")?;
            (member["lifecycle"] == "running" && member["respawns"] == 1).then_some(())
        });
        assert_ne!(shim_pid(env, backend), pid);
        env.wait_until("its task runs again", || (env.read("out/runs") == "x\nx\n").then_some(()));
        std::fs::File::create(&go).unwrap();
        env.wait_until("the task is done", || {
            (task_details(env, &id)["status"] == "completed").then_some(())
        });
        assert_eq!(task_details(env, &id)["owner"], "ann");
    });
}

#[test]
fn window_backend_uses_its_own_window() {
    let env = TestEnv::with_team();
    spawn(&env, "window", &[]);
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    env.teamctl(["spawn", "cat", "--profile", "worker"]).expect_success();
    let window = |name: &str| {
        let pane = env.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
        env.tmux(["display-message", "-p", "-t", &pane, "#{window_id} #{window_panes}"])
    };
    assert!(window("ann").ends_with(" 1"), "{}", window("ann"));
    assert_eq!(window("bob"), window("cat"));
    env.shut_down();
}

#[test]
fn headless_backend_is_used_only_on_request() {
    let env = TestEnv::new();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in ["sh", "sleep", "cat"] {
        let found = env.command("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        std::os::unix::fs::symlink(String::from_utf8(found.stdout).unwrap().trim(), bin.join(program))
            .unwrap();
    }
    let mut teamd = env.command(harness::programs().join("teamd"));
    let mut teamd = teamd.env("PATH", &bin).spawn().unwrap();
    env.wait_for_daemon();
    assert_eq!(env.json(["status"])["daemon"]["tmux"], Value::Null);
    env.teamctl(["create", "survey"]).expect_success();
    let refused = env.teamctl(["spawn", "ann", "--profile", "worker"]);
    assert_eq!(refused.code, 72, "{refused:#?}");
    assert!(refused.stderr.contains("--backend in-process"), "{refused:#?}");
    spawn(&env, "in-process", &[]);
    let id = create_task(&env, "true");
    env.wait_until("it works", || (task_details(&env, &id)["status"] == "completed").then_some(()));
    env.teamctl(["down"]).expect_success();
    teamd.wait().unwrap();
    env.assert_no_files();
}
