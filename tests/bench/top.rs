//! Measures `teamctl top` with fifty members: its CPU time and redraws while nothing happens, its
//! CPU time during many messages, and how soon it responds to a key.

use crate::{cpu_ticks, env_with_team, median, print_row};
use harness::TestEnv;
use std::time::{Duration, Instant};

/// The duration of the idle and of the busy measurement.
const WINDOW: Duration = Duration::from_secs(60);
const MESSAGES: u32 = 1000;

pub(crate) fn measure_top() {
    let env = env_with_team();
    for n in 0..50 {
        env.teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", "sleep", "3600"])
            .expect_success();
    }
    let (pane, pid) = open_top(&env);
    measure_idle(&env, pid);
    measure_busy(&env, &pane, pid);
    env.shut_down();
}

/// Starts `teamctl top` in a pane of 200×50 and copies its output to a file. Returns the pane and
/// the pid.
fn open_top(env: &TestEnv) -> (String, u32) {
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let pane = env.tmux([
        "new-session",
        "-d",
        "-s",
        "top",
        "-x",
        "200",
        "-y",
        "50",
        "-P",
        "-F",
        "#{pane_id}",
        "--",
        &teamctl,
        "top",
    ]);
    env.tmux(["pipe-pane", "-t", &pane, &format!("cat >> '{}'", env.path("out/drawn").display())]);
    env.wait_until("top shows the members", || screen_text(env, &pane).contains(" a5 ").then_some(()));
    let pid = env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap();
    env.wait_until_quiet(Duration::from_millis(500));
    (pane, pid)
}

fn screen_text(env: &TestEnv, pane: &str) -> String {
    env.tmux(["capture-pane", "-p", "-t", pane])
}

/// Counts the redraws so far. Each redraw hides the cursor once.
fn count_redraws(env: &TestEnv) -> usize {
    env.read("out/drawn").matches("\u{1b}[?25l").count()
}

/// The share of one core in percent.
fn cpu_share(ticks: u64, window: Duration) -> f64 {
    ticks as f64 / 100.0 / window.as_secs_f64() * 100.0
}

fn measure_idle(env: &TestEnv, pid: u32) {
    let before = (cpu_ticks(pid), count_redraws(env));
    // An event must not end this wait, because the benchmark measures an idle program.
    std::thread::park_timeout(WINDOW);
    let share = cpu_share(cpu_ticks(pid) - before.0, WINDOW);
    let redraws = count_redraws(env) - before.1;
    print_row(
        "`top` with 50 members, 60 s idle: CPU; redraws",
        &format!("{share:.2} %; {redraws}"),
        "0 %; 0",
    );
}

fn measure_busy(env: &TestEnv, pane: &str, pid: u32) {
    let (ticks_before, start) = (cpu_ticks(pid), Instant::now());
    let mut key_times = Vec::new();
    for n in 0..MESSAGES {
        let to = if n % 4 == 0 { "team-lead".to_owned() } else { format!("a{}", n % 50) };
        env.teamctl(["send", &to, &format!("message {n} of many")]).expect_success();
        if n % 50 == 0 {
            key_times.push(measure_key(env, pane, "?", "[help]"));
            key_times.push(measure_key(env, pane, "Escape", "[members"));
        }
        std::thread::park_timeout((WINDOW * n / MESSAGES).saturating_sub(start.elapsed()));
    }
    let elapsed = start.elapsed();
    let share = cpu_share(cpu_ticks(pid) - ticks_before, elapsed);
    let longest = key_times.iter().max().copied().unwrap_or_default();
    print_row(
        &format!(
            "`top` with 50 members, {MESSAGES} messages in {:.0?}: CPU; from a key to the response in tmux, median and maximum of {}",
            elapsed,
            key_times.len()
        ),
        &format!("{share:.2} %; {:.0?}, {longest:.0?}", median(key_times)),
        "3 %; 50 ms",
    );
}

/// Measures the time from a key until the screen shows `response`. The time includes the start of
/// two tmux processes.
fn measure_key(env: &TestEnv, pane: &str, key: &str, response: &str) -> Duration {
    let start = Instant::now();
    env.tmux(["send-keys", "-t", pane, key]);
    env.wait_until("top responds to the key", || screen_text(env, pane).contains(response).then_some(()));
    start.elapsed()
}
