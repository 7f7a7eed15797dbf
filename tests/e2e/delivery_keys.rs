//! Programs that are typed to: only into an empty prompt, never into a dialog or what a person has begun to write.

use crate::hooks::{unread_messages, wait_until_idle, write_profile};
use harness::TestEnv;
use serde_json::{Value, json};

fn env_with_keys_profile() -> TestEnv {
    let house = TestEnv::with_team();
    write_profile(&house, "typed", "keys", "ready = [\">\"]\ndialog = [\"Do you trust\"]\n");
    house
}

fn spawn(house: &TestEnv) {
    house.teamctl(["spawn", "ann", "--agent", "typed", "--prompt", "begin"]).expect_success();
    wait_until_idle(house, "ann");
}

fn recorded_lines(house: &TestEnv) -> Vec<Value> {
    let text = house.read("out/ann");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn wait_for_text(house: &TestEnv, part: &str) -> String {
    let is = |line: &Value| line["text"].as_str().filter(|text| text.contains(part)).map(str::to_owned);
    house.wait_until(&format!("a turn on {part}"), || recorded_lines(house).iter().find_map(is))
}

fn press(house: &TestEnv, keys: &str) {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, "-l", keys]);
}

fn enter(house: &TestEnv) {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, "Enter"]);
}

#[test]
fn messages_are_typed_into_an_empty_prompt() {
    let house = env_with_keys_profile();
    spawn(&house);
    assert_eq!(unread_messages(&house, "ann"), [""; 0]);
    house.teamctl(["send", "ann", "one\ntwo; $(touch x) #{pane_id}", "--summary", "hello"]).expect_success();
    let text = wait_for_text(&house, "two;");
    let element = "<teammate-message teammate_id=\"team-lead\" summary=\"hello\">\none\ntwo; $(touch x) #{pane_id}\n</teammate-message>";
    assert_eq!(text, element);
    wait_until_idle(&house, "ann");
    assert_eq!(unread_messages(&house, "ann"), [""; 0]);
    house.shut_down();
}

#[test]
fn trailing_invisible_text_is_typed_once() {
    let house = env_with_keys_profile();
    spawn(&house);
    house.teamctl(["send", "ann", "--as-user", "only once\n──\n\n"]).expect_success();
    wait_for_text(&house, "only once");
    house.wait_until("it is read", || unread_messages(&house, "ann").is_empty().then_some(()));
    house.teamctl(["send", "ann", "the next"]).expect_success();
    wait_for_text(&house, "the next");
    wait_until_idle(&house, "ann");
    assert_eq!(
        recorded_lines(&house).iter().filter(|line| line.to_string().contains("only once")).count(),
        1
    );
    house.shut_down();
}

#[test]
fn typist_is_restarted_after_the_daemon() {
    let house = env_with_keys_profile();
    spawn(&house);
    house.kill_process(house.daemon_pid());
    house.teamctl(["send", "ann", "without a daemon"]).expect_success();
    house.start_daemon();
    wait_for_text(&house, "without a daemon");
    wait_until_idle(&house, "ann");
    let typist = |line: &String| line.contains("teamd-shim keys");
    let pid = || {
        let all = harness::TaggedProcesses::with_tag(&house.process_tag()).list();
        all.into_iter().find(typist)?.split(' ').next()?.parse::<u32>().ok()
    };
    let first = house.wait_until("a typist", pid);
    house.kill_process(first);
    house.wait_until("another", || pid().filter(|next| *next != first));
    house.teamctl(["send", "ann", "after its death"]).expect_success();
    wait_for_text(&house, "after its death");
    house.shut_down();
}

#[test]
fn text_cannot_end_the_paste_or_press_keys() {
    let house = env_with_keys_profile();
    spawn(&house);
    house.teamctl(["send", "ann", "--as-user", "-evil \u{1b}[201~\rrm x\u{3}\u{9b}2J end"]).expect_success();
    assert_eq!(wait_for_text(&house, "evil"), "-evil [201~ rm x2J end");
    house.shut_down();
}

#[test]
fn draft_of_a_person_is_not_touched() {
    let house = env_with_keys_profile();
    spawn(&house);
    press(&house, "half a ");
    let drafted = || house.teamctl(["capture", "ann"]).expect_success().contains("> half a");
    house.wait_until("the draft is seen", || drafted().then_some(()));
    house.teamctl(["send", "ann", "from the lead"]).expect_success();
    press(&house, "thought");
    enter(&house);
    assert_eq!(wait_for_text(&house, "half"), "half a thought");
    assert!(wait_for_text(&house, "from the lead").starts_with("<teammate-message"));
    wait_until_idle(&house, "ann");
    house.shut_down();
}

#[test]
fn dialog_is_never_answered() {
    let house = env_with_keys_profile();
    spawn(&house);
    house.teamctl(["send", "ann", "open a dialog"]).expect_success();
    let flags = || house.member("ann").unwrap()["flags"].clone();
    house.wait_until("it is at a dialog", || (flags() == json!(["at_dialog"])).then_some(()));
    house.teamctl(["send", "ann", "one more"]).expect_success();
    press(&house, "y");
    wait_for_text(&house, "one more");
    let keys: Vec<Value> =
        recorded_lines(&house).into_iter().filter(|line| line["key"].is_string()).collect();
    assert_eq!(keys, [json!({"key": "y"})]);
    wait_until_idle(&house, "ann");
    assert_eq!(flags(), json!([]));
    house.shut_down();
}

#[test]
fn busy_program_gets_messages_at_its_next_prompt() {
    let house = env_with_keys_profile();
    let gate = house.create_gate("gate");
    spawn(&house);
    house.teamctl(["send", "ann", &format!("work hold:{gate} on")]).expect_success();
    wait_for_text(&house, "hold:");
    house.teamctl(["send", "ann", "later"]).expect_success();
    assert_eq!(unread_messages(&house, "ann").last().unwrap(), "later");
    house.open_gate("gate");
    wait_for_text(&house, "later");
    house.shut_down();
}

#[test]
fn keys_command_requires_delivery_keys() {
    let house = env_with_keys_profile();
    let refused = house.teamctl(["spawn", "ann", "--agent", "typed", "--backend", "in-process"]);
    assert!(refused.expect_failure(64).contains("without a pane"));
    house.shut_down();
}
