//! A scripted agent that speaks the Agent Client Protocol. It reads and writes plain lines of JSON
//! and does not use the library of teamd's driver. The text of each prompt says what the agent
//! does. Its arguments change its behavior:
//!
//! - `mute` sends no replies.
//! - `old` supports only another version of the protocol.
//! - `locked` requires a login.
//! - `chatty` prints lines at its start that are not messages.
//! - `gone` exits at once.
//! - `slow` requests a file before it changes its mode.
//! - `free` refuses each change of its mode.
//! - `stubborn` ignores a cancellation.
//! - `held` waits for the gate `out/gate` before it opens a session.
//!
//! With the variable `TURN_PROGRAM`, this program does each turn instead, with the prompt as its
//! standard input. The turn fails if the program does.
//!
//! The agent appends each message that it receives to the file `$ACP_HEARD`, if the variable is
//! set.

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};

fn main() {
    let mut agent =
        ScriptedAcpAgent { options: std::env::args().skip(1).collect(), ..ScriptedAcpAgent::default() };
    if agent.has_option("gone") {
        print_to_stderr("scripted-acp-agent: cannot find my head");
        std::process::exit(3);
    }
    if agent.has_option("chatty") {
        write_line("Loading model… \u{1b}[31mred\u{1b}[0m");
        write_line("{\"not\": \"a message\"}");
    }
    for text in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&text).expect("the client sends JSON");
        record(&text);
        if !agent.has_option("mute") {
            agent.handle_message(&message);
        }
    }
    record("end of input");
}

/// The state of the agent.
#[derive(Default)]
struct ScriptedAcpAgent {
    options: Vec<String>,
    turns: u64,
    /// The id of the request that started the current turn. The end of the turn is its reply.
    prompt_id: Option<Value>,
    /// How many permission requests the agent has sent.
    permission_requests: u64,
    mode: String,
    /// The id of a request to change the mode that has no reply yet, and the new mode.
    mode_change: Option<(Value, String)>,
    /// How many file requests the agent has sent.
    file_requests: u64,
}

impl ScriptedAcpAgent {
    fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }

    fn handle_message(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => self.initialize(id),
            Some("session/new") => self.open_session(id, "s-1"),
            Some("session/load") => self.load_session(id, params),
            Some("session/set_mode") if self.has_option("free") => {
                send_error(id, -32602, "not now");
            }
            Some("session/set_mode") => {
                self.mode_change =
                    Some((id.clone(), params["modeId"].as_str().unwrap_or_default().to_owned()));
                if self.has_option("slow") {
                    return self.access_file("fs/read_text_file", json!({"path": "."}));
                }
                self.change_mode();
            }
            Some("session/prompt") => self.handle_prompt(id, params),
            Some("session/cancel") if self.has_option("stubborn") => {}
            Some("session/cancel") => self.end_turn("cancelled"),
            Some(other) => panic!("{other}: the agent does not know this method"),
            None => self.handle_reply(message),
        }
    }

    /// Carries out the pending change of the mode. Returns false if there is none.
    fn change_mode(&mut self) -> bool {
        let Some((id, mode)) = self.mode_change.take() else { return false };
        self.mode = mode;
        send_result(&id, json!({}));
        true
    }

    fn initialize(&self, id: &Value) {
        let version = if self.has_option("old") { 0 } else { 1 };
        let methods = json!([{"id": "key", "name": "an API key"}]);
        let capabilities = json!({"loadSession": true});
        send_result(
            id,
            json!({"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": methods}),
        );
    }

    fn open_session(&mut self, id: &Value, session: &str) {
        if self.has_option("locked") {
            return send_error(id, -32000, "Authentication required");
        }
        if self.has_option("held") {
            drop(std::fs::read("out/gate").expect("the test has created the gate"));
        }
        self.mode = "ask".to_owned();
        let modes = json!({"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask"}, {"id": "read", "name": "Read only"}, {"id": "code", "name": "Code"}]});
        send_result(id, json!({"sessionId": session, "modes": modes}));
    }

    fn load_session(&mut self, id: &Value, params: &Value) {
        match params["sessionId"].as_str() {
            Some("s-1") => {
                send_chunk("agent_message_chunk", "from an earlier life");
                self.open_session(id, "s-1");
            }
            _ => send_error(id, -32002, "no such session"),
        }
    }

    /// Carries out the last line of the prompt that begins with `do `. Without such a line the
    /// agent sends two chunks of text and ends the turn.
    fn handle_prompt(&mut self, id: &Value, params: &Value) {
        self.turns += 1;
        self.prompt_id = Some(id.clone());
        let texts: Vec<&str> = params["prompt"]
            .as_array()
            .expect("the prompt is an array")
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let text = texts.join("\n");
        if let Some(program) = std::env::var_os("TURN_PROGRAM") {
            return self.run_turn_program(&program, &text);
        }
        let command = text.lines().rev().find_map(|line| line.strip_prefix("do ")).unwrap_or("talk");
        let args: Vec<&str> = command.split(' ').collect();
        match args.as_slice() {
            ["talk"] => {
                send_chunk("agent_thought_chunk", "hm");
                send_chunk(
                    "agent_message_chunk",
                    &format!("turn {} in mode {}: \u{1b}]0;evil\u{7}", self.turns, self.mode),
                );
                send_chunk("agent_message_chunk", "done");
                self.end_turn("end_turn");
            }
            ["wait"] => send_chunk("agent_message_chunk", "waiting"),
            ["ask", title @ ..] => self.request_permission("execute", &title.join(" ")),
            ["leave", plan @ ..] => self.request_permission("switch_mode", &plan.join(" ")),
            ["drift", mode] => {
                self.mode = (*mode).to_owned();
                send_update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
                send_chunk("agent_message_chunk", "drifted");
                self.end_turn("end_turn");
            }
            ["stop", reason] => self.end_turn(reason),
            ["fail"] => {
                send_error(&self.prompt_id.take().expect("a turn runs"), -32603, "the model is on fire");
            }
            ["crash"] => {
                print_to_stderr("scripted-acp-agent: segmentation fault, nearly");
                std::process::exit(9);
            }
            ["chatter"] => {
                write_line("warning: \u{1b}[2Jnot a message");
                write_line("[1, 2]");
                self.end_turn("end_turn");
            }
            ["read", path] => self.access_file("fs/read_text_file", json!({"path": path})),
            ["write", path] => {
                self.access_file("fs/write_text_file", json!({"path": path, "content": "written\n"}));
            }
            ["tool"] => {
                send_update(
                    json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "look", "kind": "read", "status": "in_progress"}),
                );
                send_update(
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
                );
                send_update(
                    json!({"sessionUpdate": "plan", "entries": [{"content": "step one", "priority": "high", "status": "pending"}]}),
                );
                self.end_turn("end_turn");
            }
            other => panic!("{other:?}: the agent does not know this command"),
        }
    }

    fn run_turn_program(&mut self, program: &std::ffi::OsStr, text: &str) {
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        write!(child.stdin.take().expect("the stream is piped"), "{text}").ok();
        match child.wait().expect("it is a child").success() {
            true => self.end_turn("end_turn"),
            false => send_error(&self.prompt_id.take().expect("a turn runs"), -32603, "the program failed"),
        }
    }

    fn request_permission(&mut self, kind: &str, title: &str) {
        self.permission_requests += 1;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "ever", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        let key = if kind == "execute" { "command" } else { "plan" };
        let call = json!({"toolCallId": "t9", "title": title, "kind": kind, "rawInput": {key: title}});
        let params = json!({"sessionId": "s-1", "toolCall": call, "options": options});
        send_message(
            &json!({"jsonrpc": "2.0", "id": format!("ask-{}", self.permission_requests), "method": "session/request_permission", "params": params}),
        );
    }

    fn access_file(&mut self, method: &str, mut params: Value) {
        params["sessionId"] = json!("s-1");
        self.file_requests += 1;
        send_message(
            &json!({"jsonrpc": "2.0", "id": format!("file-{}", self.file_requests), "method": method, "params": params}),
        );
    }

    /// Handles the reply to a permission or file request: changes the mode if a change is pending.
    /// Otherwise sends the reply as text and ends the turn, unless the request was cancelled.
    fn handle_reply(&mut self, message: &Value) {
        let label =
            if message["id"].as_str().is_some_and(|id| id.starts_with("ask")) { "answer" } else { "file" };
        let reply = if message["error"].is_object() { &message["error"] } else { &message["result"] };
        if reply["outcome"]["outcome"] == "cancelled" || self.change_mode() {
            return;
        }
        send_chunk("agent_message_chunk", &format!("{label}: {reply}"));
        self.end_turn("end_turn");
    }

    fn end_turn(&mut self, reason: &str) {
        if let Some(id) = self.prompt_id.take() {
            send_result(&id, json!({"stopReason": reason}));
        }
    }
}

fn send_chunk(kind: &str, text: &str) {
    send_update(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
}

fn send_update(update: Value) {
    send_message(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update": update}}),
    );
}

fn send_result(id: &Value, result: Value) {
    send_message(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn send_error(id: &Value, code: i64, message: &str) {
    send_message(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn send_message(message: &Value) {
    write_line(&message.to_string());
}

fn write_line(text: &str) {
    writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()).expect("the client reads");
}

fn print_to_stderr(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

/// Appends a line to the file `$ACP_HEARD`.
fn record(text: &str) {
    let Ok(path) = std::env::var("ACP_HEARD") else { return };
    let mut file =
        std::fs::File::options().create(true).append(true).open(path).expect("the file can be opened");
    writeln!(file, "{text}").expect("the file can be written");
}
