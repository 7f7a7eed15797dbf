//! `why`: each way for a member to be stuck is planted, with the real tmux and daemon, and named as the first cause; and
//! what docs/troubleshooting.md says of it is what is printed. The member is ann throughout.

mod ended;
mod files;
mod machine;
mod tasks;
mod waiting;

use harness::House;
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/troubleshooting.md");

/// Waits until this is the first cause, and sees that the page tells of it; gives the cause.
fn says(house: &House, cause: &str) -> Value {
    says_with(house, cause, &[])
}

fn says_with(house: &House, cause: &str, more: &[&str]) -> Value {
    let words = [&["--json", "why", "ann"], more].concat();
    let mut seen = String::new();
    let mut note = |now: String| {
        if std::mem::replace(&mut seen, now.clone()) != now {
            show(&now);
        }
    };
    let told = house.until(&format!("the first cause is {cause}"), || {
        let ran = house.teamctl_with(&words, &[]);
        note(format!("{} {}", ran.code, ran.stdout));
        let first = ran.code.eq(&0).then(|| ran.json()["causes"][0].clone())?;
        (first["cause"] == cause).then_some(first)
    });
    let plain = house.teamctl_with(&words[1..], &[]).ok();
    assert!(plain.lines().count() > 1, "a sentence and its evidence: {plain}");
    is_on_the_page(cause, &told);
    told
}

/// What was said before, where a test fails.
#[allow(clippy::print_stderr, reason = "a test's own output")]
fn show(told: &str) {
    eprintln!("{told}");
}

/// Of another inbox than its own the page says the same.
fn says_as(house: &House, cause: &str, on_the_page: fn(&str) -> String) -> Value {
    let first = || house.json(["why", "ann"])["causes"][0].clone();
    let told = house.until(&format!("the first cause is {cause}"), || {
        Some(first()).filter(|told| told["cause"] == cause)
    });
    let mut shown = told.clone();
    shown["sentence"] = on_the_page(told["sentence"].as_str().unwrap()).into();
    is_on_the_page(cause, &shown);
    told
}

/// A row of the page: what is seen, the word, the sentence, what to type.
fn rows() -> impl Iterator<Item = [&'static str; 4]> {
    let rows = PAGE.lines().filter(|line| {
        line.starts_with("| ") && !line.starts_with("| you see") && !line.starts_with("| ---")
    });
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("four cells: {cells:?}"))
    })
}

fn is_on_the_page(cause: &str, told: &Value) {
    let word = format!("`{cause}`");
    let Some([_, _, sentence, command]) = rows().find(|row| row[1] == word) else {
        panic!("docs/troubleshooting.md has no row of {word}: {told}")
    };
    assert!(fits(told["sentence"].as_str().unwrap(), sentence), "the page says {sentence:?}: {told}");
    let next = told["next"][0].as_str().unwrap();
    assert!(fits(next, command.trim_matches('`')), "the page says {command}: {told}");
}

/// What changes from one time to the next stands as `…` in the pattern.
fn fits(text: &str, pattern: &str) -> bool {
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
fn types(house: &House, told: &Value) -> String {
    let line = told["next"][0].as_str().unwrap();
    let tmux = format!("{},0,0", house.tmux_socket().display());
    let output = house.command("sh").args(["-c", line]).env("TMUX", tmux).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// ann stays, and looks for mail by herself, if at all.
fn stays(house: &House) -> u32 {
    let script = format!("echo here; exec {} stay", house.agent());
    let pid = house.json(["spawn", "ann", "--", "sh", "-c", &script])["pid"].as_u64().unwrap();
    let logged = || house.teamctl(["logs", "ann"]).stdout.contains("here").then_some(());
    house.until("its word is in the log", logged);
    u32::try_from(pid).unwrap()
}

/// ann does the commands of tasks.
fn works(house: &House) {
    house.teamctl(["spawn", "ann", "--agent", "worker"]).ok();
    idle(house);
}

fn idle(house: &House) {
    house.until("ann is idle", || (house.member("ann")?["activity"] == "idle").then_some(()));
}

fn task(house: &House, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let made = house.json(["task", "create", "do it", "--metadata", &metadata]);
    made["task"]["id"].as_str().unwrap().to_owned()
}

fn first_process(house: &House) -> u32 {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap()
}

/// A process that does not run; it goes on when this is dropped, so that a failed test can look at it.
pub(crate) struct Stopped(u32);

impl Stopped {
    pub(crate) fn new(pid: u32) -> Stopped {
        signal(pid, rustix::process::Signal::STOP);
        Stopped(pid)
    }
}

impl Drop for Stopped {
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
fn every_row_of_the_page_is_planted() {
    let stories = [
        include_str!("why/ended.rs"),
        include_str!("why/files.rs"),
        include_str!("why/machine.rs"),
        include_str!("why/tasks.rs"),
        include_str!("why/waiting.rs"),
    ]
    .concat();
    let words: Vec<&str> = rows().map(|row| row[1].trim_matches('`')).collect();
    assert!(words.len() >= 20, "{words:?}");
    for word in words {
        assert!(stories.contains(&format!("\"{word}\"")), "no test plants {word}");
    }
}

#[test]
fn nobody_who_never_was_a_member_is_answered_for() {
    let house = House::with_team();
    stays(&house);
    let refused = house.teamctl(["why", "anm"]).fails(67);
    assert!(refused.contains("never was") && refused.contains("did you mean ann"), "{refused}");
    house.end();
}

#[test]
fn what_others_wrote_steers_no_terminal_and_passes_for_no_line_of_ours() {
    let house = House::with_team();
    stays(&house);
    house.teamctl(["send", "ann", "x"]).ok();
    let from = "eve\u{1b}[2J\n  > rm -r ~";
    let mut inbox = house.inbox("survey", "ann");
    inbox[0]["from"] = from.into();
    house.put("root/teams/survey/inboxes/ann.json", serde_json::to_string(&inbox).unwrap());
    says(&house, "unfed");
    let told = house.teamctl(["why", "ann"]).ok();
    assert!(!told.contains('\u{1b}') && told.contains("eve\\u{1b}[2J"), "{told}");
    assert!(told.lines().all(|line| !line.starts_with("  > rm")), "{told}");
    house.end();
}
