//! The screen of fifty members: what it costs while they write, how soon it answers a key, and that it rests when they do.

use crate::{cpu_ticks, env_with_team, median, print_row};
use harness::TestEnv;
use std::time::{Duration, Instant};

/// What each of the two is measured over.
const WINDOW: Duration = Duration::from_secs(60);
const MESSAGES: u32 = 1000;

pub(crate) fn measure_top() {
    let house = env_with_team();
    for n in 0..50 {
        house
            .teamctl(["spawn", &format!("a{n}"), "--backend", "in-process", "--", "sleep", "3600"])
            .expect_success();
    }
    let (pane, pid) = open(&house);
    measure_idle(&house, pid);
    measure_busy(&house, &pane, pid);
    house.shut_down();
}

/// In a pane of 80×24, with all that it writes to that pane in a file.
fn open(house: &TestEnv) -> (String, u32) {
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let pane = house.tmux([
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
    house.tmux(["pipe-pane", "-t", &pane, &format!("cat >> '{}'", house.path("out/drawn").display())]);
    house.wait_until("it has drawn them", || screen_text(house, &pane).contains(" a5 ").then_some(()));
    let pid = house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap();
    house.wait_until_quiet(Duration::from_millis(500));
    (pane, pid)
}

fn screen_text(house: &TestEnv, pane: &str) -> String {
    house.tmux(["capture-pane", "-p", "-t", pane])
}

/// Each drawing hides the cursor once.
fn count_redraws(house: &TestEnv) -> usize {
    house.read("out/drawn").matches("\u{1b}[?25l").count()
}

fn cpu_share(ticks: u64, window: Duration) -> f64 {
    ticks as f64 / 100.0 / window.as_secs_f64() * 100.0
}

fn measure_idle(house: &TestEnv, pid: u32) {
    let before = (cpu_ticks(pid), count_redraws(house));
    // The one wait that nothing may wake: it is what is measured.
    std::thread::park_timeout(WINDOW);
    let share = cpu_share(cpu_ticks(pid) - before.0, WINDOW);
    let drawn = count_redraws(house) - before.1;
    print_row("`top` with 50 members, 60 s idle: CPU; drawings", &format!("{share:.2} %; {drawn}"), "0 %; 0");
}

fn measure_busy(house: &TestEnv, pane: &str, pid: u32) {
    let (before, began) = (cpu_ticks(pid), Instant::now());
    let mut keys = Vec::new();
    for n in 0..MESSAGES {
        let to = if n % 4 == 0 { "team-lead".to_owned() } else { format!("a{}", n % 50) };
        house.teamctl(["send", &to, &format!("message {n} of many")]).expect_success();
        if n % 50 == 0 {
            keys.push(measure_key(house, pane, "?", "[help]"));
            keys.push(measure_key(house, pane, "Escape", "[members"));
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
fn measure_key(house: &TestEnv, pane: &str, key: &str, answer: &str) -> Duration {
    let began = Instant::now();
    house.tmux(["send-keys", "-t", pane, key]);
    house.wait_until("the key is answered", || screen_text(house, pane).contains(answer).then_some(()));
    began.elapsed()
}
