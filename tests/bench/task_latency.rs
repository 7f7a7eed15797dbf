//! Measures work on tasks: the delay until an unblocked task starts, the cost of fifty idle workers
//! without panes, and a whole `teamctl run`.

use crate::{context_switches, cpu_ticks, env_with_team, median, megabytes, print_row, resident};
use harness::TestEnv;
use std::io::Write;
use std::time::{Duration, Instant};

/// Measures the time from the end of a task's command to the start of the command that it blocks.
/// Each command writes the time to a file. The measured time includes the end of one process, the
/// completion of its task, the wake, the claim, and the start of the other process.
pub(crate) fn measure_unblocking() {
    const ROUNDS: usize = 30;
    let env = env_with_team();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--profile", "worker", "--backend", "in-process"]).expect_success();
    }
    let create = |owner: &str, subject: &str, blocked_by: Option<&str>| {
        let command = format!("date +%s%N >>'{}'", env.path(&format!("out/{subject}")).display());
        let metadata = serde_json::json!({ "command": command }).to_string();
        let mut args = vec!["--json", "task", "create", subject, "--owner", owner, "--metadata", &metadata];
        args.extend(blocked_by.into_iter().flat_map(|id| ["--blocked-by", id]));
        let output = env.teamctl_with(&args, &[]);
        assert_eq!(output.code, 0, "{output:#?}");
        output.json()["task"]["id"].as_str().unwrap().to_owned()
    };
    let read_times =
        |name: &str| env.read(&format!("out/{name}")).lines().filter_map(|line| line.parse().ok()).collect();
    for round in 1..=ROUNDS {
        // The task `gate` keeps the first task from starting before the second one exists.
        let gate = create("team-lead", "gate", None);
        let first = create("ann", "first", Some(&gate));
        create("bob", "second", Some(&first));
        let is_idle = |name| env.member(name).is_some_and(|member| member["activity"] == "idle");
        env.wait_until("both workers are idle", || (is_idle("ann") && is_idle("bob")).then_some(()));
        env.teamctl(["task", "done", &gate]).expect_success();
        env.wait_until("the second task has run", || {
            (read_times("second") as Vec<u64>).get(round - 1).map(drop)
        });
    }
    let (first, second): (Vec<u64>, Vec<u64>) = (read_times("first"), read_times("second"));
    let delays =
        first.iter().zip(&second).map(|(first, second)| Duration::from_nanos(second - first)).collect();
    print_row(
        "completed blocker to the next agent's command running, median of 30",
        &format!("{:.1?}", median(delays)),
        "10 ms",
    );
    env.shut_down();
}

/// Measures the CPU time, context switches and memory of fifty idle workers without panes.
pub(crate) fn measure_headless_idle() {
    let env = env_with_team();
    for n in 0..50 {
        env.teamctl(["spawn", &format!("a{n}"), "--profile", "worker", "--backend", "in-process"])
            .expect_success();
    }
    let status = env.wait_until("all members are idle", || {
        let status = env.json(["status"]);
        let members = status["teams"][0]["members"].as_array()?;
        (members.iter().filter(|member| member["activity"] == "idle").count() == 50).then(|| status.clone())
    });
    let members = status["teams"][0]["members"].as_array().unwrap();
    let mut pids: Vec<u32> =
        members.iter().filter_map(|member| u32::try_from(member["pid"].as_u64()?).ok()).collect();
    let largest = pids.iter().map(|pid| resident(*pid)).max().unwrap();
    pids.push(env.daemon_pid());
    let sum = |read: fn(u32) -> u64| pids.iter().map(|pid| read(*pid)).sum::<u64>();
    let before = (sum(cpu_ticks), sum(context_switches));
    let window = Duration::from_secs(30);
    // An event must not end this wait, because the benchmark measures idle processes.
    harness::sleep(window);
    let share = (sum(cpu_ticks) - before.0) as f64 / 100.0 / window.as_secs_f64() * 100.0;
    print_row(
        "50 headless teammates, 30 s idle: CPU of all and teamd; context switches; memory of the largest",
        &format!("{share:.2} %; {}; {:.1} MB", sum(context_switches) - before.1, megabytes(largest)),
        "0.2 %; 4 MB",
    );
    env.shut_down();
}

/// Measures a run of 1,000 tasks that form a chain of diamonds. A diamond is one task, two tasks
/// that it blocks, and one task that those two block. The last task of a diamond blocks the next
/// diamond.
pub(crate) fn measure_task_graph() {
    const TASKS: usize = 1000;
    let env = TestEnv::with_daemon();
    let mut text = String::from("name = \"bench\"\nprofile = \"worker\"\n");
    for n in 0..8 {
        text.push_str(&format!("[[member]]\nname = \"w{n}\"\nbackend = \"in-process\"\n"));
    }
    for n in 0..TASKS {
        let blockers = blockers_of(n);
        let keys: Vec<String> = blockers.iter().map(|key| format!("\"t{key}\"")).collect();
        text.push_str(&format!(
            "[[task]]\nkey = \"t{n}\"\nsubject = \"part {n}\"\ncommand = \"true\"\nblocked_by = [{}]\n",
            keys.join(", ")
        ));
    }
    let file = env.path("diamonds.toml");
    std::fs::File::create(&file).unwrap().write_all(text.as_bytes()).unwrap();
    let start = Instant::now();
    let output = env.teamctl(["-q", "run", file.to_str().unwrap()]);
    let duration = start.elapsed();
    assert_eq!(output.code, 0, "{output:#?}");
    let order = check_task_order(&env, TASKS);
    print_row(
        "`run`: 1,000 tasks in a chain of diamonds, 8 workers running `true`, from start to end",
        &format!("{order}, {:.0} a second", TASKS as f64 / duration.as_secs_f64()),
        "every task once, in order; 100 a second",
    );
    env.shut_down();
}

/// The tasks that block the task `n`. Each group of four tasks is a diamond.
fn blockers_of(n: usize) -> Vec<usize> {
    match n % 4 {
        0 if n == 0 => Vec::new(),
        0 => vec![n - 1],
        1 => vec![n - 1],
        2 => vec![n - 2],
        _ => vec![n - 2, n - 1],
    }
}

/// Counts in the event log the tasks that started once and completed once, after all their blockers
/// had completed. Returns the count as text for the table.
fn check_task_order(env: &TestEnv, tasks: usize) -> String {
    let log = env.teamctl(["--json", "events"]).expect_success();
    let events: Vec<serde_json::Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut by_task: std::collections::HashMap<(String, String), Vec<usize>> = Default::default();
    for (index, event) in events.iter().enumerate() {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        by_task.entry((text("event"), text("subject"))).or_default().push(index);
    }
    let indices = |kind: &str, n: usize| {
        by_task.get(&(kind.to_owned(), format!("part {n}"))).cloned().unwrap_or_default()
    };
    let mut count = 0;
    for n in 0..tasks {
        let (starts, ends) = (indices("task_started", n), indices("task_completed", n));
        let after_blockers =
            blockers_of(n).into_iter().all(|blocker| indices("task_completed", blocker) < starts);
        count += usize::from(starts.len() == 1 && ends.len() == 1 && starts < ends && after_blockers);
    }
    format!("{count} of {tasks} once and in order")
}
