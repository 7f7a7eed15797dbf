//! Programs that are typed to: only into an empty prompt, never into a dialog or what a person has begun to write.

use crate::hooks::{profile, unread, waits};
use harness::House;
use serde_json::{Value, json};

fn house() -> House {
    let house = House::with_team();
    profile(&house, "typed", "keys", "ready = [\">\"]\ndialog = [\"Do you trust\"]\n");
    house
}

fn spawn(house: &House) {
    house.teamctl(["spawn", "ann", "--agent", "typed", "--prompt", "begin"]).ok();
    waits(house, "ann");
}

fn lines(house: &House) -> Vec<Value> {
    let text = house.read("out/ann");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn until_text(house: &House, part: &str) -> String {
    let is = |line: &Value| line["text"].as_str().filter(|text| text.contains(part)).map(str::to_owned);
    house.until(&format!("a turn on {part}"), || lines(house).iter().find_map(is))
}

fn press(house: &House, keys: &str) {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, "-l", keys]);
}

fn enter(house: &House) {
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    house.tmux(["send-keys", "-t", &pane, "Enter"]);
}

#[test]
fn an_empty_prompt_gets_its_mail_as_one_text_and_it_is_read_then() {
    let house = house();
    spawn(&house);
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.teamctl(["send", "ann", "one\ntwo; $(touch x) #{pane_id}", "--summary", "hello"]).ok();
    let text = until_text(&house, "two;");
    let element = "<teammate-message teammate_id=\"team-lead\" summary=\"hello\">\none\ntwo; $(touch x) #{pane_id}\n</teammate-message>";
    assert_eq!(text, element);
    waits(&house, "ann");
    assert_eq!(unread(&house, "ann"), [""; 0]);
    house.end();
}

#[test]
fn a_text_that_ends_with_nothing_that_can_be_seen_is_typed_once() {
    let house = house();
    spawn(&house);
    house.teamctl(["send", "ann", "--as-user", "only once\n──\n\n"]).ok();
    until_text(&house, "only once");
    house.until("it is read", || unread(&house, "ann").is_empty().then_some(()));
    house.teamctl(["send", "ann", "the next"]).ok();
    until_text(&house, "the next");
    waits(&house, "ann");
    assert_eq!(lines(&house).iter().filter(|line| line.to_string().contains("only once")).count(), 1);
    house.end();
}

#[test]
fn its_typist_outlives_the_daemon_and_is_begun_again() {
    let house = house();
    spawn(&house);
    house.kill_9(house.daemon());
    house.teamctl(["send", "ann", "without a daemon"]).ok();
    house.start_daemon();
    until_text(&house, "without a daemon");
    waits(&house, "ann");
    let typist = |line: &String| line.contains("teamctl keys");
    let pid = || {
        let all = harness::Processes::marked(&house.mark()).list();
        all.into_iter().find(typist)?.split(' ').next()?.parse::<u32>().ok()
    };
    let first = house.until("a typist", pid);
    house.kill_9(first);
    house.until("another", || pid().filter(|next| *next != first));
    house.teamctl(["send", "ann", "after its death"]).ok();
    until_text(&house, "after its death");
    house.end();
}

#[test]
fn no_text_leaves_its_paste_or_presses_a_key() {
    let house = house();
    spawn(&house);
    house.teamctl(["send", "ann", "--as-user", "-evil \u{1b}[201~\rrm x\u{3}\u{9b}2J end"]).ok();
    assert_eq!(until_text(&house, "evil"), "-evil [201~ rm x2J end");
    house.end();
}

#[test]
fn what_a_person_has_begun_to_write_is_not_touched() {
    let house = house();
    spawn(&house);
    press(&house, "half a ");
    let drafted = || house.teamctl(["capture", "ann"]).ok().contains("> half a");
    house.until("the draft is seen", || drafted().then_some(()));
    house.teamctl(["send", "ann", "from the lead"]).ok();
    press(&house, "thought");
    enter(&house);
    assert_eq!(until_text(&house, "half"), "half a thought");
    assert!(until_text(&house, "from the lead").starts_with("<teammate-message"));
    waits(&house, "ann");
    house.end();
}

#[test]
fn a_dialog_is_never_answered_and_status_tells_of_it() {
    let house = house();
    spawn(&house);
    house.teamctl(["send", "ann", "open a dialog"]).ok();
    let flags = || house.member("ann").unwrap()["flags"].clone();
    house.until("it is at a dialog", || (flags() == json!(["at_dialog"])).then_some(()));
    house.teamctl(["send", "ann", "one more"]).ok();
    press(&house, "y");
    until_text(&house, "one more");
    let keys: Vec<Value> = lines(&house).into_iter().filter(|line| line["key"].is_string()).collect();
    assert_eq!(keys, [json!({"key": "y"})]);
    waits(&house, "ann");
    assert_eq!(flags(), json!([]));
    house.end();
}

#[test]
fn a_busy_program_gets_its_mail_when_its_prompt_is_back() {
    let house = house();
    let gate = house.gate("gate");
    spawn(&house);
    house.teamctl(["send", "ann", &format!("work hold:{gate} on")]).ok();
    until_text(&house, "hold:");
    house.teamctl(["send", "ann", "later"]).ok();
    assert_eq!(unread(&house, "ann").last().unwrap(), "later");
    house.open_gate("gate");
    until_text(&house, "later");
    house.end();
}

#[test]
fn typing_is_refused_for_whoever_is_not_fed_so() {
    let house = house();
    let refused = house.teamctl(["spawn", "ann", "--agent", "typed", "--backend", "in-process"]);
    assert!(refused.fails(64).contains("without a pane"));
    house.end();
}
