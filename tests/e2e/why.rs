//! Checks `teamctl why`: each test brings the member ann into one state, and `why` must name its
//! cause first. Sentence and command must match the cause's row in docs/troubleshooting.md.

mod inbox_locks;
mod not_running;
mod system;
mod task_waits;
mod waiting;

use harness::TestEnv;
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/troubleshooting.md");

/// Waits until `name` is the first cause of ann, and checks that the page documents it. Returns the
/// cause.
fn assert_first_cause(env: &TestEnv, name: &str) -> Value {
    assert_cause_with_options(env, name, &[])
}

/// Like [`assert_first_cause`], with the options `more` of `why`.
fn assert_cause_with_options(env: &TestEnv, name: &str, more: &[&str]) -> Value {
    let args = [&["--json", "why", "ann"], more].concat();
    let mut last_output = String::new();
    let mut print_if_changed = |output: String| {
        if std::mem::replace(&mut last_output, output.clone()) != output {
            print_output(&output);
        }
    };
    let cause = env.wait_until(&format!("the first cause is {name}"), || {
        let output = env.teamctl_with(&args, &[]);
        print_if_changed(format!("{} {}", output.code, output.stdout));
        let first = output.code.eq(&0).then(|| output.json()["causes"][0].clone())?;
        (first["cause"] == name).then_some(first)
    });
    let text = env.teamctl_with(&args[1..], &[]).expect_success();
    assert!(text.lines().count() > 1, "the text has a sentence and evidence: {text}");
    assert_documented(name, &cause);
    cause
}

/// Prints an output of `why`. If the test fails, its log shows all outputs before the failure.
#[allow(clippy::print_stderr, reason = "a test's own output")]
fn print_output(output: &str) {
    eprintln!("{output}");
}

/// Like [`assert_first_cause`], for a cause that names another inbox than ann's.
/// `to_documented_sentence` changes its sentence into the one on the page.
fn assert_cause_for_inbox(env: &TestEnv, name: &str, to_documented_sentence: fn(&str) -> String) -> Value {
    let first_cause = || env.json(["why", "ann"])["causes"][0].clone();
    let cause = env.wait_until(&format!("the first cause is {name}"), || {
        Some(first_cause()).filter(|cause| cause["cause"] == name)
    });
    let mut documented = cause.clone();
    documented["sentence"] = to_documented_sentence(cause["sentence"].as_str().unwrap()).into();
    assert_documented(name, &documented);
    cause
}

/// The rows of the page: the symptom, the name of the cause, its sentence, the command.
fn documented_causes() -> impl Iterator<Item = [&'static str; 4]> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| symptom"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("a row has four cells: {cells:?}"))
    })
}

/// Checks that sentence and first command of the cause match its row of the page.
pub(crate) fn assert_documented(name: &str, cause: &Value) {
    let cell = format!("`{name}`");
    let Some([_, _, sentence, command]) = documented_causes().find(|row| row[1] == cell) else {
        panic!("docs/troubleshooting.md has no row of {cell}: {cause}")
    };
    assert!(
        matches_pattern(cause["sentence"].as_str().unwrap(), sentence),
        "the page has the sentence {sentence:?}: {cause}"
    );
    let next = cause["next"][0].as_str().unwrap();
    assert!(matches_pattern(next, command.trim_matches('`')), "the page has the command {command}: {cause}");
}

/// Whether the text matches the pattern, in which `…` stands for any text.
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

/// Runs the first command that the cause suggests, as in a tmux pane. Returns its stdout.
fn run_suggested_command(env: &TestEnv, cause: &Value) -> String {
    let command = cause["next"][0].as_str().unwrap();
    let tmux = format!("{},0,0", env.tmux_socket().display());
    let output = env.command("sh").args(["-c", command]).env("TMUX", tmux).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Spawns ann with an agent that does nothing and reads no messages. Returns its pid.
fn spawn_idle_agent(env: &TestEnv) -> u32 {
    let script = format!("echo here; exec {} stay", env.scripted_agent_path());
    let pid = env.json(["spawn", "ann", "--", "sh", "-c", &script])["pid"].as_u64().unwrap();
    let has_output = || env.teamctl(["logs", "ann"]).stdout.contains("here").then_some(());
    env.wait_until("ann's output is in the log", has_output);
    u32::try_from(pid).unwrap()
}

/// Spawns ann as a worker, which runs the commands of tasks.
fn spawn_worker(env: &TestEnv) {
    env.teamctl(["spawn", "ann", "--profile", "worker"]).expect_success();
    wait_until_idle(env);
}

fn wait_until_idle(env: &TestEnv) {
    env.wait_until("ann is idle", || (env.member("ann")?["activity"] == "idle").then_some(()));
}

fn create_task(env: &TestEnv, command: &str) -> String {
    let metadata = serde_json::json!({ "command": command }).to_string();
    let reply = env.json(["task", "create", "do it", "--metadata", &metadata]);
    reply["task"]["id"].as_str().unwrap().to_owned()
}

fn shim_pid(env: &TestEnv) -> u32 {
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    env.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap()
}

/// A stopped process. It continues when this value is dropped, so that a failed test can still end
/// its environment.
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

/// Sends a signal to a process, which may have exited already.
fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap_or_default();
}

/// Checks that a test exists for every row of the page.
#[test]
fn every_cause_of_the_docs_page_is_tested() {
    let tests = [
        include_str!("annex/no_contact.rs"),
        include_str!("failed_turns.rs"),
        include_str!("why/not_running.rs"),
        include_str!("why/inbox_locks.rs"),
        include_str!("why/system.rs"),
        include_str!("why/task_waits.rs"),
        include_str!("why/waiting.rs"),
    ]
    .concat();
    let names: Vec<&str> = documented_causes().map(|row| row[1].trim_matches('`')).collect();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("\"{name}\"")), "no test has the cause {name}");
    }
}

#[test]
fn team_without_members_is_said_to_have_none() {
    let env = TestEnv::with_team();
    env.teamctl(["task", "create", "dig"]).expect_success();
    let output = env.teamctl(["why"]).expect_success();
    let sentence = "survey has no member that runs, and 1 task is open; start one with: teamctl spawn NAME\n";
    assert_eq!(output, sentence);
    env.shut_down();
}

#[test]
fn hidden_member_counts_as_one_that_runs() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    env.teamctl(["hide", "ann"]).expect_success();
    let output = env.teamctl(["why"]).expect_success();
    assert_eq!(output, "Nothing holds survey up: 1 member works, 0 members are idle.\n");
    env.shut_down();
}

#[test]
fn unknown_member_is_an_error() {
    let env = TestEnv::with_team();
    spawn_idle_agent(&env);
    let error = env.teamctl(["why", "anm"]).expect_failure(67);
    assert!(error.contains("never was") && error.contains("did you mean ann"), "{error}");
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
    let output = env.teamctl(["why", "ann"]).expect_success();
    assert!(!output.contains('\u{1b}') && output.contains("eve\\u{1b}[2J"), "{output}");
    assert!(output.lines().all(|line| !line.starts_with("  > rm")), "{output}");
    env.shut_down();
}
