//! Agents that speak the Agent Client Protocol, against a scripted one that is written over plain lines of JSON.

use harness::House;
use serde_json::{Value, json};

pub(crate) const BACKENDS: [&str; 2] = ["tmux", "in-process"];

/// A house with a team and a profile `scripted`, whose program is begun with these words.
pub(crate) fn house(words: &[&str]) -> House {
    let mut house = House::empty();
    let heard = house.path("out/heard").display().to_string();
    house.variables.push(("ACP_HEARD".to_owned(), heard));
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    let profile = format!(
        "feed = \"acp\"\nprogram = \"{}\"\nargs = {}\ninstructions = \"none\"\n[modes]\ndefault = []\nplan = []\n\
         acceptEdits = []\n[session_modes]\nplan = \"read\"\nacceptEdits = \"code\"\ndefault = \"ask\"\n",
        harness::programs().join("acp-agent").display(),
        json!(words)
    );
    house.put("home/.config/teamd/agents/scripted.toml", profile);
    house
}

pub(crate) fn spawn(house: &House, more: &[&str]) {
    let ran = house.teamctl_with(&[&["spawn", "ann", "--agent", "scripted"], more].concat(), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}\n{}", house.portrait());
}

pub(crate) fn send(house: &House, text: &str) {
    house.teamctl(["send", "ann", text, "--summary", "to do"]).ok();
}

fn log(house: &House) -> String {
    house.teamctl(["logs", "ann"]).stdout
}

pub(crate) fn shows(house: &House, text: &str) {
    house.until(&format!("ann shows {text}"), || log(house).contains(text).then_some(()));
}

/// The messages of this method that the agent has heard.
pub(crate) fn heard(house: &House, method: &str) -> Vec<Value> {
    let all = house.read("out/heard");
    let messages = all.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}

/// The payloads of this type that ann sent to the lead.
pub(crate) fn said(house: &House, kind: &str) -> Vec<Value> {
    house.told("ann", kind)
}

/// The notification of the turn with that number, from 1.
pub(crate) fn turn(house: &House, number: usize) -> Value {
    house.until(&format!("turn {number} ends"), || said(house, "idle_notification").get(number - 1).cloned())
}

pub(crate) fn ends(house: House) {
    let ended = house.json(["shutdown", "ann"]);
    assert_eq!(ended["ended"][0]["how"], "approved", "{ended:#}");
    house.end();
}

#[test]
fn every_text_is_a_turn_of_one_session_and_is_shown_harmlessly() {
    for backend in BACKENDS {
        let house = house(&[]);
        spawn(&house, &["--backend", backend, "--prompt", "do talk"]);
        assert_eq!(turn(&house, 1)["idleReason"], "available");
        shows(&house, "turn 1 in mode ask: \\u{1b}]0;evil\\u{7}done");
        send(&house, "do tool");
        assert_eq!(turn(&house, 2)["idleReason"], "available");
        shows(&house, "✓ look");
        shows(&house, "○ step one");
        let prompts = heard(&house, "session/prompt");
        assert_eq!(prompts[0]["params"]["prompt"], json!([{"type": "text", "text": "do talk"}]));
        assert!(prompts[1]["params"]["prompt"][0]["text"].as_str().unwrap().starts_with("<teammate-message"));
        let new = heard(&house, "session/new");
        assert_eq!((new.len(), prompts.len()), (1, 2));
        let server = &new[0]["params"]["mcpServers"][0];
        assert_eq!((server["name"].as_str(), &server["args"]), (Some("team"), &json!(["mcp"])));
        assert!(server["env"].as_array().unwrap().iter().any(|of| of["name"] == "TEAMD_TOKEN"), "{server}");
        let member = house.member("ann").unwrap();
        assert_eq!((member["feed"].as_str(), member["reaches"].as_str()), (Some("acp"), Some("turn-end")));
        assert!(house.inbox("survey", "ann").iter().all(|message| message["read"] == true));
        ends(house);
    }
}

#[test]
fn a_message_while_it_is_busy_is_its_next_turn_and_an_interrupt_cancels() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do wait"]);
    shows(&house, "waiting");
    send(&house, "do talk");
    let interrupted = house.json(["interrupt", "ann"]);
    assert_eq!(interrupted["turn"], true);
    assert_eq!(heard(&house, "session/cancel").len(), 1);
    assert_eq!(turn(&house, 1)["idleReason"], "interrupted");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    assert_eq!(heard(&house, "session/new").len(), 1, "the same process, and the same session");
    ends(house);
}

#[test]
fn who_does_not_heed_a_cancel_is_ended_and_begun_again_with_its_session() {
    let house = house(&["stubborn"]);
    spawn(&house, &["--prompt", "do wait"]);
    shows(&house, "waiting");
    assert_eq!(house.json(["interrupt", "ann"])["turn"], true);
    assert_eq!(turn(&house, 1)["idleReason"], "interrupted");
    send(&house, "do talk");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    let loaded = heard(&house, "session/load");
    assert_eq!(loaded.len(), 1);
    assert_eq!(loaded[0]["params"]["sessionId"], "s-1");
    assert!(!log(&house).contains("from an earlier life"), "what it said then was shown then");
    ends(house);
}

#[test]
fn a_task_is_done_by_a_turn_that_ends_well_and_failed_by_another() {
    let house = house(&[]);
    spawn(&house, &[]);
    let task = |order: &str| {
        let made = house.json(["task", "create", "it", "--description", order]);
        made["task"]["id"].as_str().unwrap().to_owned()
    };
    for (order, status, why) in [
        ("do talk", "completed", None),
        ("do stop refusal", "failed", Some("it refused")),
        ("do stop max_tokens", "failed", Some("it came to its limit of tokens")),
        ("do fail", "failed", Some("the model is on fire")),
    ] {
        let id = task(order);
        let find = || {
            said(&house, "idle_notification").into_iter().find(|told| told["completedTaskId"] == id.as_str())
        };
        let told = house.until(&format!("{order} is told"), find);
        assert_eq!(told["completedStatus"], status, "{told}");
        if let Some(why) = why {
            assert!(told["failureReason"].as_str().unwrap().contains(why), "{told}");
        }
    }
    ends(house);
}

/// Its question, once the lead has it.
pub(crate) fn question(house: &House, number: usize) -> Value {
    house.until("it asks", || said(house, "permission_request").get(number - 1).cloned())
}

fn answer(house: &House, question: &Value, outcome: &Value) {
    let mut text = json!({"type": "permission_response", "request_id": question["request_id"]});
    text.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
    house.teamctl(["send", "ann", &text.to_string(), "--summary", "answer"]).ok();
}

#[test]
fn its_questions_for_permission_are_the_teams_and_the_answers_go_back() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do ask rm -r target"]);
    let asked = question(&house, 1);
    assert_eq!((asked["agent_id"].as_str(), asked["tool_name"].as_str()), (Some("ann"), Some("Bash")));
    assert_eq!(
        (asked["tool_use_id"].as_str(), &asked["input"]),
        (Some("t9"), &json!({"command": "rm -r target"}))
    );
    shows(&house, "? rm -r target: waits for permission (Bash)");
    let yes = |updates: &Value| json!({"subtype": "success", "response": {"updated_input": asked["input"], "permission_updates": updates}});
    answer(&house, &asked, &yes(&json!([])));
    turn(&house, 1);
    shows(&house, r#""optionId":"yes""#);
    send(&house, "do ask rm -r target");
    let asked_again = question(&house, 2);
    assert_ne!(asked_again["request_id"], asked["request_id"]);
    answer(&house, &asked_again, &yes(&asked_again["permission_suggestions"]));
    turn(&house, 2);
    shows(&house, r#""optionId":"ever""#);
    send(&house, "do ask rm -r target");
    answer(&house, &question(&house, 3), &json!({"subtype": "error", "error": "not on a Friday"}));
    turn(&house, 3);
    shows(&house, r#""optionId":"no""#);
    send(&house, "do talk");
    turn(&house, 4);
    let last = heard(&house, "session/prompt").pop().unwrap();
    let ahead = last["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(ahead.contains("not on a Friday"), "{last}");
    assert!(house.inbox("survey", "ann").iter().all(|message| message["read"] == true));
    ends(house);
}

#[test]
fn a_question_that_nobody_answers_ends_with_its_turn() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do ask a favour"]);
    let asked = question(&house, 1);
    assert_eq!(house.json(["requests"])["requests"][0]["id"], asked["request_id"]);
    assert_eq!(house.json(["interrupt", "ann"])["turn"], true);
    turn(&house, 1);
    assert_eq!(house.json(["requests"])["requests"], json!([]));
    // Too late, and no harm.
    answer(&house, &asked, &json!({"subtype": "error", "error": "no"}));
    send(&house, "do talk");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    let cancelled = house.read("out/heard").lines().any(|line| line.contains(r#""outcome":"cancelled""#));
    assert!(cancelled, "{}", house.read("out/heard"));
    ends(house);
}

#[test]
fn a_crash_in_a_turn_fails_that_turn_and_the_next_goes_on_with_the_session() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do crash"]);
    let told = turn(&house, 1);
    assert_eq!(told["idleReason"], "failed");
    let why = told["failureReason"].as_str().unwrap();
    assert!(
        why.contains("acp-agent has ended: exit 9") && why.contains("segmentation fault, nearly"),
        "{why}"
    );
    send(&house, "do talk");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    assert_eq!((heard(&house, "session/new").len(), heard(&house, "session/load").len()), (1, 1));
    ends(house);
}

#[test]
fn a_program_that_ends_again_and_again_is_given_up() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do crash"]);
    for number in 1..=3 {
        turn(&house, number);
        send(&house, "do crash");
    }
    let told = house.until("the lead is told", || said(&house, "teammate_terminated").pop());
    let how = told["message"].as_str().unwrap();
    assert!(how.contains("it ended 3 times in a row; the last time: acp-agent has ended: exit 9"), "{how}");
    house.end();
}

#[test]
fn what_it_prints_beside_the_protocol_is_shown_and_disturbs_nothing() {
    let house = house(&["chatty"]);
    spawn(&house, &["--prompt", "do chatter"]);
    assert_eq!(turn(&house, 1)["idleReason"], "available");
    for text in [
        "Loading model… \\u{1b}[31mred",
        "{\"not\": \"a message\"}",
        "warning: \\u{1b}[2Jnot a message",
        "[1, 2]",
    ] {
        shows(&house, text);
    }
    ends(house);
}

#[test]
fn a_mode_is_the_sessions_from_the_start_and_while_it_runs() {
    let house = house(&[]);
    spawn(&house, &["--mode", "default", "--prompt", "do talk"]);
    shows(&house, "turn 1 in mode ask");
    let mode = json!({"type": "mode_set_request", "mode": "acceptEdits", "from": "team-lead"});
    house.teamctl(["send", "ann", &mode.to_string(), "--summary", "mode"]).ok();
    send(&house, "do talk");
    shows(&house, "turn 2 in mode code");
    ends(house);
}

/// What the driver says, given all of these words at once, until the end of a turn; and what its agent has heard.
fn driven(words: &[Value]) -> (Vec<Value>, String) {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let house = House::empty();
    let (mut near, far) = UnixStream::pair().unwrap();
    near.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut command = house.command(harness::programs().join("teamd-acp"));
    command.arg("--").arg(harness::programs().join("acp-agent")).arg("slow");
    command.env("ACP_HEARD", house.path("out/heard")).stdin(std::os::fd::OwnedFd::from(far));
    let mut driver = command.spawn().unwrap();
    drop(command);
    let words: Vec<String> = words.iter().map(|word| format!("{word}\n")).collect();
    near.write_all(words.concat().as_bytes()).unwrap();
    let said = BufReader::new(near.try_clone().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let mut all: Vec<Value> = Vec::new();
    for word in said {
        all.push(word);
        if all.last().is_some_and(|word| word["ended"].is_object()) {
            break;
        }
    }
    drop(near);
    driver.wait().unwrap();
    let heard = house.read("out/heard");
    house.end();
    (all, heard)
}

#[test]
fn no_turn_begins_before_the_mode_that_was_asked_for_ahead_of_it() {
    let (mode, prompt) = (json!({"mode": {"id": "code"}}), json!({"prompt": {"text": "do talk"}}));
    let (said, heard) = driven(&[json!({"mode": {"id": "read"}}), mode, prompt]);
    let modes: Vec<&str> = said.iter().filter_map(|word| word["mode"]["id"].as_str()).collect();
    assert_eq!((modes, said.last().unwrap()["ended"]["how"].as_str()), (vec!["read", "code"], Some("done")));
    let (answer, prompt) = (heard.rfind("\"id\":\"file-2\""), heard.find("session/prompt"));
    assert!(answer.is_some() && answer < prompt, "{heard}");
}

#[test]
fn a_turn_that_waits_for_its_mode_can_be_cancelled() {
    let (mode, prompt) = (json!({"mode": {"id": "code"}}), json!({"prompt": {"text": "do talk"}}));
    let (said, heard) = driven(&[mode, prompt, json!("cancel")]);
    assert_eq!(said.last().unwrap()["ended"]["how"], "cancelled");
    assert!(!heard.contains("session/prompt"), "{heard}");
}

#[test]
fn files_are_read_and_written_below_its_directory_alone() {
    let house = house(&[]);
    let work = house.path("out/work");
    std::fs::create_dir(&work).unwrap();
    spawn(&house, &["--cwd", work.to_str().unwrap()]);
    let outside = house.path("out/outside");
    send(&house, &format!("do write {}", work.join("new").display()));
    turn(&house, 1);
    assert_eq!(house.read("out/work/new"), "written\n");
    send(&house, &format!("do read {}", work.join("new").display()));
    turn(&house, 2);
    shows(&house, r#"file: {"content":"written\n"}"#);
    for (number, order) in
        [(3, format!("do write {}", outside.display())), (4, "do read /etc/hostname".to_owned())]
    {
        send(&house, &order);
        turn(&house, number);
    }
    shows(&house, "it lies outside of");
    assert!(!outside.exists());
    ends(house);
}

/// `spawn`, which must fail, and what it said.
fn refused(words: &[&str]) -> String {
    let house = house(words);
    let ran = house.teamctl(["spawn", "ann", "--agent", "scripted"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(house.member("ann").is_none_or(|member| member["phase"] != "running"));
    house.end();
    ran.stderr
}

#[test]
fn who_can_not_begin_is_no_member_and_says_why() {
    let said = refused(&["gone"]);
    assert!(said.contains("acp-agent has ended: exit 3") && said.contains("cannot find my head"), "{said}");
    let said = refused(&["locked"]);
    assert!(
        said.contains("acp-agent wants you to log in first (an API key): Authentication required"),
        "{said}"
    );
    let said = refused(&["old"]);
    assert!(said.contains("unsupported ACP protocol version 0"), "{said}");
}

#[test]
fn who_never_answers_is_waited_for_with_a_deadline() {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    let house = House::empty();
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut command = house.command(harness::programs().join("teamd-acp"));
    command.args(["--patience", "1", "--"]).arg(harness::programs().join("acp-agent")).arg("mute");
    let mut driver = command.stdin(std::os::fd::OwnedFd::from(far)).spawn().unwrap();
    drop(command);
    let mut said = String::new();
    near.read_to_string(&mut said).unwrap();
    assert_eq!(driver.wait().unwrap().code(), Some(70));
    assert!(said.contains("acp-agent opened no session within 1 s"), "{said}");
    house.end();
}

#[test]
fn a_next_life_goes_on_with_the_session_of_the_last() {
    let house = house(&[]);
    spawn(&house, &["--restart", "on-failure", "--prompt", "do talk"]);
    turn(&house, 1);
    let join = house.member("ann").unwrap()["join"].as_u64();
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let join = join.unwrap_or_else(|| {
        house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap()
    });
    house.kill_9(u32::try_from(join).unwrap());
    house.until("it is there again", || (heard(&house, "session/load").len() == 1).then_some(()));
    house.until("it idles again", || (house.member("ann")?["activity"] == "idle").then_some(()));
    send(&house, "do talk");
    turn(&house, 2);
    ends(house);
}
