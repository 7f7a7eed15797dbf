//! The screen of fifty members: what it costs while they write, how soon it answers a key, and that it rests when they do.

use crate::{cpu_ticks, env_with_team, median, print_row};
use harness::TestEnv;
use std::time::{Duration, Instant};

/// What each of the two is measured over.
const WINDOW: Duration = Duration::from_secs(60);
const MESSAGES: u32 = 1000;

pub(crate) fn measure_top() {
    let env = env_with_team();
    for n in 0..50 {
        env.teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", "sleep", "3600"])
            .expect_success();
    }
    let (pane, pid) = open(&env);
    measure_idle(&env, pid);
    measure_busy(&env, &pane, pid);
    env.shut_down();
}

/// In a pane of 80×24, with all that it writes to that pane in a file.
fn open(env: &TestEnv) -> (String, u32) {
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let pane = env.tmux([
        "new-session",
        "-d",
        "-s",
        "top",
        "-x",
        "80",
        "-y",
        "24",
        "-P",
        "-F",
        "#{pane_id}",
        "--",
        &teamctl,
        "top",
    ]);
    env.tmux(["pipe-pane", "-t", &pane, &format!("cat >> '{}'", env.path("out/drawn").display())]);
    env.wait_until("it has drawn them", || screen_text(env, &pane).contains(" a5 ").then_some(()));
    let pid = env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap();
    env.wait_until_quiet(Duration::from_millis(500));
    (pane, pid)
}

fn screen_text(env: &TestEnv, pane: &str) -> String {
    env.tmux(["capture-pane", "-p", "-t", pane])
}

/// Each drawing hides the cursor once.
fn count_redraws(env: &TestEnv) -> usize {
    env.read("out/drawn").matches("\u{1b}[?25l").count()
}

fn cpu_share(ticks: u64, window: Duration) -> f64 {
    ticks as f64 / 100.0 / window.as_secs_f64() * 100.0
}

fn measure_idle(env: &TestEnv, pid: u32) {
    let before = (cpu_ticks(pid), count_redraws(env));
    // The one wait that nothing may wake: it is what is measured.
    std::thread::park_timeout(WINDOW);
    let share = cpu_share(cpu_ticks(pid) - before.0, WINDOW);
    let drawn = count_redraws(env) - before.1;
    print_row("`top` with 50 members, 60 s idle: CPU; drawings", &format!("{share:.2} %; {drawn}"), "0 %; 0");
}

fn measure_busy(env: &TestEnv, pane: &str, pid: u32) {
    let (before, began) = (cpu_ticks(pid), Instant::now());
    let mut keys = Vec::new();
    for n in 0..MESSAGES {
        let to = if n % 4 == 0 { "team-lead".to_owned() } else { format!("a{}", n % 50) };
        env.teamctl(["send", &to, &format!("message {n} of many")]).expect_success();
        if n % 50 == 0 {
            keys.push(measure_key(env, pane, "?", "[help]"));
            keys.push(measure_key(env, pane, "Escape", "[members"));
        }
        std::thread::park_timeout((WINDOW * n / MESSAGES).saturating_sub(began.elapsed()));
    }
    let took = began.elapsed();
    let share = cpu_share(cpu_ticks(pid) - before, took);
    let most = keys.iter().max().copied().unwrap_or_default();
    print_row(
        &format!(
            "`top` with 50 members, {MESSAGES} messages in {:.0?}: CPU; from a key to its answer in tmux, median and worst of {}",
            took,
            keys.len()
        ),
        &format!("{share:.2} %; {:.0?}, {most:.0?}", median(keys)),
        "3 %; 50 ms",
    );
}

/// As seen from outside: two tmux processes are in it.
fn measure_key(env: &TestEnv, pane: &str, key: &str, answer: &str) -> Duration {
    let began = Instant::now();
    env.tmux(["send-keys", "-t", pane, key]);
    env.wait_until("the key is answered", || screen_text(env, pane).contains(answer).then_some(()));
    began.elapsed()
}
