//! A teammate's life, the same in a pane, in a window of its own and without either.

use harness::TestEnv;
use serde_json::Value;

const BACKENDS: [&str; 3] = ["tmux", "window", "in-process"];

/// The story on a house of its own for each backend.
fn on_all_backends(story: fn(&TestEnv, &str)) {
    for backend in BACKENDS {
        let house = TestEnv::with_team();
        story(&house, backend);
        house.shut_down();
    }
}

fn spawn(house: &TestEnv, backend: &str, more: &[&str]) -> Value {
    let all = [&["--json", "spawn", "ann", "--profile", "worker", "--backend", backend], more].concat();
    let ran = house.teamctl_with(&all, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

fn create_task(house: &TestEnv, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let made = house.json(["task", "create", "do it", "--metadata", &metadata]);
    made["task"]["id"].as_str().unwrap().to_owned()
}

fn task_details(house: &TestEnv, id: &str) -> Value {
    house.json(["task", "get", id])["task"].clone()
}

fn wait_until_idle(house: &TestEnv) {
    house.wait_until("ann is idle", || (house.member("ann")?["activity"] == "idle").then_some(()));
}

fn shim_pid(house: &TestEnv, backend: &str) -> u32 {
    let member = house.member("ann").unwrap();
    let pid = match backend {
        "in-process" => member["pid"].as_u64().unwrap().to_string(),
        _ => house.tmux(["display-message", "-p", "-t", member["pane"].as_str().unwrap(), "#{pane_pid}"]),
    };
    pid.parse().unwrap()
}

#[test]
fn worker_spawns_works_and_shuts_down() {
    on_all_backends(|house, backend| {
        let reply = spawn(house, backend, &[]);
        assert_eq!(reply["backend"], backend);
        wait_until_idle(house);
        let id = create_task(house, "echo from the task; pwd");
        house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
        house.wait_until("the lead is told", || {
            house.payloads_to_lead("ann", "idle_notification").first().map(drop)
        });
        let told = house.payloads_to_lead("ann", "idle_notification").pop().unwrap();
        assert_eq!(
            (&told["completedTaskId"], &told["completedStatus"]),
            (&id.as_str().into(), &"completed".into())
        );
        house.wait_until("the log has it", || {
            house.teamctl(["logs", "ann"]).expect_success().contains("from the task").then_some(())
        });
        let config = house.read_config();
        let member = &config["members"][1];
        let words = if backend == "in-process" { ("in-process", true) } else { ("tmux", false) };
        assert_eq!((member["backendType"].as_str().unwrap(), member["tmuxPaneId"] == "in-process"), words);
        let ended = house.json(["shutdown", "ann"]);
        assert_eq!(ended["exits"][0]["description"], "approved", "{ended:#}");
        assert!(house.member("ann").is_none_or(|member| member["lifecycle"] == "completed"));
        house.teamctl(["delete", "survey"]).expect_success();
    });
}

#[test]
fn failed_task_is_reported_and_the_agent_continues() {
    on_all_backends(|house, backend| {
        spawn(house, backend, &[]);
        let id = create_task(house, "echo the reason; exit 3");
        house.wait_until("the task has failed", || {
            task_details(house, &id)["metadata"]["failure"].as_str().map(drop)
        });
        let failure = task_details(house, &id)["metadata"]["failure"].as_str().unwrap().to_owned();
        assert!(failure.contains("exit 3"), "{failure}");
        assert_eq!(task_details(house, &id)["status"], "in_progress");
        let failed = house.wait_until("the lead is told", || {
            house
                .payloads_to_lead("ann", "idle_notification")
                .into_iter()
                .find(|told| told["idleReason"] == "failed")
        });
        assert_eq!(failed["completedStatus"], "failed");
        assert!(failed["failureReason"].as_str().unwrap().contains("the reason"), "{failed}");
        let next = create_task(house, "true");
        house
            .wait_until("it goes on", || (task_details(house, &next)["status"] == "completed").then_some(()));
    });
}

#[test]
fn interrupt_ends_the_turn_only() {
    on_all_backends(|house, backend| {
        spawn(house, backend, &[]);
        wait_until_idle(house);
        let nothing = house.json(["interrupt", "ann"]);
        assert_eq!(nothing["was_in_turn"], false);
        let id = create_task(house, "sleep 3600");
        house.wait_until("it works", || (house.member("ann")?["activity"] == "active").then_some(()));
        house.wait_until("the turn has its process", || {
            house.member("ann")?["evidence"].as_str()?.contains("pid").then_some(())
        });
        let ended = house.json(["interrupt", "ann"]);
        assert_eq!(ended["was_in_turn"], true);
        house.wait_until("the lead is told", || {
            house
                .payloads_to_lead("ann", "idle_notification")
                .into_iter()
                .find(|told| told["idleReason"] == "interrupted")
        });
        assert_eq!(task_details(house, &id)["metadata"]["failure"], "interrupted");
        assert_eq!(house.member("ann").unwrap()["lifecycle"], "running");
    });
}

#[test]
fn turn_survives_the_daemon() {
    on_all_backends(|house, backend| {
        spawn(house, backend, &[]);
        let (begun, go) = (house.path("out/begun"), house.path("out/go"));
        let command =
            format!("echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done", begun.display(), go.display());
        let id = create_task(house, &command);
        house.wait_until("the turn has begun", || begun.exists().then_some(()));
        let pid = shim_pid(house, backend);
        house.kill_process(house.daemon_pid());
        house.start_daemon();
        house.wait_until("it is adopted", || (house.member("ann")?["lifecycle"] == "running").then_some(()));
        assert_eq!(shim_pid(house, backend), pid);
        house.wait_until("its turn is known again", || {
            house.member("ann")?["evidence"].as_str()?.contains("do it").then_some(())
        });
        std::fs::File::create(&go).unwrap();
        house.wait_until("the task is done", || {
            (task_details(house, &id)["status"] == "completed").then_some(())
        });
        assert_eq!(house.read("out/begun"), "x\n", "once");
    });
}

#[test]
fn task_of_a_killed_agent_is_abandoned_and_reported() {
    on_all_backends(|house, backend| {
        spawn(house, backend, &[]);
        let id = create_task(house, "sleep 3600");
        house.wait_until("its turn runs", || {
            house.member("ann")?["evidence"].as_str()?.contains("pid").then_some(())
        });
        house.kill_process(shim_pid(house, backend));
        let told = house
            .wait_until("the lead is told", || house.payloads_to_lead("ann", "teammate_terminated").pop());
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(&format!("left in progress: {id}")), "{message}");
        assert_eq!(task_details(house, &id)["status"], "in_progress");
        house.wait_until("status says so", || {
            let status = house.json(["status"]);
            (status["teams"][0]["abandoned_tasks"][0]["id"] == id.as_str()).then_some(())
        });
        house.teamctl(["task", "release", &id]).expect_success();
        assert_eq!(
            (&task_details(house, &id)["status"], &task_details(house, &id)["owner"]),
            (&"pending".into(), &Value::Null)
        );
    });
}

#[test]
fn respawned_agent_resumes_its_task() {
    on_all_backends(|house, backend| {
        spawn(house, backend, &["--restart", "on-failure"]);
        let (runs, go) = (house.path("out/runs"), house.path("out/go"));
        let command =
            format!("echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done", runs.display(), go.display());
        let id = create_task(house, &command);
        // It may be killed once this is written; before, there would be one line too few.
        house.wait_until("the turn has begun", || (house.read("out/runs") == "x\n").then_some(()));
        let pid = shim_pid(house, backend);
        house.kill_process(pid);
        house.wait_until("it is back", || {
            let member = house.member("ann")?;
            (member["lifecycle"] == "running" && member["respawns"] == 1).then_some(())
        });
        assert_ne!(shim_pid(house, backend), pid);
        house.wait_until("its task runs again", || (house.read("out/runs") == "x\nx\n").then_some(()));
        std::fs::File::create(&go).unwrap();
        house.wait_until("the task is done", || {
            (task_details(house, &id)["status"] == "completed").then_some(())
        });
        assert_eq!(task_details(house, &id)["owner"], "ann");
    });
}

#[test]
fn window_backend_uses_its_own_window() {
    let house = TestEnv::with_team();
    spawn(&house, "window", &[]);
    house.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    house.teamctl(["spawn", "cat", "--profile", "worker"]).expect_success();
    let window = |name: &str| {
        let pane = house.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
        house.tmux(["display-message", "-p", "-t", &pane, "#{window_id} #{window_panes}"])
    };
    assert!(window("ann").ends_with(" 1"), "{}", window("ann"));
    assert_eq!(window("bob"), window("cat"));
    house.shut_down();
}

#[test]
fn headless_backend_is_used_only_on_request() {
    let house = TestEnv::new();
    let bin = house.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in ["sh", "sleep", "cat"] {
        let found = house.command("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        std::os::unix::fs::symlink(String::from_utf8(found.stdout).unwrap().trim(), bin.join(program))
            .unwrap();
    }
    let mut teamd = house.command(harness::programs().join("teamd"));
    let mut teamd = teamd.env("PATH", &bin).spawn().unwrap();
    house.wait_for_daemon();
    assert_eq!(house.json(["status"])["daemon"]["tmux"], Value::Null);
    house.teamctl(["create", "survey"]).expect_success();
    let refused = house.teamctl(["spawn", "ann", "--profile", "worker"]);
    assert_eq!(refused.code, 72, "{refused:#?}");
    assert!(refused.stderr.contains("--backend in-process"), "{refused:#?}");
    spawn(&house, "in-process", &[]);
    let id = create_task(&house, "true");
    house.wait_until("it works", || (task_details(&house, &id)["status"] == "completed").then_some(()));
    house.teamctl(["down"]).expect_success();
    teamd.wait().unwrap();
    house.assert_no_files();
}
