//! Teammates whose client reads and writes the files itself, with a stand-in for that client.

use harness::TestEnv;
use std::path::Path;

/// A house in which `claude` is a script that writes down what it got.
fn env_with_fake_claude() -> TestEnv {
    let mut house = TestEnv::new();
    std::fs::create_dir(house.path("bin")).unwrap();
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{out}/argv'\nenv > '{out}/env'\nexec sleep 3600\n",
        out = house.path("out").display()
    );
    house.write_script("bin/claude", &text);
    let path = std::env::var("PATH").unwrap();
    house.variables.push(("PATH".into(), format!("{}:{path}", house.path("bin").display())));
    house.start_daemon();
    house.teamctl(["create", "survey"]).expect_success();
    house
}

#[test]
fn native_member_gets_identity_and_prompt_message() {
    let house = env_with_fake_claude();
    let spawn =
        ["spawn", "ann", "--profile", "claude", "--agent-type", "Explore", "--model", "m", "--prompt", "go"];
    house
        .teamctl_with(&spawn, &[("CLAUDE_CODE_SESSION_ID", "mine"), ("CLAUDE_CONFIG_DIR", "/else")])
        .expect_success();
    let env = house
        .wait_until("it runs", || Some(house.read("out/env")).filter(|env| env.contains("TEAMD_SPAWN=")));
    let spawn = env.lines().find_map(|line| line.strip_prefix("TEAMD_SPAWN=")).unwrap();
    let argv = house.read("out/argv");
    let lead = house.read_config()["leadSessionId"].as_str().unwrap().to_owned();
    let identity = format!(
        "--agent-id\nann@survey\n--agent-name\nann\n--team-name\nsurvey\n--agent-color\nblue\n\
         --parent-session-id\n{lead}\n--agent-type\nExplore\n--session-id\n{spawn}\n\
         --model\nm\n--permission-mode\ndefault\n"
    );
    assert_eq!(argv, identity);
    let root = house.root().canonicalize().unwrap();
    for line in ["CLAUDECODE=1", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENTRYPOINT=cli"] {
        assert!(env.lines().any(|has| has == line), "{line}: {env}");
    }
    assert!(env.contains(&format!("CLAUDE_CONFIG_DIR={}\n", root.display())), "{env}");
    assert!(!env.contains("CLAUDE_CODE_SESSION_ID"), "{env}");
    let inbox = house.inbox("survey", "ann");
    assert_eq!((&inbox[0]["text"], &inbox[0]["read"]), (&"go".into(), &false.into()), "it reads by itself");
    house.shut_down();
}

/// Without a lock and in place, as old clients do.
#[allow(clippy::disallowed_methods, reason = "this is the client")]
fn write_in_place(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn turn_state_of_a_native_client_is_shown_and_kept() {
    let house = env_with_fake_claude();
    house.teamctl(["spawn", "ann", "--profile", "claude", "--prompt", "go"]).expect_success();
    let path = house.root().join("teams/survey/config.json");
    let shown = |word: &str| {
        house.wait_until(word, || house.member("ann").filter(|ann| ann["activity"] == word));
    };
    shown("active");
    let busy = house.read("root/teams/survey/config.json");
    let idle = busy.replace("\"isActive\": true", "\"isActive\": false");
    assert_ne!(busy, idle);
    write_in_place(&path, &idle);
    shown("idle");
    house.teamctl(["wait", "--for", "idle", "ann", "--timeout", "5s"]).expect_success();
    write_in_place(&path, &busy);
    shown("active");
    assert_eq!(house.read("root/teams/survey/config.json"), busy);
    house.shut_down();
}
