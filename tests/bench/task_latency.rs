//! Work on tasks: from one agent's end to the next one's beginning, many agents without panes, and a whole run.

use crate::{context_switches, cpu_ticks, env_with_team, median, megabytes, print_row, resident};
use harness::TestEnv;
use std::io::Write;
use std::time::{Duration, Instant};

/// The blocker's command writes the time as its last act, the blocked one's as its first: what lies between is
/// the end of one process, the completion, the wake, the claim and the start of another.
pub(crate) fn measure_unblocking() {
    const ROUNDS: usize = 30;
    let env = env_with_team();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--profile", "worker", "--backend", "in-process"]).expect_success();
    }
    let create = |owner: &str, subject: &str, blocked_by: Option<&str>| {
        let command = format!("date +%s%N >>'{}'", env.path(&format!("out/{subject}")).display());
        let metadata = serde_json::json!({ "command": command }).to_string();
        let mut words = vec!["--json", "task", "create", subject, "--owner", owner, "--metadata", &metadata];
        words.extend(blocked_by.into_iter().flat_map(|id| ["--blocked-by", id]));
        let made = env.teamctl_with(&words, &[]);
        assert_eq!(made.code, 0, "{made:#?}");
        made.json()["task"]["id"].as_str().unwrap().to_owned()
    };
    let lines =
        |name: &str| env.read(&format!("out/{name}")).lines().filter_map(|l| l.parse().ok()).collect();
    for round in 1..=ROUNDS {
        // A gate, so that the blocked one is there before the blocker may begin.
        let gate = create("team-lead", "gate", None);
        let first = create("ann", "first", Some(&gate));
        create("bob", "second", Some(&first));
        let idle = |name| env.member(name).is_some_and(|member| member["activity"] == "idle");
        env.wait_until("both are idle", || (idle("ann") && idle("bob")).then_some(()));
        env.teamctl(["task", "done", &gate]).expect_success();
        env.wait_until("the second has run", || (lines("second") as Vec<u64>).get(round - 1).map(drop));
    }
    let (first, second): (Vec<u64>, Vec<u64>) = (lines("first"), lines("second"));
    let took =
        first.iter().zip(&second).map(|(first, second)| Duration::from_nanos(second - first)).collect();
    print_row(
        "completed blocker to the next agent's command running, median of 30",
        &format!("{:.1?}", median(took)),
        "10 ms",
    );
    env.shut_down();
}

pub(crate) fn measure_headless_idle() {
    let env = env_with_team();
    for n in 0..50 {
        env.teamctl(["spawn", &format!("a{n}"), "--profile", "worker", "--backend", "in-process"])
            .expect_success();
    }
    let status = env.wait_until("all idle", || {
        let status = env.json(["status"]);
        let members = status["teams"][0]["members"].as_array()?;
        (members.iter().filter(|member| member["activity"] == "idle").count() == 50).then(|| status.clone())
    });
    let members = status["teams"][0]["members"].as_array().unwrap();
    let mut pids: Vec<u32> =
        members.iter().filter_map(|member| u32::try_from(member["pid"].as_u64()?).ok()).collect();
    let largest = pids.iter().map(|pid| resident(*pid)).max().unwrap();
    pids.push(env.daemon_pid());
    let of_all = |read: fn(u32) -> u64| pids.iter().map(|pid| read(*pid)).sum::<u64>();
    let before = (of_all(cpu_ticks), of_all(context_switches));
    let window = Duration::from_secs(30);
    // The one wait that nothing may wake: it is what is measured.
    harness::sleep(window);
    let share = (of_all(cpu_ticks) - before.0) as f64 / 100.0 / window.as_secs_f64() * 100.0;
    print_row(
        "50 headless teammates, 30 s idle: CPU of all and teamd; context switches; the largest",
        &format!("{share:.2} %; {}; {:.1} MB", of_all(context_switches) - before.1, megabytes(largest)),
        "0.2 %; 4 MB",
    );
    env.shut_down();
}

/// Each diamond is one task, two that wait for it, and one that waits for those; the next diamond waits for the
/// last. The event log tells whether each ran once and in order.
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
    let ran = env.teamctl(["-q", "run", file.to_str().unwrap()]);
    let took = start.elapsed();
    assert_eq!(ran.code, 0, "{ran:#?}");
    let order = assert_task_order(&env, TASKS);
    print_row(
        "`run`: 1,000 tasks in a chain of diamonds, 8 workers running `true`, from start to end",
        &format!("{order}, {:.0} a second", TASKS as f64 / took.as_secs_f64()),
        "every task once, in order; 100 a second",
    );
    env.shut_down();
}

/// In each group of four: the first waits for the group before, two for the first, the last for both.
fn blockers_of(n: usize) -> Vec<usize> {
    match n % 4 {
        0 if n == 0 => Vec::new(),
        0 => vec![n - 1],
        1 => vec![n - 1],
        2 => vec![n - 2],
        _ => vec![n - 2, n - 1],
    }
}

/// As the event log tells it: each began once, ended once, and began after all that it waits for had ended.
fn assert_task_order(env: &TestEnv, tasks: usize) -> String {
    let log = env.teamctl(["--json", "events"]).expect_success();
    let events: Vec<serde_json::Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut all: std::collections::HashMap<(String, String), Vec<usize>> = Default::default();
    for (at, event) in events.iter().enumerate() {
        let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        all.entry((word("event"), word("subject"))).or_default().push(at);
    }
    let places =
        |kind: &str, n: usize| all.get(&(kind.to_owned(), format!("part {n}"))).cloned().unwrap_or_default();
    let mut right = 0;
    for n in 0..tasks {
        let (began, ended) = (places("task_started", n), places("task_completed", n));
        let after = blockers_of(n).into_iter().all(|blocker| places("task_completed", blocker) < began);
        right += usize::from(began.len() == 1 && ended.len() == 1 && began < ended && after);
    }
    format!("{right} of {tasks} once and in order")
}
