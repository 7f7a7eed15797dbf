//! A scripted agent that speaks the Agent Client Protocol, written over plain lines of JSON: nothing of it is the
//! library that our driver uses. What it does is said by the text of each prompt, and how it begins by its arguments:
//! `mute` never answers, `old` speaks another version, `locked` wants a login, `chatty` prints what is no message,
//! `gone` ends at once, `slow` looks at its directory first when it is to change its mode, `free` changes it
//! to none.
//!
//! Each message that it gets goes as a line into the file $ACP_HEARD, if that is set.

use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is = |word: &str| words.iter().any(|own| own == word);
    if is("gone") {
        print_to_stderr("scripted-acp-agent: cannot find my head");
        std::process::exit(3);
    }
    if is("chatty") {
        write_line("Loading model… \u{1b}[31mred\u{1b}[0m");
        write_line("{\"not\": \"a message\"}");
    }
    let mut agent = ScriptedAcpAgent { options: words.clone(), ..ScriptedAcpAgent::default() };
    for text in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&text).expect("our client speaks JSON");
        record(&text);
        if !is("mute") {
            agent.handle_message(&message);
        }
    }
    record("end of input");
}

/// What it knows.
#[derive(Default)]
struct ScriptedAcpAgent {
    options: Vec<String>,
    turns: u64,
    /// The request that a turn is to answer.
    prompt: Option<Value>,
    /// What a question's answer means.
    asked: u64,
    mode: String,
    /// The request for another mode, and which.
    changing: Option<(Value, String)>,
    files: Vec<String>,
}

impl ScriptedAcpAgent {
    fn handle_message(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => self.initialize(id),
            Some("session/new") => self.open_session(id, "s-1"),
            Some("session/load") => self.load_session(id, params),
            Some("session/set_mode") if self.options.iter().any(|word| word == "free") => {
                send_error(id, -32602, "not now");
            }
            Some("session/set_mode") => {
                self.changing = Some((id.clone(), params["modeId"].as_str().unwrap_or_default().to_owned()));
                if self.options.iter().any(|word| word == "slow") {
                    return self.access_file("fs/read_text_file", json!({"path": "."}));
                }
                self.change_mode();
            }
            Some("session/prompt") => self.handle_prompt(id, params),
            Some("session/cancel") if self.options.iter().any(|word| word == "stubborn") => {}
            Some("session/cancel") => self.end_turn("cancelled"),
            Some(other) => panic!("{other}: a client of ours does not say that"),
            None => self.handle_reply(message),
        }
    }

    fn change_mode(&mut self) -> bool {
        let Some((id, mode)) = self.changing.take() else { return false };
        self.mode = mode;
        send_result(&id, json!({}));
        true
    }

    fn initialize(&self, id: &Value) {
        let version = if self.options.iter().any(|word| word == "old") { 0 } else { 1 };
        let methods = json!([{"id": "key", "name": "an API key"}]);
        let capabilities = json!({"loadSession": true});
        send_result(
            id,
            json!({"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": methods}),
        );
    }

    fn open_session(&mut self, id: &Value, session: &str) {
        if self.options.iter().any(|word| word == "locked") {
            return send_error(id, -32000, "Authentication required");
        }
        if self.options.iter().any(|word| word == "held") {
            drop(std::fs::read("out/gate").expect("the test has made it"));
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

    /// The last line of the prompt's last text that begins with `do `, in words.
    fn handle_prompt(&mut self, id: &Value, params: &Value) {
        self.turns += 1;
        self.prompt = Some(id.clone());
        let texts: Vec<&str> = params["prompt"]
            .as_array()
            .expect("texts")
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let all = texts.join("\n");
        let order = all.lines().rev().find_map(|line| line.strip_prefix("do ")).unwrap_or("talk");
        let words: Vec<&str> = order.split(' ').collect();
        match words.as_slice() {
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
            ["fail"] => send_error(&self.prompt.take().expect("a turn"), -32603, "the model is on fire"),
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
            other => panic!("{other:?}: the script does not know that"),
        }
    }

    fn request_permission(&mut self, kind: &str, title: &str) {
        self.asked += 1;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "ever", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        let what = if kind == "execute" { "command" } else { "plan" };
        let call = json!({"toolCallId": "t9", "title": title, "kind": kind, "rawInput": {what: title}});
        let params = json!({"sessionId": "s-1", "toolCall": call, "options": options});
        send_message(
            &json!({"jsonrpc": "2.0", "id": format!("ask-{}", self.asked), "method": "session/request_permission", "params": params}),
        );
    }

    fn access_file(&mut self, method: &str, mut params: Value) {
        params["sessionId"] = json!("s-1");
        self.files.push(method.to_owned());
        send_message(
            &json!({"jsonrpc": "2.0", "id": format!("file-{}", self.files.len()), "method": method, "params": params}),
        );
    }

    fn handle_reply(&mut self, message: &Value) {
        let about =
            if message["id"].as_str().is_some_and(|id| id.starts_with("ask")) { "answer" } else { "file" };
        let what = if message["error"].is_object() { &message["error"] } else { &message["result"] };
        if what["outcome"]["outcome"] == "cancelled" || self.change_mode() {
            return;
        }
        send_chunk("agent_message_chunk", &format!("{about}: {what}"));
        self.end_turn("end_turn");
    }

    fn end_turn(&mut self, reason: &str) {
        if let Some(id) = self.prompt.take() {
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
    writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()).expect("somebody listens");
}

fn print_to_stderr(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

fn record(text: &str) {
    let Ok(path) = std::env::var("ACP_HEARD") else { return };
    let mut file = std::fs::File::options().create(true).append(true).open(path).expect("it can be written");
    writeln!(file, "{text}").expect("it can be written");
}
