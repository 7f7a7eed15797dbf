//! Checks members with native delivery, whose program reads and writes the team files itself. A
//! script stands in for the program `claude`.

use harness::TestEnv;
use std::path::Path;

/// An environment with the team `survey`, in which `claude` is a script that writes its arguments
/// to `out/argv` and its environment to `out/env`.
fn env_with_fake_claude() -> TestEnv {
    let mut env = TestEnv::new();
    std::fs::create_dir(env.path("bin")).unwrap();
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{out}/argv'\nenv > '{out}/env'\nexec sleep 3600\n",
        out = env.path("out").display()
    );
    env.write_script("bin/claude", &text);
    let path = std::env::var("PATH").unwrap();
    env.variables.push(("PATH".into(), format!("{}:{path}", env.path("bin").display())));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env
}

#[test]
fn native_member_gets_identity_and_prompt_message() {
    let env = env_with_fake_claude();
    let args =
        ["spawn", "ann", "--profile", "claude", "--agent-type", "Explore", "--model", "m", "--prompt", "go"];
    env.teamctl_with(&args, &[("CLAUDE_CODE_SESSION_ID", "mine"), ("CLAUDE_CONFIG_DIR", "/else")])
        .expect_success();
    let environ = env.wait_until("the agent is running", || {
        Some(env.read("out/env")).filter(|text| text.contains("TEAMD_SPAWN="))
    });
    let spawn_id = environ.lines().find_map(|line| line.strip_prefix("TEAMD_SPAWN=")).unwrap();
    let argv = env.read("out/argv");
    let lead = env.read_config()["leadSessionId"].as_str().unwrap().to_owned();
    let identity = format!(
        "--agent-id\nann@survey\n--agent-name\nann\n--team-name\nsurvey\n--agent-color\nblue\n\
         --parent-session-id\n{lead}\n--agent-type\nExplore\n--session-id\n{spawn_id}\n\
         --model\nm\n--permission-mode\ndefault\n"
    );
    assert_eq!(argv, identity);
    let root = env.root().canonicalize().unwrap();
    for line in ["CLAUDECODE=1", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENTRYPOINT=cli"] {
        assert!(environ.lines().any(|entry| entry == line), "{line}: {environ}");
    }
    assert!(environ.contains(&format!("CLAUDE_CONFIG_DIR={}\n", root.display())), "{environ}");
    assert!(!environ.contains("CLAUDE_CODE_SESSION_ID"), "{environ}");
    let inbox = env.inbox("survey", "ann");
    assert_eq!(
        (&inbox[0]["text"], &inbox[0]["read"]),
        (&"go".into(), &false.into()),
        "the shim leaves the message unread"
    );
    env.shut_down();
}

/// Writes the file in place without a lock, as old clients do.
#[allow(clippy::disallowed_methods, reason = "the test acts as the client")]
fn write_in_place(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn turn_state_of_a_native_client_is_shown_and_kept() {
    let env = env_with_fake_claude();
    env.teamctl(["spawn", "ann", "--profile", "claude", "--prompt", "go"]).expect_success();
    let path = env.root().join("teams/survey/config.json");
    let wait_for_activity = |activity: &str| {
        let what = format!("ann is {activity}");
        env.wait_until(&what, || env.member("ann").filter(|ann| ann["activity"] == activity));
    };
    wait_for_activity("active");
    let busy = env.read("root/teams/survey/config.json");
    let idle = busy.replace("\"isActive\": true", "\"isActive\": false");
    assert_ne!(busy, idle);
    write_in_place(&path, &idle);
    wait_for_activity("idle");
    env.teamctl(["wait", "--for", "idle", "ann", "--timeout", "5s"]).expect_success();
    write_in_place(&path, &busy);
    wait_for_activity("active");
    assert_eq!(env.read("root/teams/survey/config.json"), busy);
    env.shut_down();
}
