//! Uses the environment of a spawn that has ended, while another spawn has the member's name.

use crate::attack_log::{AttackLog, NOT_PERMITTED};
use harness::{MemberEnv, REQUESTS, TestEnv, documented_permissions, request_name};
use serde_json::{Value, json};

fn attack_files(log: &mut AttackLog, env: &TestEnv, ended: &MemberEnv) {
    let commands: [&[&str]; 12] = [
        &["inbox"],
        &["inbox", "--unread", "--mark-read"],
        &["send", "bob", "x"],
        &["broadcast", "x"],
        &["task", "create", "x"],
        &["task", "claim"],
        &["task", "list"],
        &["answer-shutdown", "shutdown-1@eve", "--approve"],
        &["submit-plan", "out/plan.md"],
        &["status"],
        &["logs", "eve"],
        &["events"],
    ];
    for args in commands {
        let tried = format!("teamctl {}", args.join(" "));
        log.record_command(tried, &env.teamctl_as(ended, args), &[NOT_PERMITTED]);
    }
}

/// Calls the tools of a server that was started before the spawn ended.
fn attack_tools(log: &mut AttackLog, mut mcp: harness::McpClient) {
    let calls = [
        ("ReadInbox", json!({"mark_read": true})),
        ("ReadInbox", json!({})),
        ("MarkRead", json!({})),
        ("SendMessage", json!({"recipient": "bob", "content": "x"})),
        ("TaskCreate", json!({"subject": "x"})),
        ("TaskList", json!({})),
        ("Wait", json!({"timeout_seconds": 0})),
        (
            "SendMessage",
            json!({"type": "shutdown_response", "request_id": "shutdown-1@eve", "approve": true}),
        ),
    ];
    for (tool, arguments) in calls {
        log.record_tool(
            format!("MCP, server of the ended spawn: {tool} {arguments}"),
            mcp.call(tool, &arguments),
        );
    }
    mcp.close();
}

/// Sends all requests that a member may make with the token of the ended spawn.
fn attack_socket(log: &mut AttackLog, env: &TestEnv, ended: &MemberEnv) {
    let of_member = documented_permissions("requests")
        .into_iter()
        .filter(|(callers, _)| *callers != "the lead, a person");
    let of_member: Vec<&str> = of_member.flat_map(|(_, requests)| requests).collect();
    for line in REQUESTS.lines().map(|line| line.replace("bob", "eve")) {
        let request: Value = serde_json::from_str(&line).unwrap();
        let name = request_name(&request).to_owned();
        // A shim has no token.
        if of_member.contains(&name.as_str()) && name != "connect_shim" {
            let reply = env.call_daemon(Some(ended.token()), &request);
            log.record_denial(format!("socket: {name}"), &reply);
        }
    }
}

/// Runs every hook. A hook always exits with 0, so the attack is judged by what it prints and
/// marks.
fn attack_hooks(log: &mut AttackLog, env: &TestEnv, ended: &MemberEnv) {
    for event in ["session-start", "prompt", "turn-end", "notification", "tool", "session-end"] {
        let output = env.hook(event, &ended.variables());
        let shown = output.stdout.contains("for the second");
        let outcome = if shown { Err(output.stdout) } else { Ok("it prints no message".to_owned()) };
        log.record(format!("teamd-shim hook {event}"), outcome);
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    let env = TestEnv::with_team();
    env.spawn_member("survey", "bob");
    for delivery in ["pull", "hook"] {
        let script = env.member_script("survey", "eve");
        env.write_profile(
            "eve",
            &format!("delivery = \"{delivery}\"\nprogram = \"sh\"\nargs = [\"-c\", \"{script}\"]\n"),
        );
        env.teamctl(["spawn", "eve", "--profile", "eve"]).expect_success();
        let ended = env.read_member_env("survey", "eve");
        let mcp = env.mcp_as(&ended);
        env.teamctl(["kill", "eve"]).expect_success();
        env.member_script("survey", "eve");
        env.teamctl(["spawn", "eve", "--profile", "eve"]).expect_success();
        env.read_member_env("survey", "eve");
        env.teamctl(["send", "eve", "for the second"]).expect_success();
        env.write_file("out/plan.md", "a plan");
        attack_files(log, &env, &ended);
        attack_tools(log, mcp);
        attack_socket(log, &env, &ended);
        attack_hooks(log, &env, &ended);
        let read = env.inbox("survey", "eve").iter().filter(|message| message["read"] == true).count();
        log.record_state(
            format!("marks messages of the next spawn read, delivery {delivery}; read messages"),
            read,
            0,
        );
        env.teamctl(["kill", "eve"]).expect_success();
    }
    log.out_of_scope(
        "uses the environment while no spawn has the name",
        "docs/permissions.md: refused as soon as one runs",
    );
    env.shut_down();
}
