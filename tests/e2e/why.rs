//! `why`: each way for a member to be stuck is planted, with the real tmux and daemon, and named as the first cause; and
//! what docs/troubleshooting.md says of it is what is printed. The member is ann throughout.

mod inbox_locks;
mod not_running;
mod system;
mod task_waits;
mod waiting;

use harness::TestEnv;
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/troubleshooting.md");

/// Waits until this is the first cause, and sees that the page tells of it; gives the cause.
fn assert_first_cause(env: &TestEnv, cause: &str) -> Value {
    assert_cause_with_options(env, cause, &[])
}

fn assert_cause_with_options(env: &TestEnv, cause: &str, more: &[&str]) -> Value {
    let words = [&["--json", "why", "ann"], more].concat();
    let mut seen = String::new();
    let mut note = |now: String| {
        if std::mem::replace(&mut seen, now.clone()) != now {
            show(&now);
        }
    };
    let told = env.wait_until(&format!("the first cause is {cause}"), || {
        let ran = env.teamctl_with(&words, &[]);
        note(format!("{} {}", ran.code, ran.stdout));
        let first = ran.code.eq(&0).then(|| ran.json()["causes"][0].clone())?;
        (first["cause"] == cause).then_some(first)
    });
    let plain = env.teamctl_with(&words[1..], &[]).expect_success();
    assert!(plain.lines().count() > 1, "a sentence and its evidence: {plain}");
    assert_documented(cause, &told);
    told
}

/// What was said before, where a test fails.
#[allow(clippy::print_stderr, reason = "a test's own output")]
fn show(told: &str) {
    eprintln!("{told}");
}

/// Of another inbox than its own the page says the same.
fn assert_cause_for_inbox(env: &TestEnv, cause: &str, on_the_page: fn(&str) -> String) -> Value {
    let first = || env.json(["why", "ann"])["causes"][0].clone();
    let told = env.wait_until(&format!("the first cause is {cause}"), || {
        Some(first()).filter(|told| told["cause"] == cause)
    });
    let mut shown = told.clone();
    shown["sentence"] = on_the_page(told["sentence"].as_str().unwrap()).into();
    assert_documented(cause, &shown);
    told
}

/// A row of the page: what is seen, the word, the sentence, what to type.
fn documented_causes() -> impl Iterator<Item = [&'static str; 4]> {
    let rows = PAGE.lines().filter(|line| {
        line.starts_with("| ") && !line.starts_with("| you see") && !line.starts_with("| ---")
    });
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("four cells: {cells:?}"))
    })
}

fn assert_documented(cause: &str, told: &Value) {
    let word = format!("`{cause}`");
    let Some([_, _, sentence, command]) = documented_causes().find(|row| row[1] == word) else {
        panic!("docs/troubleshooting.md has no row of {word}: {told}")
    };
    assert!(
        matches_pattern(told["sentence"].as_str().unwrap(), sentence),
        "the page says {sentence:?}: {told}"
    );
    let next = told["next"][0].as_str().unwrap();
    assert!(matches_pattern(next, command.trim_matches('`')), "the page says {command}: {told}");
}

/// What changes from one time to the next stands as `…` in the pattern.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    let mut pieces = pattern.split('…');
    let Some(after) = pieces.next().and_then(|first| rest.strip_prefix(first)) else { return false };
    rest = after;
    let mut last = pattern;
    for piece in pieces {
        let Some((_, after)) = rest.split_once(piece) else { return false };
        (rest, last) = (after, piece);
    }
    rest.is_empty() || last.is_empty()
}

/// Types what is printed, inside tmux.
fn run_suggested_command(env: &TestEnv, told: &Value) -> String {
    let line = told["next"][0].as_str().unwrap();
    let tmux = format!("{},0,0", env.tmux_socket().display());
    let output = env.command("sh").args(["-c", line]).env("TMUX", tmux).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// ann stays, and looks for mail by herself, if at all.
fn spawn_idle_agent(env: &TestEnv) -> u32 {
    let script = format!("echo here; exec {} stay", env.scripted_agent_path());
    let pid = env.json(["spawn", "ann", "--", "sh", "-c", &script])["pid"].as_u64().unwrap();
    let logged = || env.teamctl(["logs", "ann"]).stdout.contains("here").then_some(());
    env.wait_until("its word is in the log", logged);
    u32::try_from(pid).unwrap()
}

/// ann does the commands of tasks.
fn spawn_worker(env: &TestEnv) {
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    wait_until_idle(env);
}

fn wait_until_idle(env: &TestEnv) {
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
}

fn create_task(env: &TestEnv, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let made = env.json(["task", "create", "do it", "--metadata", &metadata]);
    made["task"]["id"].as_str().unwrap().to_owned()
}

fn shim_pid(env: &TestEnv) -> u32 {
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap()
}

/// A process that does not run; it goes on when this is dropped, so that a failed test can look at it.
pub(crate) struct PausedProcess(u32);

impl PausedProcess {
    pub(crate) fn new(pid: u32) -> PausedProcess {
        signal(pid, rustix::process::Signal::STOP);
        PausedProcess(pid)
    }
}

impl Drop for PausedProcess {
    fn drop(&mut self) {
        signal(self.0, rustix::process::Signal::CONT);
    }
}

/// It may have ended by now.
fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap_or_default();
}

/// No row is there that no test plants.
#[test]
fn every_cause_of_the_docs_page_is_tested() {
    let stories = [
        include_str!("why/not_running.rs"),
        include_str!("why/inbox_locks.rs"),
        include_str!("why/system.rs"),
        include_str!("why/task_waits.rs"),
        include_str!("why/waiting.rs"),
    ]
    .concat();
    let words: Vec<&str> = documented_causes().map(|row| row[1].trim_matches('`')).collect();
    assert!(words.len() >= 20, "{words:?}");
    for word in words {
        assert!(stories.contains(&format!("\"{word}\"")), "no test plants {word}");
    }
}

#[test]
fn unknown_member_is_an_error() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let refused = env.teamctl(["why", "anm"]).expect_failure(67);
    assert!(refused.contains("never was") && refused.contains("did you mean ann"), "{refused}");
    env.shut_down();
}

#[test]
fn control_characters_and_fake_lines_are_escaped() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.teamctl(["send", "ann", "x"]).expect_success();
    let from = "eve\u{1b}[2J\n  > rm -r ~";
    let mut inbox = env.inbox("survey", "ann");
    inbox[0]["from"] = from.into();
    env.write_file("root/teams/survey/inboxes/ann.json", serde_json::to_string(&inbox).unwrap());
    assert_first_cause(&env, "undelivered");
    let told = env.teamctl(["why", "ann"]).expect_success();
    assert!(!told.contains('\u{1b}') && told.contains("eve\\u{1b}[2J"), "{told}");
    assert!(told.lines().all(|line| !line.starts_with("  > rm")), "{told}");
    env.shut_down();
}
