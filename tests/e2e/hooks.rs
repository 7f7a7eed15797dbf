//! Programs that are fed by their own hooks: an interactive one in a real pane, whose hook waits for mail while it is
//! idle.

mod whose;

use harness::{House, Processes};
use serde_json::Value;

/// A team, and a profile called `hooked` for the scripted program.
fn house() -> House {
    let house = House::with_team();
    profile(&house, "hooked", "hook", "taken = \"stop_hook_active\"\n");
    house
}

pub(crate) fn profile(house: &House, name: &str, feed: &str, more: &str) {
    let (agent, out) = (house.agent(), house.path("out/{name}").display().to_string());
    let text = format!(
        "feed = \"{feed}\"\nprogram = \"{agent}\"\nargs = [\"{name}\", \"{out}\"]\nprompt = [\"{{prompt}}\"]\n{more}"
    );
    house.put(&format!("home/.config/teamd/agents/{name}.toml"), text);
}

/// The texts of its turns so far.
fn turns(house: &House, name: &str) -> Vec<String> {
    noted(house, name, "text")
}

/// What it wrote down of that kind.
fn noted(house: &House, name: &str, kind: &str) -> Vec<String> {
    let text = house.read(&format!("out/{name}"));
    let line = |line: &str| {
        let turn: Value = serde_json::from_str(line).ok()?;
        Some(turn[kind].as_str()?.to_owned())
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn a_program_with_hooks_that_takes_no_prompt_is_warned_of_and_not_told_as_active() {
    let house = House::with_team();
    house.profile("deaf", "feed = \"hook\"\nprogram = \"sleep\"\nargs = [\"3600\"]\n");
    let spawned = house.teamctl(["spawn", "ann", "--agent", "deaf", "--prompt", "begin"]);
    assert!(spawned.stderr.contains("it hears nothing until somebody begins a turn"), "{spawned:#?}");
    spawned.ok();
    assert_eq!(house.member("ann").unwrap()["activity"], Value::Null);
    let told = house.teamctl(["status", "ann"]).ok();
    assert!(told.contains("no hook of it has said anything"), "{told}");
    let environment = told.split_once("  environment:\n").unwrap().1;
    assert!(environment.lines().all(|line| line.starts_with("    ")), "it is last: {told}");
    house.end();
}

fn spawn(house: &House, name: &str) {
    house.teamctl(["spawn", name, "--agent", "hooked", "--prompt", "begin"]).ok();
    waits(house, name);
}

/// Idle, and mail would reach it.
pub(crate) fn waits(house: &House, name: &str) {
    house.until("its hook waits", || is(house, name, "idle", "turn-end").then_some(()));
}

fn is(house: &House, name: &str, activity: &str, reaches: &str) -> bool {
    house.member(name).is_some_and(|member| member["activity"] == activity && member["reaches"] == reaches)
}

fn until_turn(house: &House, name: &str, text: &str) -> String {
    let found = || turns(house, name).into_iter().find(|turn| turn.contains(text));
    house.until(&format!("a turn on {text}"), found)
}

pub(crate) fn unread(house: &House, name: &str) -> Vec<String> {
    let inbox = house.inbox("survey", name).into_iter();
    inbox.filter(|m| m["read"] != true).map(|m| m["text"].as_str().unwrap().to_owned()).collect()
}

fn idle_told(house: &House, name: &str) -> Vec<Value> {
    house.told(name, "idle_notification")
}

fn pid_of_hook(house: &House) -> u32 {
    let hook = |line: &String| line.contains("teamctl hook turn-end");
    let found = || Processes::marked(&house.mark()).list().into_iter().find(hook);
    house.until("a hook waits", found).split(' ').next().unwrap().parse().unwrap()
}

fn type_into(house: &House, name: &str, keys: &str) {
    let pane = house.member(name).unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, "-l", keys]);
    house.tmux(["send-keys", "-t", &pane, "Enter"]);
}

#[test]
fn mail_wakes_an_idle_program_through_its_hook_and_is_read_then() {
    let house = house();
    spawn(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0], "the prompt went with the command line");
    assert!(turns(&house, "ann")[0].ends_with("begin"));
    house.teamctl(["send", "ann", "are <you> there?", "--summary", "hello"]).ok();
    let turn = until_turn(&house, "ann", "there?");
    let element = "<teammate-message teammate_id=\"team-lead\" summary=\"hello\">\nare &lt;you&gt; there?\n</teammate-message>";
    assert_eq!(turn, element);
    waits(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.until("two turns are told", || (idle_told(&house, "ann").len() == 2).then_some(()));
    assert_eq!(idle_told(&house, "ann")[1]["summary"], "turn 2 is done");
    house.end();
}

#[test]
fn mail_in_a_turn_waits_for_its_end_and_comes_all_at_once_in_order() {
    let house = house();
    house.teamctl(["spawn", "bob", "--", "sleep", "1000"]).ok();
    let gate = house.gate("gate");
    spawn(&house, "ann");
    house.teamctl(["send", "ann", &format!("work hold:{gate} on")]).ok();
    until_turn(&house, "ann", "hold:");
    house.until("it is active", || is(&house, "ann", "active", "turn-end").then_some(()));
    let bob = [("TEAMD_AGENT", "bob")];
    house.teamctl_with(&["send", "ann", "third"], &bob).ok();
    house.teamctl(["send", "ann", "second"]).ok();
    house.teamctl(["send", "ann", "first", "--as-user"]).ok();
    assert_eq!(unread(&house, "ann").len(), 4, "with that which it works on");
    house.open_gate("gate");
    let turn = until_turn(&house, "ann", "third");
    let places = ["first", "second", "third"].map(|word| turn.find(word).expect("all of them"));
    assert!(places.is_sorted(), "{turn}");
    waits(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.end();
}

#[test]
fn a_person_who_types_releases_the_program_and_status_says_so_until_its_next_turn_ends() {
    let house = house();
    spawn(&house, "ann");
    // What a terminal answers right after the wait began is not a person's: so again until it counts.
    house.until("the typed line is a turn", || {
        type_into(&house, "ann", "hello");
        turns(&house, "ann").contains(&"hello".to_owned()).then_some(())
    });
    waits(&house, "ann");
    house.end();
}

#[test]
fn a_hook_that_is_killed_reads_nothing_and_status_says_that_mail_waits() {
    let house = house();
    spawn(&house, "ann");
    house.kill_9(pid_of_hook(&house));
    house.until("nobody waits", || is(&house, "ann", "idle", "when-asked").then_some(()));
    house.teamctl(["send", "ann", "hello?"]).ok();
    assert_eq!(unread(&house, "ann"), ["hello?"]);
    type_into(&house, "ann", "go on");
    until_turn(&house, "ann", "hello?");
    waits(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.end();
}

#[test]
fn nothing_is_read_where_the_program_has_given_up_on_its_hook() {
    let house = house();
    spawn(&house, "ann");
    house.teamctl(["send", "ann", "give-up"]).ok();
    until_turn(&house, "ann", "give-up");
    house.until("it is taken", || unread(&house, "ann").is_empty().then_some(()));
    house.until("nobody waits", || is(&house, "ann", "idle", "when-asked").then_some(()));
    house.teamctl(["send", "ann", "hello?"]).ok();
    assert_eq!(unread(&house, "ann"), ["hello?"]);
    type_into(&house, "ann", "go on");
    until_turn(&house, "ann", "hello?");
    house.end();
}

#[test]
fn mail_that_the_program_does_not_take_any_more_stays_unread_and_comes_again() {
    let house = house();
    spawn(&house, "ann");
    house.teamctl(["task", "create", "not-now count"]).ok();
    let refused = || noted(&house, "ann", "refused").pop();
    house.until("it is not taken", refused);
    house.teamctl(["send", "ann", "a letter"]).ok();
    assert_eq!(unread(&house, "ann").last().unwrap(), "a letter");
    type_into(&house, "ann", "go on");
    until_turn(&house, "ann", "a letter");
    until_turn(&house, "ann", "not-now count");
    waits(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    house.end();
}

/// Gemini has the field, and it is false whatever the hook has said.
#[test]
fn a_program_that_never_says_that_it_went_on_is_believed() {
    let house = House::with_team();
    let (agent, out) = (house.agent(), house.path("out/{name}").display().to_string());
    let args = format!("args = [\"hooked\", \"{out}\", \"--never-says\"]\nprompt = [\"{{prompt}}\"]\n");
    house.profile("hooked", &format!("feed = \"hook\"\nprogram = \"{agent}\"\n{args}"));
    spawn(&house, "ann");
    for text in ["letter 1", "letter 2"] {
        house.teamctl(["send", "ann", text]).ok();
        until_turn(&house, "ann", text);
        waits(&house, "ann");
        assert_eq!(unread(&house, "ann"), [""; 0]);
    }
    let taken = turns(&house, "ann").into_iter().filter(|turn| turn.contains("letter 1"));
    assert_eq!(taken.count(), 1, "{:?}", turns(&house, "ann"));
    house.end();
}

#[test]
fn a_letter_that_is_not_taken_is_not_read() {
    let house = house();
    spawn(&house, "ann");
    house.teamctl(["send", "ann", "not-now, later"]).ok();
    house.until("it is not taken", || noted(&house, "ann", "refused").pop());
    assert_eq!(unread(&house, "ann"), ["not-now, later"]);
    type_into(&house, "ann", "go on");
    until_turn(&house, "ann", "not-now, later");
    waits(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.end();
}

#[test]
fn the_hook_ends_with_its_program() {
    let house = house();
    spawn(&house, "ann");
    let hook = pid_of_hook(&house);
    let pid = house.member("ann").unwrap()["pid"].as_u64().unwrap();
    house.kill_9(u32::try_from(pid).unwrap());
    house.until("the hook is gone", || {
        let status = house.json(["status"]);
        let gone = status["teams"][0]["past"].as_array().is_some_and(|past| past.len() == 1);
        (gone && harness::start_time(hook).is_none()).then_some(())
    });
    house.end();
}

#[test]
fn a_daemon_that_was_killed_and_started_again_wakes_it_all_the_same() {
    let house = house();
    spawn(&house, "ann");
    house.kill_9(house.daemon());
    house.teamctl(["send", "ann", "sent without a daemon"]).ok();
    house.start_daemon();
    until_turn(&house, "ann", "without a daemon");
    waits(&house, "ann");
    house.teamctl(["send", "ann", "and with one"]).ok();
    until_turn(&house, "ann", "and with one");
    house.end();
}

#[test]
fn of_two_hooks_at_once_the_newer_waits_and_one_of_them_hands_it_over() {
    let house = house();
    spawn(&house, "ann");
    let first = pid_of_hook(&house);
    let env = std::fs::read(format!("/proc/{first}/environ")).unwrap();
    let mut second = house.command(harness::programs().join("teamctl"));
    second.args(["hook", "turn-end"]).stdout(std::process::Stdio::piped());
    for pair in String::from_utf8_lossy(&env).split('\0').filter_map(|pair| pair.split_once('=')) {
        second.env(pair.0, pair.1);
    }
    let second = second.spawn().unwrap();
    house.until("the first is gone", || harness::start_time(first).is_none().then_some(()));
    waits(&house, "ann");
    house.teamctl(["send", "ann", "once"]).ok();
    let said = second.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout).matches("once").count(), 1);
    assert_eq!(idle_told(&house, "ann").len(), 1, "one turn has ended");
    house.end();
}

#[test]
fn a_task_is_handed_over_and_done_when_the_turn_on_it_ends() {
    let house = house();
    spawn(&house, "ann");
    house.teamctl(["task", "create", "count the lines"]).ok();
    let turn = until_turn(&house, "ann", "count the lines");
    assert!(turn.contains("teamctl task done"), "{turn}");
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    waits(&house, "ann");
    let told = idle_told(&house, "ann");
    assert_eq!(told.last().unwrap()["completedStatus"], "completed", "{told:?}");
    house.end();
}

#[test]
fn a_request_to_shut_down_is_handed_over_with_how_to_answer_it() {
    let house = house();
    spawn(&house, "ann");
    let asked = house.teamctl_running(["shutdown", "ann", "--reason", "that was all"]);
    let turn = until_turn(&house, "ann", "that was all");
    let id = turn.split("teamctl respond ").nth(1).unwrap().split(' ').next().unwrap();
    house.teamctl_with(&["respond", id, "--approve"], &[("TEAMD_AGENT", "ann")]).ok();
    assert!(asked.wait_with_output().unwrap().status.success());
    house.end();
}

#[test]
fn a_dialog_is_shown_until_the_program_goes_on() {
    let house = house();
    let gate = house.gate("gate");
    spawn(&house, "ann");
    house.teamctl(["send", "ann", &format!("notify hold:{gate}")]).ok();
    let flags = || house.member("ann").unwrap()["flags"].clone();
    house.until("it is at a dialog", || (flags() == serde_json::json!(["at_dialog"])).then_some(()));
    house.open_gate("gate");
    waits(&house, "ann");
    assert_eq!(flags(), serde_json::json!([]));
    house.end();
}
