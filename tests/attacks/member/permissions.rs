//! Uses everything that docs/permissions.md reserves for others, by command line, MCP and control
//! socket: verbs of the lead, other members, other teams and other roots.

use crate::attack_log::{AttackLog, NOT_PERMITTED};
use harness::{COMMANDS_WITHOUT_TEAM, MemberEnv, REQUESTS, TestEnv, documented_permissions, request_name};
use serde_json::{Value, json};

/// The callers of the page that a member is not.
const OF_LEAD: &str = "the lead, a person";
const OF_NAMED: &str = "the member NAME, the lead, a person";

fn run(log: &mut AttackLog, env: &TestEnv, member: &MemberEnv, how: &str, command: &str) {
    let words = env.documented_command(command, "bob");
    let output = env.teamctl_as(member, &words.iter().map(String::as_str).collect::<Vec<_>>());
    log.record_command(format!("{how}: teamctl {command}"), &output, &[NOT_PERMITTED]);
}

fn attack_commands(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    // A command that works on files alone cannot know a member without its name.
    let without_name = eve.without("TEAMD_MEMBER");
    for command in ["spawn x -- true", "kill bob", "shutdown bob", "delete survey", "create other2", "down"] {
        run(log, env, &without_name, "without its name", command);
    }
    for (callers, commands) in documented_permissions("commands") {
        for command in commands {
            if [OF_LEAD, OF_NAMED].contains(&callers) {
                run(log, env, eve, "as itself", command);
                run(log, env, &eve.with("TEAMD_TOKEN", "forged"), "with a forged token", command);
            }
            if !COMMANDS_WITHOUT_TEAM.contains(&command) && command != "up" {
                run(log, env, eve, "in another team", &format!("-t other {command}"));
                let root = env.path("elsewhere").display().to_string();
                run(log, env, eve, "in another root", &format!("--root {root} {command}"));
            }
        }
    }
    run(log, env, eve, "as a person", "send bob x --as-user");
    run(log, env, eve, "as itself", "inbox team-lead --mark-read");
}

fn attack_tools(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    let mut mcp = env.mcp_as(eve);
    let mut call = |tried: &str, tool: &str, arguments: &Value| {
        let outcome = match mcp.call(tool, arguments) {
            Err(error) if error.contains("that is for") || error.contains("unknown field") => Ok(error),
            result => Err(format!("{result:?}")),
        };
        log.record(format!("MCP {tool}{tried}"), outcome);
    };
    for (callers, tools) in documented_permissions("tools") {
        for tool in tools.into_iter().filter(|_| callers == OF_LEAD) {
            call("", tool, &json!({}));
        }
    }
    call(" of the lead", "ReadInbox", &json!({"name": "team-lead"}));
    call(" of bob", "ReadInbox", &json!({"name": "bob"}));
    let ask = |kind: &str| json!({"type": kind, "recipient": "bob", "content": "x"});
    call(" with a shutdown request", "SendMessage", &ask("shutdown_request"));
    let later = json!({"to": "bob", "message": {"type": "shutdown_request", "reason": "x"}});
    call(" with a shutdown request as an object", "SendMessage", &later);
    let as_text = json!({"to": "bob", "message": "{\"type\": \"shutdown_request\"}"});
    call(" with a shutdown request as a text", "SendMessage", &as_text);
    for key in ["from", "as_user", "sender", "team_name"] {
        let arguments = json!({"recipient": "bob", "content": "x", key: "user"});
        call(&format!(" with the argument {key}"), "SendMessage", &arguments);
    }
    mcp.close();
}

/// Sends every request of the lead, and those about bob, with eve's token.
fn attack_socket(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    let everyone = documented_permissions("requests").swap_remove(0).1;
    let requests: Vec<Value> = REQUESTS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for request in requests.iter().filter(|request| !everyone.contains(&request_name(request))) {
        for (token, how) in [(eve.token(), "its token"), ("forged", "a forged token")] {
            let reply = env.call_daemon(Some(token), request);
            log.record_denial(format!("socket: {} about bob with {how}", request_name(request)), &reply);
        }
    }
    let about_lead = [
        json!({"report_hook": {"leads_team": "survey", "event": "session_ended"}}),
        json!({"long_poll": {"leads_team": "survey"}}),
        json!({"report_hook": {"leads_team": "other", "event": "session_ended"}}),
        json!({"locate_pane": {"team": "other", "name": "bob"}}),
    ];
    for request in about_lead {
        let reply = env.call_daemon(Some(eve.token()), &request);
        log.record_denial(format!("socket: {request}"), &reply);
    }
}

/// The number of members that run.
fn count_processes(env: &TestEnv) -> usize {
    env.json(["status"])["teams"].to_string().matches("\"pid\":").count()
}

pub(crate) fn attack(log: &mut AttackLog) {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    env.teamctl(["spawn", "bob", "-t", "other", "--", "sleep", "3600"]).expect_success();
    env.spawn_member("survey", "bob");
    let eve = env.spawn_member("survey", "eve");
    let before = count_processes(&env);
    attack_commands(log, &env, &eve);
    attack_tools(log, &env, &eve);
    attack_socket(log, &env, &eve);
    log.record_state(
        "ends a member or a team by one of these attacks; processes",
        count_processes(&env),
        before,
    );
    log.out_of_scope(
        "unsets TEAMD_MEMBER and TEAMD_TOKEN",
        "it is a person then: members run as the same user",
    );
    env.shut_down();
}
