//! The MCP server: through clients that are not ours, and on its bare lines.

mod edge_cases;

use harness::{CommandOutput, TestEnv};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `make test` brings them, and says so: then one that is missing is a failure.
#[allow(clippy::print_stderr, reason = "a test that did not run says so")]
pub(crate) fn is_installed(program: PathBuf) -> Option<PathBuf> {
    if program.exists() {
        return Some(program);
    }
    let needed = std::env::var("FOREIGN").is_ok_and(|foreign| foreign == "needed");
    assert!(!needed, "{} is missing: make test brings it", program.display());
    eprintln!("SKIPPED: {} is not there; make test brings it", program.display());
    None
}

/// The official Python SDK leads a team from its making to its end, in that mode of its client.
fn run_python_client(mode: &str, version: &str) {
    let target = harness::programs().parent().unwrap().to_owned();
    let Some(python) = is_installed(target.join("python/bin/python")) else { return };
    let env = TestEnv::with_daemon();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/compat/mcp_client.py");
    let mut command = env.command(python);
    command.args([script, mode, "500"]).env("TEAMCTL", harness::programs().join("teamctl"));
    let ran = run_command(command);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let told = ran.json();
    assert_eq!(told["failures"], json!([]));
    assert_eq!(told["version"], version);
    assert!(told["calls"].as_u64().unwrap() > 500, "{told}");
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
    let inspect = |method: &[&str]| -> Value {
        let mut command = env.command("node");
        let server = harness::programs().join("teamctl");
        command.arg(&inspector).arg("--cli").arg(server).args(["mcp", "--team", "survey"]).args(method);
        let ran = run_command(command);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 14, "{tools}");
    let call = ["--method", "tools/call", "--tool-name", "TaskCreate", "--tool-arg", "subject=look"];
    let made = inspect(&call);
    assert_eq!(made["structuredContent"]["task"]["subject"], "look");
    env.shut_down();
}

/// The server's bare lines.
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
        let mut lines = RawMcpClient { child, input, output };
        let us = json!({"name": "bare", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": us});
        let welcome = lines.send_request(0, "initialize", &hello);
        assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18");
        assert!(welcome["result"]["instructions"].as_str().unwrap().contains("SendMessage"));
        lines.send_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        lines
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

    /// The result of a tool, or the text of its refusal.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let answer = self.send_request(1, "tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        match result["isError"].as_bool() {
            Some(true) => Err(result["content"][0]["text"].as_str().unwrap().to_owned()),
            _ => Ok(result["structuredContent"].clone()),
        }
    }

    /// The program goes away.
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
    let sent = lead.call("SendMessage", &json!({"recipient": "team-lead", "content": "to myself"})).unwrap();
    assert_eq!(sent["message"], "Message sent to team-lead's inbox");
    assert_eq!(lead.call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["status"], "pending");
    assert_eq!(lead.call("ReadInbox", &json!({})).unwrap()["messages"][0]["text"], "to myself");
    let refused =
        lead.call("SpawnTeammate", &json!({"name": "ann", "prompt": "", "profile": "worker"})).unwrap_err();
    assert!(
        refused.contains("cannot reach teamd") && refused.contains("Next: start it with: teamctl up"),
        "{refused}"
    );
    assert_eq!(lead.close(), 0);
    env.start_daemon();
    env.shut_down();
}

#[test]
fn server_acts_for_its_member_and_one_team() {
    let env = TestEnv::with_team();
    let ann = [("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")];
    let refused = env.teamctl_with(&["mcp", "--member", "bob@survey"], &ann).expect_failure(77);
    assert!(refused.contains("cannot speak for bob: this is the environment of ann"), "{refused}");
    env.teamctl_with(&["mcp", "--member", "team-lead"], &ann).expect_failure(77);
    env.teamctl(["mcp", "--member", "ann"]).expect_failure(64);
    let mut lead = RawMcpClient::start(&env, &[], &[("TEAMD_TEAM", "survey")]);
    let refused = lead.call("TeamCreate", &json!({"team_name": "other"})).unwrap_err();
    assert!(refused.contains("you lead survey already"), "{refused}");
    assert_eq!(lead.close(), 0);
    let mut free = RawMcpClient::start(&env, &[], &[]);
    let refused = free.call("TaskList", &json!({})).unwrap_err();
    assert!(refused.contains("TeamCreate"), "a team that others made is not taken: {refused}");
    let made = free.call("TeamCreate", &json!({"team_name": "survey"})).unwrap();
    assert_eq!(made["team_name"], "survey-2");
    assert_eq!(free.call("TeamDelete", &json!({})).unwrap()["team_name"], "survey-2");
    assert_eq!(free.close(), 0);
    env.shut_down();
}

#[test]
fn non_member_is_rejected() {
    let env = TestEnv::with_team();
    let refused = env.teamctl(["mcp", "--member", "nobody@survey"]).expect_failure(67);
    assert!(refused.contains("nobody"), "{refused}");
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
    let refused = lead.call("TeamCreate", &json!({"team_name": "third"})).unwrap_err();
    assert!(refused.contains("you lead survey already"), "{refused}");
    assert_eq!(lead.call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["status"], "pending");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn server_of_a_teammate_without_environment_is_not_the_lead() {
    let env = TestEnv::with_team();
    let initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, "TeamDelete", &json!({})),
        call(2, "SendMessage", &json!({"recipient": "team-lead", "content": "hello"})),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    env.write_script("out/asked", &format!("{}\n", lines.join("\n")));
    let (out, teamctl) = (env.path("out"), harness::programs().join("teamctl"));
    let (out, teamctl) = (out.display(), teamctl.display());
    // Its input stays open for as long as the agent lives.
    let bare = format!("(cat {out}/asked; exec sleep 3600) | env -i {teamctl} mcp >{out}/said 2>&1");
    env.teamctl(["spawn", "ann", "--", "sh", "-c", &bare]).expect_success();
    let said = || env.read("out/said");
    env.wait_until("all is answered", || said().contains("\"id\":2").then_some(()));
    assert!(said().contains("You are `ann`, a teammate on the team `survey`"), "{}", said());
    assert!(said().contains("as ann: that is for the lead or a person"), "{}", said());
    assert_eq!(env.inbox("survey", "team-lead")[0]["from"], "ann");
    let other = format!("env -i {teamctl} mcp --member bob@survey 2>{out}/other </dev/null; exec sleep 3600");
    env.teamctl(["spawn", "cat", "--", "sh", "-c", &other]).expect_success();
    env.wait_until("it is refused", || env.read("out/other").contains("cannot speak for bob").then_some(()));
    env.teamctl_with(&["mcp", "--team", "other"], &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")])
        .expect_failure(77);
    env.shut_down();
}

#[test]
fn spawned_teammate_can_have_a_worktree() {
    let mut env = TestEnv::new();
    let name = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let who = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    env.variables = who.map(|key| name(key, "t")).to_vec();
    env.variables.push(name("GIT_CONFIG_GLOBAL", "/dev/null"));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let repository = env.path("repo");
    let repository = repository.display();
    let script =
        format!("git init -q -b main {repository} && git -C {repository} commit -q --allow-empty -m first");
    assert!(env.command("sh").args(["-c", &script]).status().unwrap().success());
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    let spawn = |name: &str| json!({"name": name, "prompt": "", "profile": "worker", "cwd": repository.to_string(), "worktree": true});
    let mut ann = spawn("ann");
    ann["branch"] = json!("side");
    lead.call("SpawnTeammate", &ann).unwrap();
    lead.call("SpawnTeammate", &spawn("bob")).unwrap();
    let status = env.json(["status"]);
    let branches: Vec<&Value> =
        status["teams"][0]["worktrees"].as_array().unwrap().iter().map(|one| &one["branch"]).collect();
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
    let letter =
        json!([{"from": "ann", "text": plan, "timestamp": "2099-01-01T00:00:00.000Z", "read": false}]);
    let inbox = env.root().join("teams/survey/inboxes/team-lead.json");
    std::fs::File::create(inbox).unwrap().write_all(letter.to_string().as_bytes()).unwrap();
    let mut lead = RawMcpClient::start(&env, &["--team", "survey"], &[]);
    let listed = lead.call("Requests", &json!({})).unwrap();
    assert_eq!(listed["requests"][0]["id"], "plan_approval-1@ann@survey");
    let yes = json!({"id": "plan_approval-1@ann@survey"});
    let refused = lead.call("Approve", &yes).unwrap_err();
    assert!(refused.contains("leaves that to a person"), "{refused}");
    assert!(lead.call("Deny", &json!({"id": "plan_approval-1@ann@survey", "reason": "x"})).is_err());
    env.teamctl(["approve", "plan_approval-1@ann@survey"]).expect_success();
    let refused = lead.call("Approve", &yes).unwrap_err();
    assert!(refused.contains("answered"), "{refused}");
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
    assert!(lead.call("TaskList", &json!({})).is_ok(), "other calls go on meanwhile");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn missing_teamctl_is_reported() {
    let env = TestEnv::new();
    let alone = env.path("out/teamctl");
    let copied = Command::new("cp").arg(harness::programs().join("teamctl")).arg(&alone).status();
    assert!(copied.unwrap().success());
    let mut command = env.command(&alone);
    command.arg("mcp");
    let refused = run_command(command).expect_failure(72);
    assert!(refused.contains("teamd-mcp") && refused.contains("make install"), "{refused}");
    env.shut_down();
}
