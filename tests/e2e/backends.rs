//! The work of a teammate with each backend: in a shared window, in its own window, and without a
//! pane.

use harness::TestEnv;
use serde_json::Value;

const BACKENDS: [&str; 3] = ["tmux", "window", "in-process"];

/// Runs `test` once for each backend, each time in a new environment.
fn on_all_backends(test: fn(&TestEnv, &str)) {
    for backend in BACKENDS {
        let env = TestEnv::with_team();
        test(&env, backend);
        env.shut_down();
    }
}

fn spawn(env: &TestEnv, backend: &str, options: &[&str]) -> Value {
    let args = [&["--json", "spawn", "ann", "--profile", "worker", "--backend", backend], options].concat();
    let output = env.teamctl_with(&args, &[]);
    assert_eq!(output.code, 0, "{output:#?}");
    output.json()
}

fn create_task(env: &TestEnv, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let reply = env.json(["task", "create", "do it", "--metadata", &metadata]);
    reply["task"]["id"].as_str().unwrap().to_owned()
}

fn task_details(env: &TestEnv, id: &str) -> Value {
    env.json(["task", "get", id])["task"].clone()
}

fn wait_until_idle(env: &TestEnv) {
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
}

/// The pid of the shim. The pid of a member without a pane is that of its shim.
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
        env.wait_until("the lead is notified of the turn", || {
            env.payloads_to_lead("ann", "idle_notification").first().map(drop)
        });
        let notification = env.payloads_to_lead("ann", "idle_notification").pop().unwrap();
        assert_eq!(
            (&notification["completedTaskId"], &notification["completedStatus"]),
            (&id.as_str().into(), &"completed".into())
        );
        env.wait_until("the log contains the output of the task", || {
            env.teamctl(["logs", "ann"]).expect_success().contains("from the task").then_some(())
        });
        let config = env.read_config();
        let member = &config["members"][1];
        let expected = if backend == "in-process" { ("in-process", true) } else { ("tmux", false) };
        assert_eq!((member["backendType"].as_str().unwrap(), member["tmuxPaneId"] == "in-process"), expected);
        let reply = env.json(["shutdown", "ann"]);
        assert_eq!(reply["exits"][0]["description"], "approved", "{reply:#}");
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
        let notification = env.wait_until("the lead is notified of the failure", || {
            env.payloads_to_lead("ann", "idle_notification")
                .into_iter()
                .find(|payload| payload["idleReason"] == "failed")
        });
        assert_eq!(notification["completedStatus"], "failed");
        let reason = notification["failureReason"].as_str().unwrap();
        assert!(reason.contains("the reason"), "{notification}");
        let next = create_task(env, "true");
        env.wait_until("the next task is completed", || {
            (task_details(env, &next)["status"] == "completed").then_some(())
        });
    });
}

#[test]
fn interrupt_ends_the_turn_only() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        wait_until_idle(env);
        let reply = env.json(["interrupt", "ann"]);
        assert_eq!(reply["was_in_turn"], false);
        let id = create_task(env, "sleep 3600");
        env.wait_until("ann is active", || (env.member("ann")?["activity"] == "active").then_some(()));
        env.wait_until("the turn has a process", || {
            env.member("ann")?["activity_reason"].as_str()?.contains("pid").then_some(())
        });
        let reply = env.json(["interrupt", "ann"]);
        assert_eq!(reply["was_in_turn"], true);
        env.wait_until("the lead is notified of the interrupt", || {
            env.payloads_to_lead("ann", "idle_notification")
                .into_iter()
                .find(|payload| payload["idleReason"] == "interrupted")
        });
        assert_eq!(task_details(env, &id)["metadata"]["failure"], "interrupted");
        assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    });
}

#[test]
fn turn_survives_the_daemon() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        let (start_file, go_file) = (env.path("out/begun"), env.path("out/go"));
        let command = format!(
            "echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done",
            start_file.display(),
            go_file.display()
        );
        let id = create_task(env, &command);
        env.wait_until("the turn has started", || start_file.exists().then_some(()));
        let pid = shim_pid(env, backend);
        env.kill_process(env.daemon_pid());
        env.start_daemon();
        env.wait_until("ann is adopted", || (env.member("ann")?["lifecycle"] == "running").then_some(()));
        assert_eq!(shim_pid(env, backend), pid);
        env.wait_until("the new daemon knows the turn", || {
            env.member("ann")?["activity_reason"].as_str()?.contains("do it").then_some(())
        });
        std::fs::File::create(&go_file).unwrap();
        env.wait_until("the task is completed", || {
            (task_details(env, &id)["status"] == "completed").then_some(())
        });
        assert_eq!(env.read("out/begun"), "x\n", "the turn ran once");
    });
}

#[test]
fn task_of_a_killed_agent_is_abandoned_and_reported() {
    on_all_backends(|env, backend| {
        spawn(env, backend, &[]);
        let id = create_task(env, "sleep 3600");
        env.wait_until("the turn has a process", || {
            env.member("ann")?["activity_reason"].as_str()?.contains("pid").then_some(())
        });
        env.kill_process(shim_pid(env, backend));
        let notification = env.wait_until("the lead is notified of the exit", || {
            env.payloads_to_lead("ann", "teammate_terminated").pop()
        });
        let message = notification["message"].as_str().unwrap();
        assert!(message.contains(&format!("left in progress: {id}")), "{message}");
        assert_eq!(task_details(env, &id)["status"], "in_progress");
        env.wait_until("status shows the abandoned task", || {
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
        let (runs, go_file) = (env.path("out/runs"), env.path("out/go"));
        let command = format!(
            "echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done",
            runs.display(),
            go_file.display()
        );
        let id = create_task(env, &command);
        // If the agent were killed before it writes the line, the file would lack one line at the
        // end.
        env.wait_until("the turn has started", || (env.read("out/runs") == "x\n").then_some(()));
        let pid = shim_pid(env, backend);
        env.kill_process(pid);
        env.wait_until("ann is respawned", || {
            let member = env.member("ann")?;
            (member["lifecycle"] == "running" && member["respawns"] == 1).then_some(())
        });
        assert_ne!(shim_pid(env, backend), pid);
        env.wait_until("the task runs again", || (env.read("out/runs") == "x\nx\n").then_some(()));
        std::fs::File::create(&go_file).unwrap();
        env.wait_until("the task is completed", || {
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
        let output = env.command("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        std::os::unix::fs::symlink(String::from_utf8(output.stdout).unwrap().trim(), bin.join(program))
            .unwrap();
    }
    let mut teamd = env.command(harness::programs().join("teamd"));
    let mut teamd = teamd.env("PATH", &bin).spawn().unwrap();
    env.wait_for_daemon();
    assert_eq!(env.json(["status"])["daemon"]["tmux"], Value::Null);
    env.teamctl(["create", "survey"]).expect_success();
    let spawn_output = env.teamctl(["spawn", "ann", "--profile", "worker"]);
    assert_eq!(spawn_output.code, 72, "{spawn_output:#?}");
    assert!(spawn_output.stderr.contains("--backend in-process"), "{spawn_output:#?}");
    spawn(&env, "in-process", &[]);
    let id = create_task(&env, "true");
    env.wait_until("the task is completed", || {
        (task_details(&env, &id)["status"] == "completed").then_some(())
    });
    env.teamctl(["down"]).expect_success();
    teamd.wait().unwrap();
    env.assert_no_files();
}
