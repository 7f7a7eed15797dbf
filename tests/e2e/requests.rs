//! Checks the requests of members: answers by a person, by the team's policy and after a timeout,
//! also when the daemon is killed in between.

mod permission_modes;

use harness::TestEnv;
use serde_json::{Value, json};

const PERMISSION: &str = r#"{"type":"permission_request","request_id":"perm-1-abcdefg","agent_id":"ann","tool_name":"Bash","tool_use_id":"t","description":"count","input":{"command":"cargo test"},"permission_suggestions":[{"type":"addDirectories","directories":["/x"],"destination":"session"}]}"#;

/// An environment with a team that has `policy`, and with the idle member ann.
fn env_with_policy(policy: &str) -> TestEnv {
    let env = TestEnv::with_daemon();
    env.write_file("policy.toml", format!("[policy]\n{policy}"));
    let path = env.path("policy.toml").display().to_string();
    env.teamctl(["create", "survey", "--policy", &path]).expect_success();
    spawn(&env, "ann");
    env
}

fn spawn(env: &TestEnv, name: &str) {
    let agent = env.scripted_agent_path();
    env.teamctl(["spawn", name, "--", &agent, "stay"]).expect_success();
}

/// Writes a request of ann into the lead's inbox, as a member with native delivery does.
fn write_request(env: &TestEnv, text: &str) {
    let status = env.command(harness::programs().join("scripted-agent")).args(["ask", "ann", text]).status();
    assert!(status.unwrap().success());
}

/// The answers in the inbox of the member `name`.
fn answers_to(env: &TestEnv, name: &str) -> Vec<Value> {
    let inbox = env.inbox("survey", name);
    let texts = inbox.iter().filter_map(|message| serde_json::from_str(message["text"].as_str()?).ok());
    texts
        .filter(|text: &Value| text["type"].as_str().is_some_and(|kind| kind.ends_with("_response")))
        .collect()
}

fn wait_for_answer(env: &TestEnv, name: &str) -> Value {
    env.wait_until(&format!("{name} has an answer"), || answers_to(env, name).into_iter().next())
}

fn events_of_kind(env: &TestEnv, kind: &str) -> Vec<Value> {
    env.events().into_iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn policy_allows_denies_or_leaves_to_a_person() {
    let env = env_with_policy(
        "[[policy.rule]]\ntool = 'Bash'\npattern = 'cargo *'\nanswer = 'allow'\n[[policy.rule]]\ntool = 'Bash'\npattern = 'rm *'\nanswer = 'deny'\n",
    );
    write_request(&env, PERMISSION);
    let answer = wait_for_answer(&env, "ann");
    assert_eq!(answer["subtype"], "success");
    assert_eq!(
        answer["response"],
        json!({"updated_input": {"command": "cargo test"}, "permission_updates": []})
    );
    write_request(&env, &PERMISSION.replace("cargo test", "cargo x; rm -r y").replace("perm-1", "perm-2"));
    env.wait_until("the second request has an answer", || (answers_to(&env, "ann").len() == 2).then_some(()));
    assert_eq!(answers_to(&env, "ann")[1]["subtype"], "error");
    write_request(&env, &PERMISSION.replace("cargo test", "ls").replace("perm-1", "perm-3"));
    env.wait_until("ann's request is open", || {
        (env.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    let requests = env.json(["requests"]);
    let [open] = requests["requests"].as_array().unwrap().as_slice() else { panic!("{requests}") };
    assert_eq!((&open["id"], &open["from"]), (&json!("perm-3-abcdefg"), &json!("ann")));
    assert_eq!(
        (&open["kind"], &open["body"]["input"]),
        (&json!("permission_request"), &json!({"command": "ls"}))
    );
    env.teamctl(["approve", "perm-3", "--input", "{\"command\": \"ls -l\"}", "--always"]).expect_success();
    let third = answers_to(&env, "ann").remove(2);
    assert_eq!(third["response"]["updated_input"], json!({"command": "ls -l"}));
    assert_eq!(third["response"]["permission_updates"][0]["directories"], json!(["/x"]));
    env.wait_until("ann's request is answered", || (env.flags("ann") == json!([])).then_some(()));
    assert_eq!(env.teamctl(["deny", "perm-3", "--reason", "late"]).code, 73);
    let events = env.wait_until("all three answers are in the event log", || {
        Some(events_of_kind(&env, "request_answered")).filter(|events| events.len() == 3)
    });
    let answers: Vec<_> = events
        .iter()
        .map(|event| (event["answered_by"].as_str().unwrap(), event["approved"] == true))
        .collect();
    assert_eq!(answers, [("rule", true), ("rule", false), ("lead", true)]);
    env.shut_down();
}

#[test]
fn unanswered_request_gets_the_policy_answer() {
    let env = env_with_policy("answer_timeout = '200ms'\non_timeout = 'deny'\n");
    write_request(&env, PERMISSION);
    let answer = wait_for_answer(&env, "ann");
    assert_eq!((&answer["subtype"], &answer["error"]), (&json!("error"), &json!("nobody answered in time")));
    env.shut_down();
}

#[test]
fn request_read_by_the_lead_stays_open() {
    let env = env_with_policy("permissions = 'person'\n");
    write_request(&env, PERMISSION);
    env.wait_until("ann's request is open", || {
        (env.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    env.teamctl(["inbox", "--unread", "--mark-read"]).expect_success();
    env.wait_until("all messages of the lead are read", || {
        env.inbox("survey", "team-lead").iter().all(|m| m["read"] == true).then_some(())
    });
    assert!(env.teamctl(["requests"]).stdout.contains("cargo test"));
    env.kill_process(env.daemon_pid());
    env.wait_until("no daemon answers", || (env.teamctl(["status"]).code == 69).then_some(()));
    env.start_daemon();
    env.wait_until("the new daemon shows ann's request as open", || {
        (env.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    env.teamctl(["approve", "perm-1"]).expect_success();
    env.wait_until("the answer is in the event log", || {
        (events_of_kind(&env, "request_answered").len() == 1).then_some(())
    });
    env.shut_down();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test acts as another program")]
fn request_in_a_rewritten_inbox_is_answered_once() {
    let env = env_with_policy("permissions = 'auto'\n");
    env.teamctl_with(&["send", "team-lead", "hello"], &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")])
        .expect_success();
    env.wait_until("the message is in the event log", || {
        (!events_of_kind(&env, "message_stored").is_empty()).then_some(())
    });
    let entry =
        json!([{"from": "ann", "text": PERMISSION, "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let inbox = |name: &str| format!("root/teams/survey/inboxes/{name}.json");
    env.write_file(&inbox("new"), entry.to_string());
    std::fs::rename(env.path(&inbox("new")), env.path(&inbox("team-lead"))).unwrap();
    assert_eq!(wait_for_answer(&env, "ann")["subtype"], "success");
    env.wait_until("the first answer is in the event log", || {
        (events_of_kind(&env, "request_answered").len() == 1).then_some(())
    });
    // The answer is read before it is removed, because the daemon restores removed unread messages.
    let ann = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    env.teamctl_with(&["inbox", "--unread", "--mark-read"], &ann).expect_success();
    env.write_file(&inbox("ann"), "[]");
    assert_eq!(env.teamctl(["deny", "perm-1", "--reason", "late"]).code, 73);
    env.kill_process(env.daemon_pid());
    env.wait_until("no daemon answers", || (env.teamctl(["status"]).code == 69).then_some(()));
    env.start_daemon();
    write_request(&env, &PERMISSION.replace("perm-1", "perm-2"));
    env.wait_until("the second request is answered", || (!answers_to(&env, "ann").is_empty()).then_some(()));
    assert_eq!(answers_to(&env, "ann").len(), 1);
    env.wait_until("the second answer is in the event log", || {
        (events_of_kind(&env, "request_answered").len() == 2).then_some(())
    });
    env.shut_down();
}

#[test]
fn answer_without_a_daemon_is_reported_later() {
    let env = env_with_policy("permissions = 'person'\n");
    write_request(&env, PERMISSION);
    // The answer is logged only if the log has the request.
    env.wait_until("the request is in the event log", || {
        events_of_kind(&env, "request_opened").into_iter().next()
    });
    env.kill_process(env.daemon_pid());
    env.wait_until("no daemon answers", || (env.teamctl(["status"]).code == 69).then_some(()));
    let reason = std::fs::File::open(env.write_file("reason", "not here")).unwrap();
    let mut deny = env.command("teamctl");
    deny.args(["deny", "perm-1", "--reason", "-"]).stdin(reason);
    assert!(deny.status().unwrap().success());
    assert!(answers_to(&env, "ann")[0].to_string().contains("not here"));
    env.write_file("root/teams/survey/inboxes/ann.json", "[]");
    env.start_daemon();
    let event = env.wait_until("the answer is in the event log", || {
        events_of_kind(&env, "request_answered").into_iter().next()
    });
    assert_eq!((&event["answered_by"], &event["approved"]), (&json!("lead"), &json!(false)));
    env.shut_down();
}

/// A program that leads the team, runs its turn-end hook and tries to approve a request. `read _`
/// keeps its terminal open.
const LEADING_PROGRAM: &str = r#"
teamctl lead survey >out/led
echo '{"hook_event_name":"Stop"}' | teamd-shim hook turn-end >out/mail.new
mv out/mail.new out/mail
teamctl approve perm-1 2>out/why
echo $? >out/code.new
mv out/code.new out/code
read _
"#;

#[test]
fn lead_program_cannot_hide_or_answer_a_persons_request() {
    let env = env_with_policy("permissions = 'person'\n");
    env.tmux(["new-session", "-d", "-x", "80", "-y", "24", "--", "sh", "-c", LEADING_PROGRAM]);
    env.wait_until("the program leads the team", || {
        env.read("out/led").contains("leads survey").then_some(())
    });
    write_request(&env, PERMISSION);
    let read_code = || Some(env.read("out/code")).filter(|code| !code.is_empty());
    assert_eq!(env.wait_until("the program has tried to approve", read_code), "77\n");
    assert!(env.read("out/why").contains("leaves that to a person"), "{}", env.read("out/why"));
    let hook_output = env.read("out/mail");
    assert!(
        hook_output.contains("A person was asked") && !hook_output.contains("teamctl approve"),
        "{hook_output}"
    );
    assert!(env.teamctl(["requests"]).stdout.contains("cargo test"));
    env.wait_until("ann's request is shown as open", || {
        (env.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    env.teamctl(["approve", "perm-1"]).expect_success();
    assert_eq!(wait_for_answer(&env, "ann")["subtype"], "success");
    env.shut_down();
}

#[test]
fn answer_without_daemon_is_not_repeated() {
    let env = env_with_policy("permissions = 'person'\n");
    write_request(&env, PERMISSION);
    env.wait_until("ann's request is open and logged", || {
        let is_open = env.flags("ann") == json!(["awaiting_permission"]);
        (is_open && events_of_kind(&env, "request_opened").len() == 1).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.wait_until("no daemon answers", || (env.teamctl(["status"]).code == 69).then_some(()));
    assert!(env.teamctl(["requests"]).stdout.contains("cargo test"));
    write_request(&env, &PERMISSION.replace("perm-1", "perm-2"));
    env.teamctl(["approve", "perm-1"]).expect_success();
    env.start_daemon();
    env.wait_until("the second request is open", || {
        (env.flags("ann") == json!(["awaiting_permission"])).then_some(())
    });
    assert_eq!(answers_to(&env, "ann").len(), 1);
    let opened = events_of_kind(&env, "request_opened");
    assert_eq!(
        opened.iter().filter(|event| event["request_id"] == "perm-1-abcdefg").count(),
        1,
        "the request is logged once"
    );
    env.teamctl(["deny", "perm-2", "--reason", "no"]).expect_success();
    assert_eq!(answers_to(&env, "ann").len(), 2);
    env.shut_down();
}

#[test]
fn request_survives_the_daemon() {
    let env = env_with_policy("permissions = 'auto'\n");
    env.kill_process(env.daemon_pid());
    env.wait_until("no daemon answers", || (env.teamctl(["status"]).code == 69).then_some(()));
    write_request(&env, PERMISSION);
    env.start_daemon();
    assert_eq!(wait_for_answer(&env, "ann")["subtype"], "success");
    // A daemon that is killed while it marks the request read would leave a temporary file and a
    // lock.
    let lock = env.root().join("teams/survey/inboxes/team-lead.json.lock");
    env.wait_until("the request is marked read and the inbox is not locked", || {
        (env.inbox("survey", "team-lead")[0]["read"] == true && !lock.exists()).then_some(())
    });
    env.kill_process(env.daemon_pid());
    env.wait_until("no daemon answers", || (env.teamctl(["status"]).code == 69).then_some(()));
    env.start_daemon();
    write_request(&env, &PERMISSION.replace("perm-1", "perm-2"));
    env.wait_until("the second request has an answer", || (answers_to(&env, "ann").len() == 2).then_some(()));
    env.shut_down();
}

#[test]
fn answer_requires_permission_and_an_open_request() {
    let env = env_with_policy("permissions = 'person'\n");
    write_request(&env, PERMISSION);
    let as_ann = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    assert_eq!(env.teamctl_with(&["approve", "perm-1"], &as_ann).code, 77);
    assert_eq!(env.teamctl_with(&["requests"], &as_ann).code, 77);
    let output = env.teamctl(["approve", "perm-9"]);
    assert!(output.code == 67 && output.stderr.contains("perm-1-abcdefg"), "{output:#?}");
    assert_eq!(env.teamctl(["deny", "perm-1"]).code, 64);
    assert_eq!(env.teamctl(["deny", "perm-1", "--reason", " "]).code, 64);
    assert_eq!(env.teamctl(["approve", "perm-1", "--input", "[]"]).code, 64);
    assert_eq!(env.teamctl(["approve", "perm-1", "--mode", "default"]).code, 64, "--mode is only for plans");
    assert_eq!(env.teamctl(["approve", "perm-1", "--mode", "mad"]).code, 64);
    env.teamctl(["kill", "ann"]).expect_success();
    assert_eq!(env.teamctl(["approve", "perm-1"]).code, 67, "the member has exited");
    spawn(&env, "ann");
    assert_eq!(env.teamctl(["approve", "perm-1"]).code, 67, "the request is of an earlier spawn");
    assert_eq!(env.json(["requests"])["requests"], json!([]));
    assert!(answers_to(&env, "ann").is_empty());
    env.shut_down();
}

#[test]
fn invalid_policy_file_creates_no_team() {
    let env = TestEnv::with_daemon();
    env.write_file("bad.toml", "[policy]\nplans = 'me'\n[[policy.rule]]\ntool = 'Bash'\n");
    let path = env.path("bad.toml").display().to_string();
    let output = env.teamctl(["create", "survey", "--policy", &path]);
    assert_eq!(output.code, 65);
    assert!(
        output.stderr.contains(":2:9: plans is one of") && output.stderr.contains("needs the key answer"),
        "{output:#?}"
    );
    assert_eq!(env.json(["status", "--all"])["teams"], json!([]));
    env.shut_down();
}

#[test]
fn border_shows_a_waiting_request() {
    let env = env_with_policy("permissions = 'person'\n");
    let pane = env.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    write_request(
        &env,
        &PERMISSION.replace("count", "#(touch out/mark)").replace("Bash", "#(touch out/mark)"),
    );
    let state = || env.tmux(["display-message", "-p", "-t", &pane, "#{@teamd_state}"]);
    env.wait_until("the pane border shows that ann needs an answer", || {
        (state() == "needs-answer").then_some(())
    });
    env.teamctl(["approve", "perm-1"]).expect_success();
    env.wait_until("the pane border shows another state", || (state() != "needs-answer").then_some(()));
    assert!(!env.path("out/mark").exists());
    env.shut_down();
}

#[test]
fn notify_command_is_run_for_a_waiting_request() {
    let env = env_with_policy("permissions = 'person'\n");
    let error = env.teamctl(["notify", "x"]).expect_failure(78);
    assert!(
        error.contains(".config/teamd/config.toml has no `notify_command`")
            && error.contains("notify_command = ["),
        "{error}"
    );
    let out = env.path("out/told").display().to_string();
    let script =
        env.write_script("tell", &format!("#!/bin/sh\nprintf '%s|' \"$1\" \"$TEAMD_NOTICE\" >>{out}\n"));
    env.write_file(
        "home/.config/teamd/config.toml",
        format!("notify_command = ['{}', '-m {{text}}']\n", script.display()),
    );
    write_request(&env, PERMISSION);
    let output = env.wait_until("the notify command has run", || {
        Some(env.read("out/told")).filter(|output| output.matches('|').count() == 2)
    });
    let text = "ann@survey asks for permission: teamctl requests -t survey";
    assert_eq!(output, format!("-m {text}|{text}|"));
    env.teamctl(["notify", "$(touch out/evil)"]).expect_success();
    assert!(env.read("out/told").ends_with("-m $(touch out/evil)|$(touch out/evil)|"));
    env.write_file("home/.config/teamd/config.toml", "notify_command = ['/no/such']\n");
    env.teamctl(["notify", "x"]).expect_failure(72);
    env.teamctl(["approve", "perm-1"]).expect_success();
    env.shut_down();
}

#[test]
fn request_id_is_found_across_two_teams() {
    let env = env_with_policy("answer_timeout = '1h'\non_timeout = 'deny'\n");
    env.teamctl(["create", "other"]).expect_success();
    write_request(&env, PERMISSION);
    let requests = env.json(["requests"]);
    assert_eq!(
        (&requests["requests"][0]["team"], &requests["requests"][0]["on_timeout"]),
        (&json!("survey"), &json!("deny"))
    );
    let output = env.teamctl(["requests"]).stdout;
    assert!(output.contains("ann@survey  perm-1-abcdefg") && output.contains(", denied in "), "{output}");
    assert_eq!(env.json(["requests", "-t", "other"])["requests"], json!([]));
    let output = env.teamctl(["requests", "-t", "survey"]).stdout;
    assert!(
        output.contains("Answer with: teamctl approve -t survey ID, or: teamctl deny -t survey ID"),
        "{output}"
    );
    env.teamctl(["approve", "perm-9"]).expect_failure(67);
    env.teamctl(["approve", "perm-1", "-t", "other"]).expect_failure(67);
    env.teamctl(["approve", "perm-1"]).expect_success();
    env.teamctl(["deny", "perm-1", "--reason", "late"]).expect_failure(73);
    env.shut_down();
}

#[test]
fn exact_request_id_wins_over_a_prefix() {
    let env = env_with_policy("permissions = 'person'\n");
    env.teamctl(["create", "other"]).expect_success();
    env.teamctl(["spawn", "ann", "-t", "other", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    write_request(&env, PERMISSION);
    let text = PERMISSION.replace("perm-1-abcdefg", "perm-1-abcdefg-2");
    let inbox =
        json!([{"from": "ann", "text": text, "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    env.write_file("root/teams/other/inboxes/team-lead.json", inbox.to_string());
    env.teamctl(["approve", "perm-1"]).expect_failure(64);
    env.teamctl(["approve", "perm-1-abcdefg"]).expect_success();
    assert_eq!(answers_to(&env, "ann").len(), 1);
    env.teamctl(["approve", "perm-1-abcdefg"]).expect_failure(73);
    assert!(env.inbox("other", "ann").is_empty(), "the other request is not answered");
    env.shut_down();
}
