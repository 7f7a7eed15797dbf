//! The teammates of examples/, for who writes one: each is whole in 30 lines, answers what it is told, and ends when
//! the lead asks it to.

use harness::TestEnv;

/// Spawns the example as its first lines say, and takes it through its life.
fn run_example(program: &str, example: &str) {
    let path = format!("{}/../examples/{example}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() <= 30, "{}", text.lines().count());
    assert!(text.contains(&format!("teamctl spawn ann -- {program} examples/{example}")));
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--prompt", "look around", "--", program, &path]).expect_success();
    env.teamctl(["send", "ann", "are you there? 🪜"]).expect_success();
    // The lead has not asked: whoever spells an id only says something.
    env.teamctl(["send", "ann", "what is shutdown-1@ann?"]).expect_success();
    for said in ["look around", "are you there? 🪜", "what is shutdown-1@ann?"] {
        env.wait_until(said, || has_answer(&env, said).then_some(()));
    }
    let ended = env.json(["shutdown", "ann"]);
    assert_eq!(ended["exits"][0]["description"], "approved", "{ended}");
    assert_eq!(env.member("ann"), None);
    let told = env.inbox("survey", "ann");
    assert!(told.len() == 4 && told.iter().all(|message| message["read"] == true), "{told:?}");
    env.shut_down();
}

fn has_answer(env: &TestEnv, said: &str) -> bool {
    let mail = env.inbox("survey", "team-lead");
    let hers = mail.iter().filter(|message| message["from"] == "ann");
    hers.filter_map(|message| message["text"].as_str()).any(|text| text.contains(said))
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
