//! The teammates of examples/, which show how to write one: each has at most 30 lines, answers
//! messages, and ends when the lead requests a shutdown.

use harness::TestEnv;

/// Spawns the example with the command in its first lines, sends it messages, and shuts it down.
fn run_example(program: &str, example: &str) {
    let path = format!("{}/../examples/{example}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() <= 30, "{example} has {} lines", text.lines().count());
    assert!(text.contains(&format!("teamctl spawn ann -- {program} examples/{example}")));
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--prompt", "look around", "--", program, &path]).expect_success();
    env.teamctl(["send", "ann", "are you there? 🪜"]).expect_success();
    // A message that contains the id of a shutdown request is no shutdown request.
    env.teamctl(["send", "ann", "what is shutdown-1@ann?"]).expect_success();
    for message in ["look around", "are you there? 🪜", "what is shutdown-1@ann?"] {
        env.wait_until(&format!("the lead has an answer to {message:?}"), || {
            has_answer(&env, message).then_some(())
        });
    }
    let reply = env.json(["shutdown", "ann"]);
    assert_eq!(reply["exits"][0]["description"], "approved", "{reply}");
    assert_eq!(env.member("ann"), None);
    let inbox = env.inbox("survey", "ann");
    assert!(inbox.len() == 4 && inbox.iter().all(|message| message["read"] == true), "{inbox:?}");
    env.shut_down();
}

fn has_answer(env: &TestEnv, message_text: &str) -> bool {
    let inbox = env.inbox("survey", "team-lead");
    let messages = inbox.iter().filter(|message| message["from"] == "ann");
    messages.filter_map(|message| message["text"].as_str()).any(|text| text.contains(message_text))
}

/// The daemon sees that the shell example waits for messages.
#[test]
fn agent_that_waits_for_messages_is_idle() {
    let env = TestEnv::with_team();
    let example = format!("{}/../examples/teammate.sh", env!("CARGO_MANIFEST_DIR"));
    env.teamctl(["spawn", "ann", "--", "sh", &example]).expect_success();
    env.teamctl(["wait", "--for", "idle", "ann", "--timeout", "20s"]).expect_success();
    env.teamctl(["send", "ann", "are you there?"]).expect_success();
    env.wait_until("the lead has an answer", || has_answer(&env, "are you there?").then_some(()));
    env.teamctl(["wait", "--for", "idle", "ann", "--timeout", "20s"]).expect_success();
    let kinds = ["member_idle", "member_active", "member_idle"];
    env.wait_until("the activity is logged", || {
        let events = env.events().into_iter().filter(|event| event["member"] == "ann");
        let logged: Vec<String> =
            events.filter_map(|event| event["event"].as_str().map(str::to_owned)).collect();
        let logged = logged.iter().filter(|kind| kinds.contains(&kind.as_str()));
        logged.eq(kinds.iter()).then_some(())
    });
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.shut_down();
}

#[test]
fn shell_example_answers_and_ends() {
    run_example("sh", "teammate.sh");
}

#[test]
fn python_example_answers_and_ends() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("FOREIGN").is_none(), "python3 is not installed");
        return harness::record_skip("the example in Python", "python3 is not installed");
    }
    run_example("python3", "teammate.py");
}
