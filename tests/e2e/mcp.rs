//! The MCP server: with other clients (the Python SDK and the inspector), and with raw lines of
//! JSON.

mod edge_cases;
mod spawn_on_host;

use harness::{CommandOutput, TestEnv};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program, if it is installed. `make test` installs it and sets `FOREIGN=needed`; with that, a
/// missing program is a failure.
#[allow(clippy::print_stderr, reason = "the output says which test was skipped")]
pub(crate) fn is_installed(program: PathBuf) -> Option<PathBuf> {
    if program.exists() {
        return Some(program);
    }
    let is_needed = std::env::var("FOREIGN").is_ok_and(|foreign| foreign == "needed");
    assert!(!is_needed, "{} is missing: make test installs it", program.display());
    eprintln!("SKIPPED: {} is not installed; make test installs it", program.display());
    None
}

/// Runs a script with the official Python SDK that leads a team from its creation to its end.
/// `mode` is the mode of the client, `version` the protocol version that it must negotiate.
fn run_python_client(mode: &str, version: &str) {
    let target = harness::programs().parent().unwrap().to_owned();
    let Some(python) = is_installed(target.join("python/bin/python")) else { return };
    let env = TestEnv::with_daemon();
    env.write_profile("echo", "delivery = \"turn\"\nprogram = \"cat\"\n");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/compat/mcp_client.py");
    let mut command = env.command(python);
    command.args([script, mode, "500"]).env("TEAMCTL", harness::programs().join("teamctl"));
    let output = run_command(command);
    assert_eq!(output.code, 0, "{output:#?}");
    let report = output.json();
    assert_eq!(report["failures"], json!([]));
    assert_eq!(report["version"], version);
    assert!(report["calls"].as_u64().unwrap() > 500, "{report}");
    env.shut_down();
}

fn run_command(mut command: Command) -> CommandOutput {
    let output = command.output().unwrap();
    CommandOutput {
        command: format!("{command:?}"),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn python_client_leads_a_team_with_handshake() {
    run_python_client("legacy", "2025-11-25");
}

#[test]
fn python_client_leads_a_team_stateless() {
    run_python_client("auto", "2026-07-28");
}

#[test]
fn inspector_lists_and_calls_tools() {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/writers/node_modules");
    let Some(inspector) = is_installed(modules.join("@modelcontextprotocol/inspector-cli/build/cli.js"))
    else {
        return;
    };
    let env = TestEnv::with_team();
    let inspect = |args: &[&str]| -> Value {
        let mut command = env.command("node");
        let server = harness::programs().join("teamctl");
        command.arg(&inspector).arg("--cli").arg(server).args(["mcp", "--team", "survey"]).args(args);
        let output = run_command(command);
        assert_eq!(output.code, 0, "{output:#?}");
        output.json()
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 15, "{tools}");
    let call = ["--method", "tools/call", "--tool-name", "TaskCreate", "--tool-arg", "subject=look"];
    let result = inspect(&call);
    assert_eq!(result["structuredContent"]["task"]["subject"], "look");
    env.shut_down();
}

/// A client that sends and receives raw lines of JSON.
struct RawMcpClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl RawMcpClient {
    fn start(env: &TestEnv, arguments: &[&str], variables: &[(&str, &str)]) -> RawMcpClient {
        let mut command = env.command(harness::programs().join("teamctl"));
        command.arg("mcp").args(arguments).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = RawMcpClient { child, input, output };
        let client_info = json!({"name": "bare", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info});
        let reply = client.send_request(0, "initialize", &params);
        assert_eq!(reply["result"]["protocolVersion"], "2025-06-18");
        assert!(reply["result"]["instructions"].as_str().unwrap().contains("SendMessage"));
        client.send_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send_line(&mut self, line: &Value) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn send_request(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.receive_line()
    }

    fn receive_line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Calls a tool and returns its result.
    ///
    /// # Errors
    ///
    /// The text of the error that the tool returns.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let answer = self.send_request(1, "tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        match result["isError"].as_bool() {
            Some(true) => Err(result["content"][0]["text"].as_str().unwrap().to_owned()),
            _ => Ok(result["structuredContent"].clone()),
        }
    }

    /// Closes the connection and returns the exit code of the server.
    fn close(mut self) -> i32 {
        drop(self.input);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

#[test]
fn messages_and_tasks_work_without_a_daemon() {
    let env = TestEnv::with_team();
    env.kill_process(env.daemon_pid());
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    let reply = lead.call("SendMessage", &json!({"recipient": "team-lead", "content": "to myself"})).unwrap();
    assert_eq!(reply["message"], "Message sent to team-lead's inbox");
    assert_eq!(lead.call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["status"], "pending");
    assert_eq!(lead.call("ReadInbox", &json!({})).unwrap()["messages"][0]["text"], "to myself");
    let error =
        lead.call("SpawnTeammate", &json!({"name": "ann", "prompt": "", "profile": "worker"})).unwrap_err();
    assert!(
        error.contains("cannot reach teamd") && error.contains("Next: start it with: teamctl up"),
        "{error}"
    );
    assert_eq!(lead.close(), 0);
    env.start_daemon();
    env.shut_down();
}

#[test]
fn server_acts_for_its_member_and_one_team() {
    let env = TestEnv::with_team();
    let ann = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    let error = env.teamctl_with(&["mcp", "--member", "bob@survey"], &ann).expect_failure(77);
    assert!(error.contains("cannot speak for bob: this is the environment of ann"), "{error}");
    env.teamctl_with(&["mcp", "--member", "team-lead"], &ann).expect_failure(77);
    env.teamctl(["mcp", "--member", "ann"]).expect_failure(64);
    let mut lead = RawMcpClient::start(&env, &[], &[("TEAMD_TEAM", "survey")]);
    let error = lead.call("TeamCreate", &json!({"team_name": "other"})).unwrap_err();
    assert!(error.contains("you lead survey already"), "{error}");
    assert_eq!(lead.close(), 0);
    let mut client = RawMcpClient::start(&env, &[], &[]);
    let error = client.call("TaskList", &json!({})).unwrap_err();
    assert!(error.contains("TeamCreate"), "the server uses no team of another program: {error}");
    let reply = client.call("TeamCreate", &json!({"team_name": "survey"})).unwrap();
    assert_eq!(reply["team_name"], "survey-2");
    assert_eq!(client.call("TeamDelete", &json!({})).unwrap()["team_name"], "survey-2");
    assert_eq!(client.close(), 0);
    env.shut_down();
}

#[test]
fn non_member_is_rejected() {
    let env = TestEnv::with_team();
    let error = env.teamctl(["mcp", "--member", "nobody@survey"]).expect_failure(67);
    assert!(error.contains("nobody"), "{error}");
    env.teamctl(["mcp", "--member", "ann@elsewhere"]).expect_failure(67);
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let mut ann = RawMcpClient::start(&env, &["--member", "Ann@survey"], &[]);
    ann.call("SendMessage", &json!({"recipient": "team-lead", "content": "hello"})).unwrap();
    assert_eq!(env.inbox("survey", "team-lead")[0]["from"], "ann");
    assert_eq!(ann.close(), 0);
    env.shut_down();
}

#[test]
fn server_in_a_lead_session_uses_its_team() {
    let env = TestEnv::with_team();
    env.teamctl(["create", "other"]).expect_success();
    env.teamctl(["lead", "survey"]).expect_success();
    let mut lead = RawMcpClient::start(&env, &[], &[]);
    let error = lead.call("TeamCreate", &json!({"team_name": "third"})).unwrap_err();
    assert!(error.contains("you lead survey already"), "{error}");
    assert_eq!(lead.call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["status"], "pending");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn server_of_a_teammate_without_environment_is_not_the_lead() {
    let env = TestEnv::with_team();
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, "TeamDelete", &json!({})),
        call(2, "SendMessage", &json!({"recipient": "team-lead", "content": "hello"})),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    env.write_script("out/asked", &format!("{}\n", lines.join("\n")));
    let (out, teamctl) = (env.path("out"), harness::programs().join("teamctl"));
    let (out, teamctl) = (out.display(), teamctl.display());
    // The input of the server stays open while the agent runs.
    let script = format!("(cat {out}/asked; exec sleep 3600) | env -i {teamctl} mcp >{out}/said 2>&1");
    env.teamctl(["spawn", "ann", "--", "sh", "-c", &script]).expect_success();
    let read_replies = || env.read("out/said");
    env.wait_until("the server has replied to the last call", || {
        read_replies().contains("\"id\":2").then_some(())
    });
    assert!(read_replies().contains("You are `ann`, a teammate on the team `survey`"), "{}", read_replies());
    assert!(read_replies().contains("as ann: that is for the lead or a person"), "{}", read_replies());
    assert_eq!(env.inbox("survey", "team-lead")[0]["from"], "ann");
    let other_script =
        format!("env -i {teamctl} mcp --member bob@survey 2>{out}/other </dev/null; exec sleep 3600");
    env.teamctl(["spawn", "cat", "--", "sh", "-c", &other_script]).expect_success();
    env.wait_until("the server for bob is rejected", || {
        env.read("out/other").contains("cannot speak for bob").then_some(())
    });
    env.teamctl_with(&["mcp", "--team", "other"], &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")])
        .expect_failure(77);
    env.shut_down();
}

#[test]
fn spawned_teammate_can_have_a_worktree() {
    let mut env = TestEnv::new();
    let variable = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    env.variables = names.map(|key| variable(key, "t")).to_vec();
    env.variables.push(variable("GIT_CONFIG_GLOBAL", "/dev/null"));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let repository = env.path("repo");
    let repository = repository.display();
    let script =
        format!("git init -q -b main {repository} && git -C {repository} commit -q --allow-empty -m first");
    assert!(env.command("sh").args(["-c", &script]).status().unwrap().success());
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    let spawn_args = |name: &str| json!({"name": name, "prompt": "", "profile": "worker", "cwd": repository.to_string(), "worktree": true});
    let mut ann = spawn_args("ann");
    ann["branch"] = json!("side");
    lead.call("SpawnTeammate", &ann).unwrap();
    lead.call("SpawnTeammate", &spawn_args("bob")).unwrap();
    let status = env.json(["status"]);
    let branches: Vec<&Value> = status["teams"][0]["worktrees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worktree| &worktree["branch"])
        .collect();
    assert_eq!(branches, ["side", "teamd/survey/bob"], "{status:#}");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn tool_cannot_answer_requests_left_to_a_person() {
    let env = TestEnv::with_daemon();
    std::fs::File::create(env.path("policy.toml"))
        .unwrap()
        .write_all(b"[policy]\nplans = \"person\"\n")
        .unwrap();
    let policy = env.path("policy.toml").display().to_string();
    env.teamctl(["create", "survey", "--policy", &policy]).expect_success();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let plan = r#"{"type":"plan_approval_request","from":"ann","timestamp":"2099-01-01T00:00:00.000Z","planFilePath":"","planContent":"x","requestId":"plan_approval-1@ann@survey"}"#;
    let messages =
        json!([{"from": "ann", "text": plan, "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let inbox = env.root().join("teams/survey/inboxes/team-lead.json");
    std::fs::File::create(inbox).unwrap().write_all(messages.to_string().as_bytes()).unwrap();
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    let reply = lead.call("Requests", &json!({})).unwrap();
    assert_eq!(reply["requests"][0]["id"], "plan_approval-1@ann@survey");
    let approval = json!({"id": "plan_approval-1@ann@survey"});
    let error = lead.call("Approve", &approval).unwrap_err();
    assert!(error.contains("leaves that to a person"), "{error}");
    assert!(lead.call("Deny", &json!({"id": "plan_approval-1@ann@survey", "reason": "x"})).is_err());
    env.teamctl(["approve", "plan_approval-1@ann@survey"]).expect_success();
    let error = lead.call("Approve", &approval).unwrap_err();
    assert!(error.contains("answered"), "{error}");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn cancelled_wait_leaves_no_process() {
    let env = TestEnv::with_team();
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    let wait = json!({"name": "Wait", "arguments": {"timeout_seconds": 600}});
    lead.send_line(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": wait}));
    env.teamctl(["send", "team-lead", "wake"]).expect_success();
    let mut line = String::new();
    lead.output.read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["happened"]),
        (&json!(7), &json!(true))
    );
    let wait = json!({"name": "Wait", "arguments": {"for": "tasks-done", "timeout_seconds": 600}});
    assert!(lead.call("TaskCreate", &json!({"subject": "open"})).is_ok());
    lead.send_line(&json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": wait}));
    assert!(lead.call("TaskList", &json!({})).is_ok(), "other calls are answered meanwhile");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn missing_teamctl_is_reported() {
    let env = TestEnv::new();
    let teamctl = env.path("out/teamctl");
    let status = Command::new("cp").arg(harness::programs().join("teamctl")).arg(&teamctl).status();
    assert!(status.unwrap().success());
    let mut command = env.command(&teamctl);
    command.arg("mcp");
    let error = run_command(command).expect_failure(72);
    assert!(error.contains("teamd-mcp") && error.contains("make install"), "{error}");
    env.shut_down();
}
