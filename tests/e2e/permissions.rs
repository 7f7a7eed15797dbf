//! The rules in docs/permissions.md, tried for every command, tool and request. Unit tests compare the page
//! with the code, so an operation that is missing here fails there.

use harness::{COMMANDS_WITHOUT_TEAM, MemberEnv, REQUESTS, TestEnv, documented_permissions, request_name};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Runs a command line of the page, and returns the exit code. `name` replaces NAME.
fn run(env: &TestEnv, member: &MemberEnv, command: &str, name: &str) -> i32 {
    let words = env.documented_command(command, name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.teamctl_as(member, &words).code
}

/// The commands that a person may not run.
const FOR_MEMBERS_ALONE: [&str; 2] = ["answer-shutdown ID --approve", "submit-plan"];

#[test]
fn every_command_follows_the_page() {
    let env = TestEnv::with_team();
    let ann = env.spawn_member("survey", "ann");
    let mut checked = 0;
    for (callers, commands) in documented_permissions("commands") {
        for command in commands {
            let code = |name: &str| run(&env, &ann, command, name);
            match callers {
                "everyone" => assert_ne!(code("nobody"), 77, "{command}"),
                "the member NAME, the lead, a person" => {
                    assert_ne!(code("ann"), 77, "{command}");
                    assert_eq!(code("bob"), 77, "{command}");
                }
                "the lead, a person" => assert_eq!(code("nobody"), 77, "{command}"),
                other => panic!("{other}"),
            }
            // Three of the commands would end the daemon, change settings, or make a second team.
            if !["down", "setup PROFILE --write", "create TEAM"].contains(&command) {
                let is_refused = run(&env, &MemberEnv::default(), command, "nobody") == 77;
                assert_eq!(is_refused, FOR_MEMBERS_ALONE.contains(&command), "{command} of a person");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
    env.shut_down();
}

#[test]
fn members_of_other_teams_and_of_ended_spawns_are_refused_by_every_command() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    let stranger = env.spawn_member("other", "ann");
    let ended = env.spawn_member("survey", "ann");
    env.teamctl(["kill", "ann", "-t", "survey"]).expect_success();
    env.spawn_member("survey", "ann");
    let commands = documented_permissions("commands").into_iter().flat_map(|(_, commands)| commands);
    for command in commands.filter(|command| !COMMANDS_WITHOUT_TEAM.contains(command) && *command != "up") {
        assert_eq!(run(&env, &ended, command, "ann"), 77, "{command} of an ended spawn");
        let elsewhere = format!("-t survey {command}");
        assert_eq!(run(&env, &stranger, &elsewhere, "ann"), 77, "{elsewhere} of another team's member");
    }
    env.shut_down();
}

#[test]
fn every_tool_follows_the_page() {
    let env = TestEnv::with_team();
    let ann = env.spawn_member("survey", "ann");
    let mut mcp = env.mcp_as(&ann);
    let is_refused = |result: Result<Value, String>| result.is_err_and(|error| error.contains("that is for"));
    for (callers, tools) in documented_permissions("tools") {
        for tool in tools {
            // No tool has this argument, so a tool that is allowed fails at once.
            let result = mcp.call(tool, &json!({"unknown": true}));
            assert_eq!(is_refused(result.clone()), callers == "the lead, a person", "{tool}: {result:?}");
        }
    }
    assert!(is_refused(mcp.call("ReadInbox", &json!({"name": "team-lead"}))));
    let shutdown = json!({"type": "shutdown_request", "recipient": "ann", "content": "end"});
    assert!(is_refused(mcp.call("SendMessage", &shutdown)));
    mcp.close();
    env.shut_down();
}

#[test]
fn every_request_with_the_token_of_a_member_follows_the_page() {
    let env = TestEnv::with_team();
    let ann = env.spawn_member("survey", "ann");
    let everyone: BTreeSet<&str> = documented_permissions("requests")[0].1.iter().copied().collect();
    for line in REQUESTS.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let name = request_name(&request);
        // A long poll has no reply until there is work.
        if name != "long_poll" {
            let reply = env.call_daemon(Some(ann.token()), &request);
            let is_refused = reply["failed"]["kind"] == "not_permitted";
            assert_eq!(is_refused, !everyone.contains(name), "{name}: {reply}");
        }
        if line.contains("bob") {
            let own: Value = serde_json::from_str(&line.replace("bob", "ann")).unwrap();
            let is_own = ["locate_pane", "capture_pane", "next_task", "confirm_task"].contains(&name);
            let reply = env.call_daemon(Some(ann.token()), &own);
            assert_eq!(reply["failed"]["kind"] == "not_permitted", !is_own, "{name}: {reply}");
        }
    }
    env.shut_down();
}
