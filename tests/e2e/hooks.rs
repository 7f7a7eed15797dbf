//! Programs that are fed by their own hooks: an interactive one in a real pane, whose hook waits for mail while it is
//! idle.

mod hook_owner;

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;

/// A team, and a profile called `hooked` for the scripted program.
fn env_with_hook_profile() -> TestEnv {
    let env = TestEnv::with_team();
    write_profile(&env, "hooked", "hook", "continued_key = \"stop_hook_active\"\n");
    env
}

pub(crate) fn write_profile(env: &TestEnv, name: &str, delivery: &str, more: &str) {
    let (agent, out) = (env.scripted_agent_path(), env.path("out/{name}").display().to_string());
    let text = format!(
        "delivery = \"{delivery}\"\nprogram = \"{agent}\"\nargs = [\"{name}\", \"{out}\"]\nprompt_args = [\"{{prompt}}\"]\n{more}"
    );
    env.write_file(&format!("home/.config/teamd/profiles/{name}.toml"), text);
}

/// The texts of its turns so far.
fn turn_texts(env: &TestEnv, name: &str) -> Vec<String> {
    recorded_events(env, name, "text")
}

/// What it wrote down of that kind.
fn recorded_events(env: &TestEnv, name: &str, kind: &str) -> Vec<String> {
    let text = env.read(&format!("out/{name}"));
    let line = |line: &str| {
        let turn: Value = serde_json::from_str(line).ok()?;
        Some(turn[kind].as_str()?.to_owned())
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn program_without_prompt_is_reported_and_not_active() {
    let env = TestEnv::with_team();
    env.write_profile("deaf", "delivery = \"hook\"\nprogram = \"sleep\"\nargs = [\"3600\"]\n");
    let spawned = env.teamctl(["spawn", "ann", "--profile", "deaf", "--prompt", "begin"]);
    assert!(spawned.stderr.contains("it gets no messages until a person begins a turn"), "{spawned:#?}");
    spawned.expect_success();
    assert_eq!(env.member("ann").unwrap()["activity"], Value::Null);
    let told = env.teamctl(["status", "ann", "--verbose"]).expect_success();
    assert!(told.contains("none of its hooks has reported yet"), "{told}");
    let environment = told.split_once("  environment:\n").unwrap().1;
    assert!(environment.lines().all(|line| line.starts_with("    ")), "it is last: {told}");
    env.shut_down();
}

fn spawn(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--profile", "hooked", "--prompt", "begin"]).expect_success();
    wait_until_idle(env, name);
}

/// Idle, and mail would reach it.
pub(crate) fn wait_until_idle(env: &TestEnv, name: &str) {
    env.wait_until("its hook waits", || wait_for_activity(env, name, "idle", "turn-end").then_some(()));
}

fn wait_for_activity(env: &TestEnv, name: &str, activity: &str, reaches: &str) -> bool {
    env.member(name)
        .is_some_and(|member| member["activity"] == activity && member["delivery_point"] == reaches)
}

fn wait_for_turn(env: &TestEnv, name: &str, text: &str) -> String {
    let found = || turn_texts(env, name).into_iter().find(|turn| turn.contains(text));
    env.wait_until(&format!("a turn on {text}"), found)
}

pub(crate) fn unread_messages(env: &TestEnv, name: &str) -> Vec<String> {
    let inbox = env.inbox("survey", name).into_iter();
    inbox.filter(|m| m["read"] != true).map(|m| m["text"].as_str().unwrap().to_owned()).collect()
}

fn idle_notifications(env: &TestEnv, name: &str) -> Vec<Value> {
    env.payloads_to_lead(name, "idle_notification")
}

fn hook_pid(env: &TestEnv) -> u32 {
    let hook = |line: &String| line.contains("teamd-shim hook turn-end");
    let found = || TaggedProcesses::with_tag(&env.process_tag()).list().into_iter().find(hook);
    env.wait_until("a hook waits", found).split(' ').next().unwrap().parse().unwrap()
}

fn type_into(env: &TestEnv, name: &str, keys: &str) {
    let pane = env.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
    env.tmux(["send-keys", "-t", &pane, "-l", keys]);
    env.tmux(["send-keys", "-t", &pane, "Enter"]);
}

#[test]
fn message_wakes_an_idle_program_and_is_marked_read() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0], "the prompt went with the command line");
    assert!(turn_texts(&env, "ann")[0].ends_with("begin"));
    env.teamctl(["send", "ann", "are <you> there?", "--summary", "hello"]).expect_success();
    let turn = wait_for_turn(&env, "ann", "there?");
    let element = "<teammate-message teammate_id=\"team-lead\" summary=\"hello\">\nare &lt;you&gt; there?\n</teammate-message>";
    assert_eq!(turn, element);
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.wait_until("two turns are told", || (idle_notifications(&env, "ann").len() == 2).then_some(()));
    assert_eq!(idle_notifications(&env, "ann")[1]["summary"], "turn 2 is done");
    env.shut_down();
}

#[test]
fn messages_during_a_turn_are_delivered_in_order_at_its_end() {
    let env = env_with_hook_profile();
    env.teamctl(["spawn", "bob", "--", "sleep", "1000"]).expect_success();
    let gate = env.create_gate("gate");
    spawn(&env, "ann");
    env.teamctl(["send", "ann", &format!("work hold:{gate} on")]).expect_success();
    wait_for_turn(&env, "ann", "hold:");
    env.wait_until("it is active", || wait_for_activity(&env, "ann", "active", "turn-end").then_some(()));
    let bob = [("TEAMD_MEMBER", "bob")];
    env.teamctl_with(&["send", "ann", "third"], &bob).expect_success();
    env.teamctl(["send", "ann", "second"]).expect_success();
    env.teamctl(["send", "ann", "first", "--as-user"]).expect_success();
    assert_eq!(unread_messages(&env, "ann").len(), 4, "with that which it works on");
    env.open_gate("gate");
    let turn = wait_for_turn(&env, "ann", "third");
    let places = ["first", "second", "third"].map(|word| turn.find(word).expect("all of them"));
    assert!(places.is_sorted(), "{turn}");
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.shut_down();
}

#[test]
fn typing_ends_the_long_poll_until_the_next_turn_end() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    // What a terminal answers right after the wait began is not a person's: so again until it counts.
    env.wait_until("the typed line is a turn", || {
        type_into(&env, "ann", "hello");
        turn_texts(&env, "ann").contains(&"hello".to_owned()).then_some(())
    });
    wait_until_idle(&env, "ann");
    env.shut_down();
}

#[test]
fn killed_hook_marks_nothing_read() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.kill_process(hook_pid(&env));
    env.wait_until("nobody waits", || wait_for_activity(&env, "ann", "idle", "on-pull").then_some(()));
    env.teamctl(["send", "ann", "hello?"]).expect_success();
    assert_eq!(unread_messages(&env, "ann"), ["hello?"]);
    type_into(&env, "ann", "go on");
    wait_for_turn(&env, "ann", "hello?");
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.shut_down();
}

#[test]
fn abandoned_hook_marks_nothing_read() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.teamctl(["send", "ann", "give-up"]).expect_success();
    wait_for_turn(&env, "ann", "give-up");
    env.wait_until("it is taken", || unread_messages(&env, "ann").is_empty().then_some(()));
    env.wait_until("nobody waits", || wait_for_activity(&env, "ann", "idle", "on-pull").then_some(()));
    env.teamctl(["send", "ann", "hello?"]).expect_success();
    assert_eq!(unread_messages(&env, "ann"), ["hello?"]);
    type_into(&env, "ann", "go on");
    wait_for_turn(&env, "ann", "hello?");
    env.shut_down();
}

#[test]
fn undelivered_messages_stay_unread_and_are_redelivered() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.teamctl(["task", "create", "not-now count"]).expect_success();
    let refused = || recorded_events(&env, "ann", "refused").pop();
    env.wait_until("it is not taken", refused);
    env.teamctl(["send", "ann", "a letter"]).expect_success();
    assert_eq!(unread_messages(&env, "ann").last().unwrap(), "a letter");
    type_into(&env, "ann", "go on");
    wait_for_turn(&env, "ann", "a letter");
    wait_for_turn(&env, "ann", "not-now count");
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    env.shut_down();
}

/// Gemini has the field, and it is false whatever the hook has said.
#[test]
fn program_without_continue_report_is_trusted() {
    let env = TestEnv::with_team();
    let (agent, out) = (env.scripted_agent_path(), env.path("out/{name}").display().to_string());
    let args = format!("args = [\"hooked\", \"{out}\", \"--never-says\"]\nprompt_args = [\"{{prompt}}\"]\n");
    env.write_profile("hooked", &format!("delivery = \"hook\"\nprogram = \"{agent}\"\n{args}"));
    spawn(&env, "ann");
    for text in ["letter 1", "letter 2"] {
        env.teamctl(["send", "ann", text]).expect_success();
        wait_for_turn(&env, "ann", text);
        wait_until_idle(&env, "ann");
        assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    }
    let taken = turn_texts(&env, "ann").into_iter().filter(|turn| turn.contains("letter 1"));
    assert_eq!(taken.count(), 1, "{:?}", turn_texts(&env, "ann"));
    env.shut_down();
}

#[test]
fn message_that_was_not_taken_stays_unread() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.teamctl(["send", "ann", "not-now, later"]).expect_success();
    env.wait_until("it is not taken", || recorded_events(&env, "ann", "refused").pop());
    assert_eq!(unread_messages(&env, "ann"), ["not-now, later"]);
    type_into(&env, "ann", "go on");
    wait_for_turn(&env, "ann", "not-now, later");
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.shut_down();
}

#[test]
fn hook_ends_with_its_program() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    let hook = hook_pid(&env);
    let pid = env.member("ann").unwrap()["pid"].as_u64().unwrap();
    env.kill_process(u32::try_from(pid).unwrap());
    env.wait_until("the hook is gone", || {
        let status = env.json(["status"]);
        let gone = status["teams"][0]["past_members"].as_array().is_some_and(|past| past.len() == 1);
        (gone && harness::start_time(hook).is_none()).then_some(())
    });
    env.shut_down();
}

#[test]
fn restarted_daemon_wakes_a_waiting_hook() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.kill_process(env.daemon_pid());
    env.teamctl(["send", "ann", "sent without a daemon"]).expect_success();
    env.start_daemon();
    wait_for_turn(&env, "ann", "without a daemon");
    wait_until_idle(&env, "ann");
    env.teamctl(["send", "ann", "and with one"]).expect_success();
    wait_for_turn(&env, "ann", "and with one");
    env.shut_down();
}

#[test]
fn newer_of_two_hooks_waits() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    let first = hook_pid(&env);
    let environ = std::fs::read(format!("/proc/{first}/environ")).unwrap();
    let mut second = env.command(harness::programs().join("teamd-shim"));
    second.args(["hook", "turn-end"]).stdout(std::process::Stdio::piped());
    for pair in String::from_utf8_lossy(&environ).split('\0').filter_map(|pair| pair.split_once('=')) {
        second.env(pair.0, pair.1);
    }
    let second = second.spawn().unwrap();
    env.wait_until("the first is gone", || harness::start_time(first).is_none().then_some(()));
    wait_until_idle(&env, "ann");
    env.teamctl(["send", "ann", "once"]).expect_success();
    let said = second.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout).matches("once").count(), 1);
    assert_eq!(idle_notifications(&env, "ann").len(), 1, "one turn has ended");
    env.shut_down();
}

#[test]
fn task_is_delivered_and_completed_by_its_turn() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.teamctl(["task", "create", "count the lines"]).expect_success();
    let turn = wait_for_turn(&env, "ann", "count the lines");
    assert!(turn.contains("teamctl task done"), "{turn}");
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    wait_until_idle(&env, "ann");
    let told = idle_notifications(&env, "ann");
    assert_eq!(told.last().unwrap()["completedStatus"], "completed", "{told:?}");
    env.shut_down();
}

#[test]
fn shutdown_request_is_delivered_with_instructions() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    let asked = env.start_teamctl(["shutdown", "ann", "--reason", "that was all"]);
    let turn = wait_for_turn(&env, "ann", "that was all");
    let id = turn.split("teamctl answer-shutdown ").nth(1).unwrap().split(' ').next().unwrap();
    env.teamctl_with(&["answer-shutdown", id, "--approve"], &[("TEAMD_MEMBER", "ann")]).expect_success();
    assert!(asked.wait_with_output().unwrap().status.success());
    env.shut_down();
}

#[test]
fn dialog_is_shown_until_the_program_continues() {
    let env = env_with_hook_profile();
    let gate = env.create_gate("gate");
    spawn(&env, "ann");
    env.teamctl(["send", "ann", &format!("notify hold:{gate}")]).expect_success();
    let flags = || env.member("ann").unwrap()["flags"].clone();
    env.wait_until("it is at a dialog", || (flags() == serde_json::json!(["at_dialog"])).then_some(()));
    env.open_gate("gate");
    wait_until_idle(&env, "ann");
    assert_eq!(flags(), serde_json::json!([]));
    env.shut_down();
}
