//! The rules in docs/permissions.md, tried for every command, tool and request. Unit tests compare the page
//! with the code, so an operation that is missing here fails there.

use harness::{McpClient, TestEnv};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

const PAGE: &str = include_str!("../../docs/permissions.md");

/// The rows of one of the page's tables: the callers, and the operations.
fn documented(table: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let table = PAGE.split(&format!("<!-- permissions: {table} -->\n")).nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let (callers, operations) = row.trim_matches('|').split_once('|').unwrap();
        (callers.trim(), operations.trim().split(", ").map(|name| name.trim_matches('`')).collect())
    })
    .collect()
}

/// The environment of a running member whose program writes it to a file.
fn spawn_member(env: &TestEnv, team: &str, name: &str) -> Vec<(String, String)> {
    let file = format!("out/{team}-{name}");
    let script = format!("env >{file}.new; mv {file}.new {file}; exec sleep 3600");
    std::fs::remove_file(env.path(&file)).ok();
    env.teamctl(["-t", team, "spawn", name, "--", "sh", "-c", &script]).expect_success();
    let text = env.wait_until("the environment is written", || {
        Some(env.read(&file)).filter(|text| text.contains("TEAMD_TOKEN="))
    });
    let variables = text.lines().filter_map(|line| line.split_once('='));
    variables
        .filter(|(key, _)| key.starts_with("TEAMD_") && !key.starts_with("TEAMD_TEST"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Runs a command line of the page, and returns the exit code. `name` replaces NAME.
fn run(env: &TestEnv, variables: &[(String, String)], command: &str, name: &str) -> i32 {
    let word = |word: &str| match word {
        "NAME" => name.to_owned(),
        "ID" => "99".to_owned(),
        "FILE" => "missing.file".to_owned(),
        "DIR" => env.path("out/man").display().to_string(),
        "PROFILE" => "codex".to_owned(),
        "TEAM" => "missing".to_owned(),
        other => other.to_owned(),
    };
    let mut words: Vec<String> = command.split(' ').map(word).collect();
    if command.ends_with("wait") {
        words.extend(["--timeout", "1ms"].map(str::to_owned));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    env.teamctl_with(&words, &variables).code
}

/// The commands that a person may not run.
const FOR_MEMBERS_ALONE: [&str; 2] = ["answer-shutdown ID --approve", "submit-plan"];

#[test]
fn every_command_follows_the_page() {
    let env = TestEnv::with_team();
    let ann = spawn_member(&env, "survey", "ann");
    let mut checked = 0;
    for (callers, commands) in documented("commands") {
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
                let is_refused = run(&env, &[], command, "nobody") == 77;
                assert_eq!(is_refused, FOR_MEMBERS_ALONE.contains(&command), "{command} of a person");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
    env.shut_down();
}

/// The commands that neither read nor change a team or the daemon.
const WITHOUT_TEAM: [&str; 8] = [
    "profiles",
    "setup PROFILE",
    "mcp",
    "instructions",
    "notify TEXT",
    "completions bash",
    "man DIR",
    "doctor",
];

#[test]
fn members_of_other_teams_and_of_ended_spawns_are_refused_by_every_command() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    let stranger = spawn_member(&env, "other", "ann");
    let ended = spawn_member(&env, "survey", "ann");
    env.teamctl(["kill", "ann", "-t", "survey"]).expect_success();
    spawn_member(&env, "survey", "ann");
    let commands = documented("commands").into_iter().flat_map(|(_, commands)| commands);
    for command in commands.filter(|command| !WITHOUT_TEAM.contains(command) && *command != "up") {
        assert_eq!(run(&env, &ended, command, "ann"), 77, "{command} of an ended spawn");
        let elsewhere = format!("-t survey {command}");
        assert_eq!(run(&env, &stranger, &elsewhere, "ann"), 77, "{elsewhere} of another team's member");
    }
    env.shut_down();
}

#[test]
fn every_tool_follows_the_page() {
    let env = TestEnv::with_team();
    let ann = spawn_member(&env, "survey", "ann");
    let variables: Vec<(&str, &str)> =
        ann.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut mcp = McpClient::connect_with_env(&env, &[], &variables);
    let is_refused = |result: Result<Value, String>| result.is_err_and(|error| error.contains("that is for"));
    for (callers, tools) in documented("tools") {
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

/// A request of each kind, about the member bob of the team survey.
const REQUESTS: &str = include_str!("../../crates/protocol/tests/data/requests.jsonl");

#[test]
fn every_request_with_the_token_of_a_member_follows_the_page() {
    let env = TestEnv::with_team();
    let ann = spawn_member(&env, "survey", "ann");
    let variable = |name: &str| ann.iter().find(|(key, _)| key == name).unwrap().1.clone();
    let (socket, token) = (variable("TEAMD_SOCKET"), variable("TEAMD_TOKEN"));
    let everyone: BTreeSet<&str> = documented("requests")[0].1.iter().copied().collect();
    for line in REQUESTS.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let name =
            request.as_str().or_else(|| request.as_object()?.keys().next().map(String::as_str)).unwrap();
        // A long poll has no reply until there is work.
        if name != "long_poll" {
            let reply = call(&socket, &token, &request);
            let is_refused = reply["failed"]["kind"] == "not_permitted";
            assert_eq!(is_refused, !everyone.contains(name), "{name}: {reply}");
        }
        if line.contains("bob") {
            let own: Value = serde_json::from_str(&line.replace("bob", "ann")).unwrap();
            let is_own = ["locate_pane", "capture_pane", "next_task"].contains(&name);
            let reply = call(&socket, &token, &own);
            assert_eq!(reply["failed"]["kind"] == "not_permitted", !is_own, "{name}: {reply}");
        }
    }
    env.shut_down();
}

/// The daemon's reply to a request with the token.
fn call(socket: &str, token: &str, request: &Value) -> Value {
    let mut stream = UnixStream::connect(socket).unwrap();
    let call = json!({"version": 2, "token": token, "request": request});
    stream.write_all(format!("{call}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}
