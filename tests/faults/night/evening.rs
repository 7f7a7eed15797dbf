//! The evening: the run begins, two programs crash, one waits at a dialog, one reaches its usage limit, a turn
//! hangs, two members answer each other without end, and a plan waits for a person.

use super::messages::{PLANNER_NOTE, send, wait_until_exchange_pauses};
use super::records::{is_done, wait_until_done};
use super::team::{PLANNER, release, run_printed_command, running_member, stop_holding, wait_until_held};
use harness::TestEnv;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a notice may take. The daemon looks for turns without output only every 30 s.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(60);

/// Plays the evening. Returns the id of the planner's request.
pub(super) fn play(env: &TestEnv) -> String {
    wait_until_held(env, "b1", 1);
    send(env, "bob", "note while-hung");
    let plan = wait_for_plan(env);
    send(env, PLANNER_NOTE.0, PLANNER_NOTE.1);
    check_dialog(env);
    check_usage_limit(env);
    send(env, "dan", "ball 1");
    wait_until_exchange_pauses(env);
    check_hung_turn(env);
    crash_programs(env);
    wait_until_done(env, &["a2", "d1", "e1", "q1"]);
    plan
}

/// Waits for the request of the planner. Returns its id.
pub(super) fn wait_for_plan(env: &TestEnv) -> String {
    let request =
        env.wait_until("the planner submits its plan", || env.json(["requests"])["requests"].get(0).cloned());
    assert_eq!(request["from"], PLANNER, "{request}");
    request["id"].as_str().unwrap().to_owned()
}

/// The program of gil waits at a dialog. Its user is told, and answers.
fn check_dialog(env: &TestEnv) {
    wait_for_notice(env, ["gil@night waits at a dialog", "1 member is at a dialog"]);
    let cause = first_cause(env, "gil");
    assert_eq!(cause["cause"], "at_dialog", "{cause}");
    assert_eq!(cause["next"], json!(["teamctl capture gil", "teamctl attach gil"]), "{cause}");
    assert!(!is_done(env, "g1"));
    send(env, "gil", "note at-the-dialog");
    env.open_gate("out/dialog");
    wait_until_done(env, &["g1"]);
    // The dialogs of the second night end at once.
    std::fs::remove_file(env.path("out/dialog")).unwrap();
    env.write_file("out/dialog", "");
}

/// The turns of ann fail until its limit is over. Then a message of the lead ends the pause.
fn check_usage_limit(env: &TestEnv) {
    env.wait_until("the first turn of ann has failed", || {
        (!env.read("out/limited").is_empty()).then_some(())
    });
    send(env, "ann", "note at-the-limit");
    wait_for_notice(env, ["ann@night fails: 3 turns in a row", "1 member fails turn after turn"]);
    let cause = first_cause(env, "ann");
    assert_eq!(cause["cause"], "turns_failed", "{cause}");
    assert_eq!(cause["evidence"][0], "exit 1: usage limit reached", "{cause}");
    assert!(!is_done(env, "a1"));
    std::fs::remove_file(env.path("out/limit-ann")).unwrap();
    send(env, "ann", "note after-the-limit");
    wait_until_done(env, &["a1"]);
}

/// The turn of bob hangs. Its user is told, and types what `why` suggests: first the interrupt, then the
/// release of the task.
fn check_hung_turn(env: &TestEnv) {
    wait_for_notice(env, ["bob@night has written nothing", "1 member has written nothing"]);
    let cause = first_cause(env, "bob");
    assert_eq!(cause["cause"], "no_output", "{cause}");
    assert_eq!(cause["next"], json!(["teamctl capture bob", "teamctl interrupt bob"]), "{cause}");
    stop_holding(env, "b1");
    for command in cause["next"].as_array().unwrap() {
        run_printed_command(env, command.as_str().unwrap());
    }
    env.wait_until("bob has taken its message", || {
        running_member(env, "bob").filter(|bob| bob["unread"] == 0 && bob["activity"] == "idle")
    });
    let next = first_cause(env, "bob")["next"].clone();
    let mut commands = next.as_array().unwrap().iter().filter_map(Value::as_str);
    let command = commands.find(|command| command.starts_with("teamctl task release ")).unwrap().to_owned();
    run_printed_command(env, &command);
    wait_until_done(env, &["b1"]);
    let id = command.rsplit(' ').next().unwrap();
    assert_eq!(env.json(["task", "get", id])["task"]["owner"], "bob", "the run file gives b1 to bob alone");
}

/// The programs of fay and hal crash with a task and an unread message.
fn crash_programs(env: &TestEnv) {
    for (name, key) in [("fay", "f1"), ("hal", "h1")] {
        wait_until_held(env, key, 1);
        send(env, name, "note before-the-crash");
    }
    release_and_wait(env, &["f1", "h1"]);
}

/// Waits until people are told by one of these texts: a notice alone, or a summary of several.
pub(super) fn wait_for_notice(env: &TestEnv, texts: [&str; 2]) {
    env.wait_until_within(NOTICE_TIMEOUT, &format!("people are told: {}", texts[0]), || {
        let notices = env.read("out/notices");
        texts.iter().any(|text| notices.contains(text)).then_some(())
    });
}

/// The first cause that `why` names.
pub(super) fn first_cause(env: &TestEnv, name: &str) -> Value {
    env.json(["why", name])["causes"][0].clone()
}

/// Lets the tasks go on that were held, and waits until they are done.
pub(super) fn release_and_wait(env: &TestEnv, keys: &[&str]) {
    keys.iter().for_each(|key| release(env, key));
    wait_until_done(env, keys);
}
