//! A teammate's life, the same in a pane, in a window of its own and without either.

use harness::House;
use serde_json::Value;

const BACKENDS: [&str; 3] = ["tmux", "window", "in-process"];

/// The story on a house of its own for each backend.
fn everywhere(story: fn(&House, &str)) {
    for backend in BACKENDS {
        let house = House::with_team();
        story(&house, backend);
        house.end();
    }
}

fn spawn(house: &House, backend: &str, more: &[&str]) -> Value {
    let all = [&["--json", "spawn", "ann", "--agent", "worker", "--backend", backend], more].concat();
    let ran = house.teamctl_with(&all, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

fn task(house: &House, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let made = house.json(["task", "create", "do it", "--metadata", &metadata]);
    made["task"]["id"].as_str().unwrap().to_owned()
}

fn shown(house: &House, id: &str) -> Value {
    house.json(["task", "get", id])["task"].clone()
}

fn idle(house: &House) {
    house.until("ann is idle", || (house.member("ann")?["activity"] == "idle").then_some(()));
}

fn first_process(house: &House, backend: &str) -> u32 {
    let member = house.member("ann").unwrap();
    let pid = match backend {
        "in-process" => member["pid"].as_u64().unwrap().to_string(),
        _ => house.tmux(["display-message", "-p", "-t", member["pane"].as_str().unwrap(), "#{pane_pid}"]),
    };
    pid.parse().unwrap()
}

#[test]
fn it_is_spawned_works_says_so_and_shuts_down() {
    everywhere(|house, backend| {
        let reply = spawn(house, backend, &[]);
        assert_eq!(reply["backend"], backend);
        idle(house);
        let id = task(house, "echo from the task; pwd");
        house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
        house.until("the lead is told", || house.told("ann", "idle_notification").first().map(drop));
        let told = house.told("ann", "idle_notification").pop().unwrap();
        assert_eq!(
            (&told["completedTaskId"], &told["completedStatus"]),
            (&id.as_str().into(), &"completed".into())
        );
        house.until("the log has it", || {
            house.teamctl(["logs", "ann"]).ok().contains("from the task").then_some(())
        });
        let config = house.config();
        let member = &config["members"][1];
        let words = if backend == "in-process" { ("in-process", true) } else { ("tmux", false) };
        assert_eq!((member["backendType"].as_str().unwrap(), member["tmuxPaneId"] == "in-process"), words);
        let ended = house.json(["shutdown", "ann"]);
        assert_eq!(ended["ended"][0]["how"], "approved", "{ended:#}");
        assert!(house.member("ann").is_none_or(|member| member["phase"] == "completed"));
        house.teamctl(["delete", "survey"]).ok();
    });
}

#[test]
fn a_task_that_fails_is_told_with_its_last_words_and_the_agent_lives_on() {
    everywhere(|house, backend| {
        spawn(house, backend, &[]);
        let id = task(house, "echo the reason; exit 3");
        house.until("the task has failed", || shown(house, &id)["metadata"]["failure"].as_str().map(drop));
        let failure = shown(house, &id)["metadata"]["failure"].as_str().unwrap().to_owned();
        assert!(failure.contains("exit 3"), "{failure}");
        assert_eq!(shown(house, &id)["status"], "in_progress");
        let failed = house.until("the lead is told", || {
            house.told("ann", "idle_notification").into_iter().find(|told| told["idleReason"] == "failed")
        });
        assert_eq!(failed["completedStatus"], "failed");
        assert!(failed["failureReason"].as_str().unwrap().contains("the reason"), "{failed}");
        let next = task(house, "true");
        house.until("it goes on", || (shown(house, &next)["status"] == "completed").then_some(()));
    });
}

#[test]
fn its_turn_is_interrupted_and_it_lives_on() {
    everywhere(|house, backend| {
        spawn(house, backend, &[]);
        idle(house);
        let nothing = house.json(["interrupt", "ann"]);
        assert_eq!(nothing["turn"], false);
        let id = task(house, "sleep 3600");
        house.until("it works", || (house.member("ann")?["activity"] == "active").then_some(()));
        house.until("the turn has its process", || {
            house.member("ann")?["evidence"].as_str()?.contains("pid").then_some(())
        });
        let ended = house.json(["interrupt", "ann"]);
        assert_eq!(ended["turn"], true);
        house.until("the lead is told", || {
            house
                .told("ann", "idle_notification")
                .into_iter()
                .find(|told| told["idleReason"] == "interrupted")
        });
        assert_eq!(shown(house, &id)["metadata"]["failure"], "interrupted");
        assert_eq!(house.member("ann").unwrap()["phase"], "running");
    });
}

#[test]
fn the_daemon_dies_in_the_middle_of_a_turn_and_comes_back_to_it() {
    everywhere(|house, backend| {
        spawn(house, backend, &[]);
        let (begun, go) = (house.path("out/begun"), house.path("out/go"));
        let command =
            format!("echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done", begun.display(), go.display());
        let id = task(house, &command);
        house.until("the turn has begun", || begun.exists().then_some(()));
        let pid = first_process(house, backend);
        house.kill_9(house.daemon());
        house.start_daemon();
        house.until("it is adopted", || (house.member("ann")?["phase"] == "running").then_some(()));
        assert_eq!(first_process(house, backend), pid);
        house.until("its turn is known again", || {
            house.member("ann")?["evidence"].as_str()?.contains("do it").then_some(())
        });
        std::fs::File::create(&go).unwrap();
        house.until("the task is done", || (shown(house, &id)["status"] == "completed").then_some(()));
        assert_eq!(house.read("out/begun"), "x\n", "once");
    });
}

#[test]
fn killed_it_leaves_its_task_to_whoever_is_told() {
    everywhere(|house, backend| {
        spawn(house, backend, &[]);
        let id = task(house, "sleep 3600");
        house.until("its turn runs", || {
            house.member("ann")?["evidence"].as_str()?.contains("pid").then_some(())
        });
        house.kill_9(first_process(house, backend));
        let told = house.until("the lead is told", || house.told("ann", "teammate_terminated").pop());
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(&format!("left in progress: {id}")), "{message}");
        assert_eq!(shown(house, &id)["status"], "in_progress");
        house.until("status says so", || {
            let status = house.json(["status"]);
            (status["teams"][0]["left"][0]["id"] == id.as_str()).then_some(())
        });
        house.teamctl(["task", "release", &id]).ok();
        assert_eq!(
            (&shown(house, &id)["status"], &shown(house, &id)["owner"]),
            (&"pending".into(), &Value::Null)
        );
    });
}

#[test]
fn killed_under_restart_it_comes_back_and_takes_its_task_up_again() {
    everywhere(|house, backend| {
        spawn(house, backend, &["--restart", "on-failure"]);
        let (runs, go) = (house.path("out/runs"), house.path("out/go"));
        let command =
            format!("echo x >>'{}'; until [ -e '{}' ]; do sleep 0.05; done", runs.display(), go.display());
        let id = task(house, &command);
        // It may be killed once this is written; before, there would be one line too few.
        house.until("the turn has begun", || (house.read("out/runs") == "x\n").then_some(()));
        let pid = first_process(house, backend);
        house.kill_9(pid);
        house.until("it is back", || {
            let member = house.member("ann")?;
            (member["phase"] == "running" && member["restarts"] == 1).then_some(())
        });
        assert_ne!(first_process(house, backend), pid);
        house.until("its task runs again", || (house.read("out/runs") == "x\nx\n").then_some(()));
        std::fs::File::create(&go).unwrap();
        house.until("the task is done", || (shown(house, &id)["status"] == "completed").then_some(()));
        assert_eq!(shown(house, &id)["owner"], "ann");
    });
}

#[test]
fn a_window_of_its_own_is_shared_with_nobody() {
    let house = House::with_team();
    spawn(&house, "window", &[]);
    house.teamctl(["spawn", "bob", "--agent", "worker"]).ok();
    house.teamctl(["spawn", "cat", "--agent", "worker"]).ok();
    let window = |name: &str| {
        let pane = house.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
        house.tmux(["display-message", "-p", "-t", &pane, "#{window_id} #{window_panes}"])
    };
    assert!(window("ann").ends_with(" 1"), "{}", window("ann"));
    assert_eq!(window("bob"), window("cat"));
    house.end();
}

#[test]
fn a_backend_that_can_not_be_had_is_an_error() {
    let house = House::with_team();
    let refused = house.teamctl(["spawn", "ann", "--agent", "worker", "--backend", "iterm2"]);
    assert_ne!(refused.code, 0);
    assert!(house.member("ann").is_none());
    house.end();
}

#[test]
fn without_tmux_teammates_run_headless_and_only_if_asked() {
    let house = House::empty();
    let bin = house.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in ["sh", "sleep", "cat"] {
        let found = house.command("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        std::os::unix::fs::symlink(String::from_utf8(found.stdout).unwrap().trim(), bin.join(program))
            .unwrap();
    }
    let mut teamd = house.command(harness::programs().join("teamd"));
    let mut teamd = teamd.env("PATH", &bin).spawn().unwrap();
    house.until_answered();
    assert_eq!(house.json(["status"])["daemon"]["tmux"], Value::Null);
    house.teamctl(["create", "survey"]).ok();
    let refused = house.teamctl(["spawn", "ann", "--agent", "worker"]);
    assert_eq!(refused.code, 72, "{refused:#?}");
    assert!(refused.stderr.contains("--backend in-process"), "{refused:#?}");
    spawn(&house, "in-process", &[]);
    let id = task(&house, "true");
    house.until("it works", || (shown(&house, &id)["status"] == "completed").then_some(()));
    house.teamctl(["down"]).ok();
    teamd.wait().unwrap();
    house.nothing_left_of_ours();
}
