//! Sends texts over every limit by hook, MCP, command line and socket. The daemon's memory stays
//! below a limit, the next daemon reads the roster, and the event log keeps its history.

use crate::attack_log::{AttackLog, check_refused};
use crate::member::long_requests::{long_requests, long_text};
use harness::{CommandOutput, MemberEnv, ProcessStats, TestEnv};
use serde_json::{Value, json};
use std::fs::File;

/// The limit of the daemon's resident memory. It has about 20 MB without an attack, and reads
/// requests of up to 8 MiB.
const MAX_MEMORY_KB: u64 = 128 * 1024;

fn attack_socket(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    for (what, request) in long_requests() {
        for (token, caller) in [(Some(eve.token()), "member"), (None, "person")] {
            let reply = env.call_daemon(token, &request);
            log.record_reply(format!("socket, as {caller}: {what}"), &reply);
        }
    }
    let text = long_text();
    for key in ["token", "idempotency_key", "root"] {
        let calls = (0..60).map(|number| {
            let mut call = json!({"version": 2, "request": "status"});
            call[key] = json!(format!("{number}{text}"));
            protocol::control_socket::framing::encode(&call).unwrap()
        });
        let replies: Vec<Value> = calls.map(|call| env.send_to_daemon(&call)).collect();
        let accepted = replies.iter().filter(|reply| !reply["done"].is_null()).count();
        log.record_state(format!("socket: 60 calls with a {key} of 7 MiB, accepted"), accepted, 0);
    }
}

fn attack_tools(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    let text = long_text();
    let mut mcp = env.mcp_as(eve);
    for (tool, arguments) in [
        ("SendMessage", json!({"recipient": "bob", "content": text})),
        ("SendMessage", json!({"recipient": "bob", "content": "x", "summary": text})),
        ("SendMessage", json!({"type": "broadcast", "content": text})),
        ("TaskCreate", json!({"subject": text})),
        ("TaskCreate", json!({"subject": "x", "description": text})),
        ("TaskCreate", json!({"subject": "x", "activeForm": text})),
        ("TaskCreate", json!({"subject": "x", "metadata": {"a": text}})),
        ("TaskUpdate", json!({"taskId": "1", "subject": text})),
        ("TaskUpdate", json!({"taskId": "1", "description": text})),
    ] {
        let keys: Vec<&String> = arguments.as_object().unwrap().keys().collect();
        log.record_tool(format!("MCP {tool} {keys:?} of 7 MiB"), mcp.call(tool, &arguments));
    }
    mcp.close();
}

/// Runs a program of eve's with a long text on its standard input.
fn run_with_input(
    env: &TestEnv,
    eve: &MemberEnv,
    program: &str,
    args: &[&str],
    input: &str,
) -> CommandOutput {
    let input = File::open(env.write_file("out/input", input)).unwrap();
    let mut command = env.command(harness::programs().join(program));
    command.args(args).envs(eve.variables()).stdin(input);
    harness::run_command(command)
}

fn attack_commands(log: &mut AttackLog, env: &TestEnv, eve: &MemberEnv) {
    let text = long_text();
    for args in [&["send", "bob", "-"][..], &["broadcast", "-"]] {
        let output = run_with_input(env, eve, "teamctl", args, &text);
        log.record_command(format!("teamctl {} with 7 MiB", args.join(" ")), &output, &[64]);
    }
    // The hook `turn-end` waits for messages, and reads the same input.
    for event in ["session-start", "prompt", "notification", "tool", "session-end"] {
        let input = json!({"session_id": text, "message": "m", "prompt": "p"}).to_string();
        let long_message =
            json!({"session_id": "s", "message": text, "prompt": text, "tool_name": "Bash"}).to_string();
        for (what, input) in [("a session id", input), ("a message and a prompt", long_message)] {
            let output = run_with_input(env, eve, "teamd-shim", &["hook", event], &input);
            let refused = check_refused(&output, &[0]).map(|_| output.stderr.chars().take(150).collect());
            log.record(format!("teamd-shim hook {event} with {what} of 7 MiB"), refused);
        }
    }
}

pub(crate) fn attack(log: &mut AttackLog) {
    let env = TestEnv::with_team();
    env.spawn_member("survey", "bob");
    env.teamctl(["task", "create", "first"]).expect_success();
    let script = env.member_script("survey", "eve");
    env.write_profile(
        "hooked",
        &format!("delivery = \"hook\"\nprogram = \"sh\"\nargs = [\"-c\", \"{script}\"]\n"),
    );
    env.teamctl(["spawn", "eve", "--profile", "hooked"]).expect_success();
    let eve = env.read_member_env("survey", "eve");
    let (pid, events) = (env.daemon_pid(), env.events());
    attack_socket(log, &env, &eve);
    attack_tools(log, &env, &eve);
    attack_commands(log, &env, &eve);
    let peak = ProcessStats::read(pid).map_or(u64::MAX, |stats| stats.peak);
    log.record_amount("fills the daemon's memory", peak, MAX_MEMORY_KB, "KB");
    let kept = env.events().starts_with(&events[..1]);
    log.record_state("pushes the history out of the event log; it is kept", kept, true);
    env.kill_process(pid);
    env.start_daemon();
    let lifecycles = ["bob", "eve"].map(|name| env.member(name).unwrap_or_default()["lifecycle"].clone());
    let running = ["running", "running"].map(Value::from);
    log.record_state("makes the roster unreadable for the next daemon", lifecycles, running);
    let files = harness::files_below(&env.path("state"));
    let sizes = files.iter().filter_map(|path| Some(path.metadata().ok()?.len()));
    let largest = sizes.max().expect("there are files");
    log.record_amount("makes a file of the state directory too large to read", largest, 8 << 20, "bytes");
    env.shut_down();
}
