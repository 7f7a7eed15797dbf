//! Delivery by hooks: an interactive program in a pane, whose turn-end hook waits for messages
//! while the program is idle.

mod hook_owner;

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;

/// An environment with a team and the profile `hooked`, which starts the scripted agent as a
/// program with hooks.
fn env_with_hook_profile() -> TestEnv {
    let env = TestEnv::with_team();
    write_profile(&env, "hooked", "hook", "continued_key = \"stop_hook_active\"\n");
    env
}

/// Writes the profile `name`. Its program is the scripted agent in the mode of that name; `keys`
/// are further keys of the profile.
pub(crate) fn write_profile(env: &TestEnv, name: &str, delivery: &str, keys: &str) {
    let (agent, out) = (env.scripted_agent_path(), env.path("out/{name}").display().to_string());
    let text = format!(
        "delivery = \"{delivery}\"\nprogram = \"{agent}\"\nargs = [\"{name}\", \"{out}\"]\nprompt_args = [\"{{prompt}}\"]\n{keys}"
    );
    env.write_file(&format!("home/.config/teamd/profiles/{name}.toml"), text);
}

/// The texts of the turns of the agent so far.
fn turn_texts(env: &TestEnv, name: &str) -> Vec<String> {
    recorded_events(env, name, "text")
}

/// The values of the key `kind` that the agent has written to its file.
fn recorded_events(env: &TestEnv, name: &str, kind: &str) -> Vec<String> {
    let text = env.read(&format!("out/{name}"));
    let parse = |line: &str| {
        let event: Value = serde_json::from_str(line).ok()?;
        Some(event[kind].as_str()?.to_owned())
    };
    text.lines().filter_map(parse).collect()
}

#[test]
fn program_without_prompt_is_reported_and_not_active() {
    let env = TestEnv::with_team();
    env.write_profile("deaf", "delivery = \"hook\"\nprogram = \"sleep\"\nargs = [\"3600\"]\n");
    let output = env.teamctl(["spawn", "ann", "--profile", "deaf", "--prompt", "begin"]);
    assert!(output.stderr.contains("it gets no messages until a person begins a turn"), "{output:#?}");
    output.expect_success();
    assert_eq!(env.member("ann").unwrap()["activity"], Value::Null);
    let status = env.teamctl(["status", "ann", "--verbose"]).expect_success();
    assert!(status.contains("none of its hooks has reported yet"), "{status}");
    let environment = status.split_once("  environment:\n").unwrap().1;
    assert!(environment.lines().all(|line| line.starts_with("    ")), "the environment comes last: {status}");
    env.shut_down();
}

fn spawn(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--profile", "hooked", "--prompt", "begin"]).expect_success();
    wait_until_idle(env, name);
}

/// Waits until the member is idle and a message would wake it.
pub(crate) fn wait_until_idle(env: &TestEnv, name: &str) {
    env.wait_until("the hook waits for messages", || {
        has_activity(env, name, "idle", "turn-end").then_some(())
    });
}

/// Whether the member has this activity and this delivery point.
fn has_activity(env: &TestEnv, name: &str, activity: &str, delivery_point: &str) -> bool {
    env.member(name)
        .is_some_and(|member| member["activity"] == activity && member["delivery_point"] == delivery_point)
}

fn wait_for_turn(env: &TestEnv, name: &str, text: &str) -> String {
    let find = || turn_texts(env, name).into_iter().find(|turn| turn.contains(text));
    env.wait_until(&format!("a turn has the text {text}"), find)
}

pub(crate) fn unread_messages(env: &TestEnv, name: &str) -> Vec<String> {
    let inbox = env.inbox("survey", name).into_iter();
    inbox
        .filter(|message| message["read"] != true)
        .map(|message| message["text"].as_str().unwrap().to_owned())
        .collect()
}

fn idle_notifications(env: &TestEnv, name: &str) -> Vec<Value> {
    env.payloads_to_lead(name, "idle_notification")
}

fn hook_pid(env: &TestEnv) -> u32 {
    let hook = env.wait_until("a hook waits for messages", || running_hook(env));
    hook.split(' ').next().unwrap().parse().unwrap()
}

/// The turn-end hook that runs: its pid and its command line.
fn running_hook(env: &TestEnv) -> Option<String> {
    let is_hook = |line: &String| line.contains("teamd-shim hook turn-end");
    TaggedProcesses::with_tag(&env.process_tag()).list().into_iter().find(is_hook)
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
    assert_eq!(unread_messages(&env, "ann"), [""; 0], "the prompt is on the command line");
    assert!(turn_texts(&env, "ann")[0].ends_with("begin"));
    env.teamctl(["send", "ann", "are <you> there?", "--summary", "hello"]).expect_success();
    let turn = wait_for_turn(&env, "ann", "there?");
    let element = "<teammate-message teammate_id=\"team-lead\" summary=\"hello\">\nare &lt;you&gt; there?\n</teammate-message>";
    assert_eq!(turn, element);
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.wait_until("the lead is notified of two turns", || {
        (idle_notifications(&env, "ann").len() == 2).then_some(())
    });
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
    env.wait_until("ann is active", || has_activity(&env, "ann", "active", "turn-end").then_some(()));
    let bob = [("TEAMD_MEMBER", "bob")];
    env.teamctl_with(&["send", "ann", "third"], &bob).expect_success();
    env.teamctl(["send", "ann", "second"]).expect_success();
    env.teamctl(["send", "ann", "first", "--as-user"]).expect_success();
    assert_eq!(unread_messages(&env, "ann").len(), 4, "the message of the present turn is unread, too");
    env.open_gate("gate");
    let turn = wait_for_turn(&env, "ann", "third");
    let positions =
        ["first", "second", "third"].map(|word| turn.find(word).expect("the turn has all messages"));
    assert!(positions.is_sorted(), "{turn}");
    wait_until_idle(&env, "ann");
    assert_eq!(unread_messages(&env, "ann"), [""; 0]);
    env.shut_down();
}

#[test]
fn typing_ends_the_long_poll_until_the_next_turn_end() {
    if harness::skips_without(harness::Facility::TerminalReads) {
        return;
    }
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    // Input right after the start of the wait is ignored, because it can be a reply of the
    // terminal. So the line is typed until it counts.
    env.wait_until("the typed line is a turn", || {
        type_into(&env, "ann", "hello");
        turn_texts(&env, "ann").contains(&"hello".to_owned()).then_some(())
    });
    wait_until_idle(&env, "ann");
    env.shut_down();
}

/// Checks that a message which arrives while no hook waits stays unread, and that the next turn gets
/// it.
fn assert_unread_until_the_next_turn(env: &TestEnv) {
    env.wait_until("no hook waits for messages", || {
        has_activity(env, "ann", "idle", "on-pull").then_some(())
    });
    env.teamctl(["send", "ann", "hello?"]).expect_success();
    assert_eq!(unread_messages(env, "ann"), ["hello?"]);
    type_into(env, "ann", "go on");
    wait_for_turn(env, "ann", "hello?");
}

#[test]
fn killed_hook_marks_nothing_read() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.kill_process(hook_pid(&env));
    assert_unread_until_the_next_turn(&env);
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
    env.wait_until("the message is read", || unread_messages(&env, "ann").is_empty().then_some(()));
    assert_unread_until_the_next_turn(&env);
    env.shut_down();
}

#[test]
fn undelivered_messages_stay_unread_and_are_redelivered() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.teamctl(["task", "create", "not-now count"]).expect_success();
    let find_refusal = || recorded_events(&env, "ann", "refused").pop();
    env.wait_until("the program has refused the task", find_refusal);
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

/// Gemini reports whether a hook caused the turn, but always reports false.
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
    let turns = turn_texts(&env, "ann").into_iter().filter(|turn| turn.contains("letter 1"));
    assert_eq!(turns.count(), 1, "{:?}", turn_texts(&env, "ann"));
    env.shut_down();
}

#[test]
fn message_that_was_not_taken_stays_unread() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    env.teamctl(["send", "ann", "not-now, later"]).expect_success();
    env.wait_until("the program has refused the message", || recorded_events(&env, "ann", "refused").pop());
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
    env.wait_until("the member and its hook have ended", || {
        let status = env.json(["status"]);
        let is_past_member =
            status["teams"][0]["past_members"].as_array().is_some_and(|members| members.len() == 1);
        (is_past_member && harness::start_time(hook).is_none()).then_some(())
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

/// The next daemon knows the task of a turn: whether the turn ends after the start of this daemon, or
/// while no daemon runs.
#[test]
fn task_of_a_turn_is_completed_after_a_daemon_restart() {
    for daemon_start in [DaemonStart::BeforeTurnEnd, DaemonStart::AfterTurnEnd] {
        let env = env_with_hook_profile();
        let gate = env.create_gate("gate");
        spawn(&env, "ann");
        let description = format!("hold:{gate}");
        env.teamctl(["task", "create", "count", "--description", &description]).expect_success();
        wait_for_turn(&env, "ann", "count");
        env.wait_until("the task's delivery is reported", || running_hook(&env).is_none().then_some(()));
        env.kill_process(env.daemon_pid());
        if daemon_start == DaemonStart::BeforeTurnEnd {
            env.start_daemon();
        }
        env.open_gate("gate");
        if daemon_start == DaemonStart::AfterTurnEnd {
            hook_pid(&env);
            env.start_daemon();
        }
        env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
        wait_until_idle(&env, "ann");
        let turns = turn_texts(&env, "ann").into_iter().filter(|turn| turn.contains("count"));
        assert_eq!(turns.count(), 1, "{daemon_start:?}: {:?}", turn_texts(&env, "ann"));
        env.shut_down();
    }
}

/// When the daemon starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DaemonStart {
    BeforeTurnEnd,
    AfterTurnEnd,
}

#[test]
fn newer_of_two_hooks_waits() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    let first_hook = hook_pid(&env);
    let environ = std::fs::read(format!("/proc/{first_hook}/environ")).unwrap();
    let mut second = env.command(harness::programs().join("teamd-shim"));
    second.args(["hook", "turn-end"]).stdout(std::process::Stdio::piped());
    for pair in String::from_utf8_lossy(&environ).split('\0').filter_map(|pair| pair.split_once('=')) {
        second.env(pair.0, pair.1);
    }
    let second_hook = second.spawn().unwrap();
    env.wait_until("the first hook has ended", || harness::start_time(first_hook).is_none().then_some(()));
    wait_until_idle(&env, "ann");
    env.teamctl(["send", "ann", "once"]).expect_success();
    let output = second_hook.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("once").count(), 1);
    assert_eq!(idle_notifications(&env, "ann").len(), 1, "the lead is notified of one turn");
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
    let notifications = idle_notifications(&env, "ann");
    assert_eq!(notifications.last().unwrap()["completedStatus"], "completed", "{notifications:?}");
    env.shut_down();
}

#[test]
fn shutdown_request_is_delivered_with_instructions() {
    let env = env_with_hook_profile();
    spawn(&env, "ann");
    let shutdown = env.start_teamctl(["shutdown", "ann", "--reason", "that was all"]);
    let turn = wait_for_turn(&env, "ann", "that was all");
    let id = turn.split("teamctl answer-shutdown ").nth(1).unwrap().split(' ').next().unwrap();
    env.teamctl_with(&["answer-shutdown", id, "--approve"], &[("TEAMD_MEMBER", "ann")]).expect_success();
    assert!(shutdown.wait_with_output().unwrap().status.success());
    env.shut_down();
}

#[test]
fn dialog_is_shown_until_the_program_continues() {
    let env = env_with_hook_profile();
    let gate = env.create_gate("gate");
    spawn(&env, "ann");
    env.teamctl(["send", "ann", &format!("notify hold:{gate}")]).expect_success();
    let flags = || env.member("ann").unwrap()["flags"].clone();
    env.wait_until("status shows the dialog", || (flags() == serde_json::json!(["at_dialog"])).then_some(()));
    env.open_gate("gate");
    wait_until_idle(&env, "ann");
    assert_eq!(flags(), serde_json::json!([]));
    env.shut_down();
}
