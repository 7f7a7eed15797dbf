//! What members ask, from the request to the answer: by hand, by the team's policy, in time or not, whoever is dead.

mod modes;

use harness::House;
use serde_json::{Value, json};

const PERMISSION: &str = r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"cargo test"},"permission_suggestions":[{"type":"addDirectories","directories":["/x"],"destination":"session"}]}"#;

/// A team with this policy, and ann in it, who writes what the test says into the lead's inbox.
fn house(policy: &str) -> House {
    let house = House::start();
    house.put("policy.toml", format!("[policy]\n{policy}"));
    let path = house.path("policy.toml").display().to_string();
    house.teamctl(["create", "survey", "--policy", &path]).ok();
    spawn(&house, "ann");
    house
}

fn spawn(house: &House, name: &str) {
    let agent = house.agent();
    house.teamctl(["spawn", name, "--", &agent, "stay"]).ok();
}

/// As an agent that speaks the files' protocol itself asks.
fn ask(house: &House, text: &str) {
    let ran = house.command(harness::programs().join("agent")).args(["ask", "ann", text]).status();
    assert!(ran.unwrap().success());
}

/// Answers that the member has.
fn answers(house: &House, name: &str) -> Vec<Value> {
    let inbox = house.inbox("survey", name);
    let texts = inbox.iter().filter_map(|message| serde_json::from_str(message["text"].as_str()?).ok());
    texts
        .filter(|text: &Value| text["type"].as_str().is_some_and(|kind| kind.ends_with("_response")))
        .collect()
}

fn answer(house: &House, name: &str) -> Value {
    house.until("there is an answer", || answers(house, name).into_iter().next())
}

fn events(house: &House, kind: &str) -> Vec<Value> {
    house.events().into_iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn a_rule_allows_another_refuses_and_what_none_decides_waits_for_a_person() {
    let house = house(
        "[[policy.rule]]\ntool = 'Bash'\nmatches = 'cargo *'\nanswer = 'allow'\n[[policy.rule]]\ntool = 'Bash'\nmatches = 'rm *'\nanswer = 'deny'\n",
    );
    ask(&house, PERMISSION);
    let yes = answer(&house, "ann");
    assert_eq!(yes["subtype"], "success");
    assert_eq!(
        yes["response"],
        json!({"updated_input": {"command": "cargo test"}, "permission_updates": []})
    );
    ask(&house, &PERMISSION.replace("cargo test", "cargo x; rm -r y").replace("perm-1", "perm-2"));
    house.until("it is refused", || (answers(&house, "ann").len() == 2).then_some(()));
    assert_eq!(answers(&house, "ann")[1]["subtype"], "error");
    ask(&house, &PERMISSION.replace("cargo test", "ls").replace("perm-1", "perm-3"));
    house.until("it waits", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    let requests = house.json(["requests"]);
    let [open] = requests["requests"].as_array().unwrap().as_slice() else { panic!("{requests}") };
    assert_eq!((&open["id"], &open["from"]), (&json!("perm-3-abcdefg"), &json!("ann")));
    assert_eq!(
        (&open["kind"], &open["body"]["input"]),
        (&json!("permission_request"), &json!({"command": "ls"}))
    );
    house.teamctl(["approve", "perm-3", "--input", "{\"command\": \"ls -l\"}", "--always"]).ok();
    let third = answers(&house, "ann").remove(2);
    assert_eq!(third["response"]["updated_input"], json!({"command": "ls -l"}));
    assert_eq!(third["response"]["permission_updates"][0]["directories"], json!(["/x"]));
    house.until("it waits no more", || (house.flags("ann") == json!([])).then_some(()));
    assert_eq!(house.teamctl(["deny", "perm-3", "--reason", "late"]).code, 73);
    let told = house
        .until("all is told", || Some(events(&house, "request_answered")).filter(|told| told.len() == 3));
    let by: Vec<_> =
        told.iter().map(|event| (event["by"].as_str().unwrap(), event["approved"] == true)).collect();
    assert_eq!(by, [("rule", true), ("rule", false), ("lead", true)]);
    house.end();
}

#[test]
fn a_request_that_nobody_answers_in_time_is_answered_as_the_policy_says() {
    let house = house("timeout = '200ms'\nafter = 'deny'\n");
    ask(&house, PERMISSION);
    let no = answer(&house, "ann");
    assert_eq!((&no["subtype"], &no["error"]), (&json!("error"), &json!("nobody answered in time")));
    house.end();
}

#[test]
fn a_request_that_the_lead_has_merely_read_waits_on() {
    let house = house("permissions = 'person'\n");
    ask(&house, PERMISSION);
    house.until("it waits", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    house.teamctl(["inbox", "--unread", "--mark-read"]).ok();
    house.until("it is read", || {
        house.inbox("survey", "team-lead").iter().all(|m| m["read"] == true).then_some(())
    });
    assert!(house.teamctl(["requests"]).stdout.contains("cargo test"));
    house.kill_9(house.daemon());
    house.until("the daemon is dead", || (house.teamctl(["status"]).code == 69).then_some(()));
    house.start_daemon();
    house
        .until("the next one knows", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    house.teamctl(["approve", "perm-1"]).ok();
    house.until("it is told", || (events(&house, "request_answered").len() == 1).then_some(()));
    house.end();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "another client's way of writing")]
fn what_comes_with_a_rewritten_inbox_is_answered_and_what_its_client_takes_out_is_not_answered_again() {
    let house = house("permissions = 'auto'\n");
    house
        .teamctl_with(&["send", "team-lead", "hello"], &[("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")])
        .ok();
    house.until("it is told", || (!events(&house, "message_stored").is_empty()).then_some(()));
    let entry =
        json!([{"from": "ann", "text": PERMISSION, "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let inbox = |name: &str| format!("root/teams/survey/inboxes/{name}.json");
    house.put(&inbox("new"), entry.to_string());
    std::fs::rename(house.path(&inbox("new")), house.path(&inbox("team-lead"))).unwrap();
    assert_eq!(answer(&house, "ann")["subtype"], "success");
    house.until("it is told", || (events(&house, "request_answered").len() == 1).then_some(()));
    // Had, and only then taken out: what nobody has had comes back.
    let ann = [("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")];
    house.teamctl_with(&["inbox", "--unread", "--mark-read"], &ann).ok();
    house.put(&inbox("ann"), "[]");
    assert_eq!(house.teamctl(["deny", "perm-1", "--reason", "late"]).code, 73);
    house.kill_9(house.daemon());
    house.until("the daemon is dead", || (house.teamctl(["status"]).code == 69).then_some(()));
    house.start_daemon();
    ask(&house, &PERMISSION.replace("perm-1", "perm-2"));
    house.until("the next is answered", || (!answers(&house, "ann").is_empty()).then_some(()));
    assert_eq!(answers(&house, "ann").len(), 1);
    house.until("it is told", || (events(&house, "request_answered").len() == 2).then_some(()));
    house.end();
}

#[test]
fn an_answer_that_no_daemon_saw_is_told_by_the_next() {
    let house = house("permissions = 'person'\n");
    ask(&house, PERMISSION);
    house.until("it waits", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    house.kill_9(house.daemon());
    house.until("the daemon is dead", || (house.teamctl(["status"]).code == 69).then_some(()));
    house.teamctl(["deny", "perm-1", "--reason", "no"]).ok();
    house.put("root/teams/survey/inboxes/ann.json", "[]");
    house.start_daemon();
    let told = house.until("it is told", || events(&house, "request_answered").into_iter().next());
    assert_eq!((&told["by"], &told["approved"]), (&json!("lead"), &json!(false)));
    house.end();
}

/// What a program that leads does with what its hook hands it; `read _` keeps its terminal.
const LEADING: &str = r#"
teamctl lead survey >out/led
echo '{"hook_event_name":"Stop"}' | teamctl hook turn-end >out/mail.new
mv out/mail.new out/mail
teamctl approve perm-1 2>out/why
echo $? >out/code.new
mv out/code.new out/code
read _
"#;

#[test]
fn a_program_that_leads_neither_hides_nor_answers_what_is_a_persons() {
    let house = house("permissions = 'person'\n");
    house.tmux(["new-session", "-d", "-x", "80", "-y", "24", "--", "sh", "-c", LEADING]);
    house.until("it leads", || house.read("out/led").contains("leads survey").then_some(()));
    ask(&house, PERMISSION);
    let code = || Some(house.read("out/code")).filter(|code| !code.is_empty());
    assert_eq!(house.until("it has tried", code), "77\n");
    assert!(house.read("out/why").contains("leaves that to a person"), "{}", house.read("out/why"));
    let mail = house.read("out/mail");
    assert!(mail.contains("A person was asked") && !mail.contains("teamctl approve"), "{mail}");
    assert!(house.teamctl(["requests"]).stdout.contains("cargo test"));
    house.until("it is shown", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    house.teamctl(["approve", "perm-1"]).ok();
    assert_eq!(answer(&house, "ann")["subtype"], "success");
    house.end();
}

#[test]
fn with_the_daemon_dead_a_request_is_answered_by_hand_and_by_the_next_daemon_not_again() {
    let house = house("permissions = 'person'\n");
    ask(&house, PERMISSION);
    house.until("it waits", || (house.flags("ann") == json!(["awaiting_permission"])).then_some(()));
    house.kill_9(house.daemon());
    house.until("the daemon is dead", || (house.teamctl(["status"]).code == 69).then_some(()));
    assert!(house.teamctl(["requests"]).stdout.contains("cargo test"));
    ask(&house, &PERMISSION.replace("perm-1", "perm-2"));
    house.teamctl(["approve", "perm-1"]).ok();
    house.start_daemon();
    house.until("the one that is left waits", || {
        (house.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    assert_eq!(answers(&house, "ann").len(), 1);
    let opened = events(&house, "request_opened");
    assert_eq!(opened.iter().filter(|event| event["request"] == "perm-1-abcdefg").count(), 1, "told once");
    house.teamctl(["deny", "perm-2", "--reason", "no"]).ok();
    assert_eq!(answers(&house, "ann").len(), 2);
    house.end();
}

#[test]
fn a_daemon_that_dies_with_a_request_before_it_leaves_it_to_the_next() {
    let house = house("permissions = 'auto'\n");
    house.kill_9(house.daemon());
    house.until("the daemon is dead", || (house.teamctl(["status"]).code == 69).then_some(()));
    ask(&house, PERMISSION);
    house.start_daemon();
    assert_eq!(answer(&house, "ann")["subtype"], "success");
    // Killed while it marks the request read it would leave the file that it writes.
    let lock = house.root().join("teams/survey/inboxes/team-lead.json.lock");
    house.until("the request is read, and that is written", || {
        (house.inbox("survey", "team-lead")[0]["read"] == true && !lock.exists()).then_some(())
    });
    house.kill_9(house.daemon());
    house.until("the daemon is dead", || (house.teamctl(["status"]).code == 69).then_some(()));
    house.start_daemon();
    ask(&house, &PERMISSION.replace("perm-1", "perm-2"));
    house.until("the next has its own", || (answers(&house, "ann").len() == 2).then_some(()));
    house.end();
}

#[test]
fn who_may_not_answer_and_what_can_not_be_answered() {
    let house = house("permissions = 'person'\n");
    ask(&house, PERMISSION);
    let as_ann = [("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")];
    assert_eq!(house.teamctl_with(&["approve", "perm-1"], &as_ann).code, 77);
    assert_eq!(house.teamctl_with(&["requests"], &as_ann).code, 77);
    let unknown = house.teamctl(["approve", "perm-9"]);
    assert!(unknown.code == 67 && unknown.stderr.contains("perm-1-abcdefg"), "{unknown:#?}");
    assert_eq!(house.teamctl(["deny", "perm-1"]).code, 64);
    assert_eq!(house.teamctl(["deny", "perm-1", "--reason", " "]).code, 64);
    assert_eq!(house.teamctl(["approve", "perm-1", "--input", "[]"]).code, 64);
    assert_eq!(house.teamctl(["approve", "perm-1", "--mode", "default"]).code, 64, "it is no plan");
    assert_eq!(house.teamctl(["approve", "perm-1", "--mode", "mad"]).code, 64);
    house.teamctl(["kill", "ann"]).ok();
    assert_eq!(house.teamctl(["approve", "perm-1"]).code, 67, "ann is gone");
    spawn(&house, "ann");
    assert_eq!(house.teamctl(["approve", "perm-1"]).code, 67, "it was asked in an earlier life");
    assert_eq!(house.json(["requests"])["requests"], json!([]));
    assert!(answers(&house, "ann").is_empty());
    house.end();
}

#[test]
fn a_policy_file_with_faults_makes_no_team() {
    let house = House::start();
    house.put("bad.toml", "[policy]\nplans = 'me'\n[[policy.rule]]\ntool = 'Bash'\n");
    let path = house.path("bad.toml").display().to_string();
    let ran = house.teamctl(["create", "survey", "--policy", &path]);
    assert_eq!(ran.code, 65);
    assert!(
        ran.stderr.contains(":2:9: plans is one of") && ran.stderr.contains("needs the key answer"),
        "{ran:#?}"
    );
    assert_eq!(house.json(["status", "--all"])["teams"], json!([]));
    house.end();
}

#[test]
fn the_border_says_that_one_asks_and_nothing_of_its_words_is_run() {
    let house = house("permissions = 'person'\n");
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    ask(&house, &PERMISSION.replace("count", "#(touch out/mark)").replace("Bash", "#(touch out/mark)"));
    let state = || house.tmux(["display-message", "-p", "-t", &pane, "#{@teamd_state}"]);
    house.until("the border says so", || (state() == "asks").then_some(()));
    house.teamctl(["approve", "perm-1"]).ok();
    house.until("and no more", || (state() != "asks").then_some(()));
    assert!(!house.path("out/mark").exists());
    house.end();
}

#[test]
fn a_command_of_the_persons_is_told_that_one_waits() {
    let house = house("permissions = 'person'\n");
    let none = house.teamctl(["notify", "x"]).fails(78);
    assert!(
        none.contains(".config/teamd/config.toml names no command") && none.contains("notify = ["),
        "{none}"
    );
    let out = house.path("out/told").display().to_string();
    let tell = house.script("tell", &format!("#!/bin/sh\nprintf '%s|' \"$1\" \"$TEAMD_NOTICE\" >>{out}\n"));
    house.put("home/.config/teamd/config.toml", format!("notify = ['{}', '-m {{text}}']\n", tell.display()));
    ask(&house, PERMISSION);
    let told = house
        .until("it is told", || Some(house.read("out/told")).filter(|told| told.matches('|').count() == 2));
    let words = "ann@survey asks for permission: teamctl requests -t survey";
    assert_eq!(told, format!("-m {words}|{words}|"));
    house.teamctl(["notify", "$(touch out/evil)"]).ok();
    assert!(house.read("out/told").ends_with("-m $(touch out/evil)|$(touch out/evil)|"));
    house.put("home/.config/teamd/config.toml", "notify = ['/no/such']\n");
    house.teamctl(["notify", "x"]).fails(72);
    house.teamctl(["approve", "perm-1"]).ok();
    house.end();
}

#[test]
fn with_two_teams_a_request_is_seen_and_answered_without_its_teams_name() {
    let house = house("timeout = '1h'\nafter = 'deny'\n");
    house.teamctl(["create", "other"]).ok();
    ask(&house, PERMISSION);
    let open = house.json(["requests"]);
    assert_eq!(
        (&open["requests"][0]["team"], &open["requests"][0]["after"]),
        (&json!("survey"), &json!("deny"))
    );
    let shown = house.teamctl(["requests"]).stdout;
    assert!(shown.contains("ann@survey  perm-1-abcdefg") && shown.contains(", denied in "), "{shown}");
    assert_eq!(house.json(["requests", "-t", "other"])["requests"], json!([]));
    let one = house.teamctl(["requests", "-t", "survey"]).stdout;
    assert!(
        one.contains("Answer with: teamctl approve -t survey ID, or: teamctl deny -t survey ID"),
        "{one}"
    );
    house.teamctl(["approve", "perm-9"]).fails(67);
    house.teamctl(["approve", "perm-1", "-t", "other"]).fails(67);
    house.teamctl(["approve", "perm-1"]).ok();
    house.teamctl(["deny", "perm-1", "--reason", "late"]).fails(73);
    house.end();
}

#[test]
fn an_id_that_is_a_requests_own_means_that_one_though_one_of_another_team_begins_so() {
    let house = house("permissions = 'person'\n");
    house.teamctl(["create", "other"]).ok();
    house.teamctl(["spawn", "ann", "-t", "other", "--", &house.agent(), "stay"]).ok();
    ask(&house, PERMISSION);
    let text = PERMISSION.replace("perm-1-abcdefg", "perm-1-abcdefg-2");
    let near = json!([{"from": "ann", "text": text, "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    house.put("root/teams/other/inboxes/team-lead.json", near.to_string());
    house.teamctl(["approve", "perm-1"]).fails(64);
    house.teamctl(["approve", "perm-1-abcdefg"]).ok();
    assert_eq!(answers(&house, "ann").len(), 1);
    house.teamctl(["approve", "perm-1-abcdefg"]).fails(73);
    assert!(house.inbox("other", "ann").is_empty(), "nobody meant that one");
    house.end();
}
