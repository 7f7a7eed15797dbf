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
        say_aside("acp-agent: cannot find my head");
        std::process::exit(3);
    }
    if is("chatty") {
        line("Loading model… \u{1b}[31mred\u{1b}[0m");
        line("{\"not\": \"a message\"}");
    }
    let mut agent = Agent { words: words.clone(), ..Agent::default() };
    for text in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&text).expect("our client speaks JSON");
        record(&text);
        if !is("mute") {
            agent.hear(&message);
        }
    }
    record("end of input");
}

/// What it knows.
#[derive(Default)]
struct Agent {
    words: Vec<String>,
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

impl Agent {
    fn hear(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => self.initialize(id),
            Some("session/new") => self.open(id, "s-1"),
            Some("session/load") => self.load(id, params),
            Some("session/set_mode") if self.words.iter().any(|word| word == "free") => {
                fail(id, -32602, "not now");
            }
            Some("session/set_mode") => {
                self.changing = Some((id.clone(), params["modeId"].as_str().unwrap_or_default().to_owned()));
                if self.words.iter().any(|word| word == "slow") {
                    return self.file("fs/read_text_file", json!({"path": "."}));
                }
                self.change();
            }
            Some("session/prompt") => self.prompted(id, params),
            Some("session/cancel") if self.words.iter().any(|word| word == "stubborn") => {}
            Some("session/cancel") => self.end("cancelled"),
            Some(other) => panic!("{other}: a client of ours does not say that"),
            None => self.answered(message),
        }
    }

    fn change(&mut self) -> bool {
        let Some((id, mode)) = self.changing.take() else { return false };
        self.mode = mode;
        answer(&id, json!({}));
        true
    }

    fn initialize(&self, id: &Value) {
        let version = if self.words.iter().any(|word| word == "old") { 0 } else { 1 };
        let methods = json!([{"id": "key", "name": "an API key"}]);
        let capabilities = json!({"loadSession": true});
        answer(
            id,
            json!({"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": methods}),
        );
    }

    fn open(&mut self, id: &Value, session: &str) {
        if self.words.iter().any(|word| word == "locked") {
            return fail(id, -32000, "Authentication required");
        }
        if self.words.iter().any(|word| word == "held") {
            drop(std::fs::read("out/gate").expect("the test has made it"));
        }
        self.mode = "ask".to_owned();
        let modes = json!({"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask"}, {"id": "read", "name": "Read only"}, {"id": "code", "name": "Code"}]});
        answer(id, json!({"sessionId": session, "modes": modes}));
    }

    fn load(&mut self, id: &Value, params: &Value) {
        match params["sessionId"].as_str() {
            Some("s-1") => {
                chunk("agent_message_chunk", "from an earlier life");
                self.open(id, "s-1");
            }
            _ => fail(id, -32002, "no such session"),
        }
    }

    /// The last line of the prompt's last text that begins with `do `, in words.
    fn prompted(&mut self, id: &Value, params: &Value) {
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
                chunk("agent_thought_chunk", "hm");
                chunk(
                    "agent_message_chunk",
                    &format!("turn {} in mode {}: \u{1b}]0;evil\u{7}", self.turns, self.mode),
                );
                chunk("agent_message_chunk", "done");
                self.end("end_turn");
            }
            ["wait"] => chunk("agent_message_chunk", "waiting"),
            ["ask", title @ ..] => self.ask("execute", &title.join(" ")),
            ["leave", plan @ ..] => self.ask("switch_mode", &plan.join(" ")),
            ["drift", mode] => {
                self.mode = (*mode).to_owned();
                update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
                chunk("agent_message_chunk", "drifted");
                self.end("end_turn");
            }
            ["stop", reason] => self.end(reason),
            ["fail"] => fail(&self.prompt.take().expect("a turn"), -32603, "the model is on fire"),
            ["crash"] => {
                say_aside("acp-agent: segmentation fault, nearly");
                std::process::exit(9);
            }
            ["chatter"] => {
                line("warning: \u{1b}[2Jnot a message");
                line("[1, 2]");
                self.end("end_turn");
            }
            ["read", path] => self.file("fs/read_text_file", json!({"path": path})),
            ["write", path] => self.file("fs/write_text_file", json!({"path": path, "content": "written\n"})),
            ["tool"] => {
                update(
                    json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "look", "kind": "read", "status": "in_progress"}),
                );
                update(
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
                );
                update(
                    json!({"sessionUpdate": "plan", "entries": [{"content": "step one", "priority": "high", "status": "pending"}]}),
                );
                self.end("end_turn");
            }
            other => panic!("{other:?}: the script does not know that"),
        }
    }

    fn ask(&mut self, kind: &str, title: &str) {
        self.asked += 1;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "ever", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        let what = if kind == "execute" { "command" } else { "plan" };
        let call = json!({"toolCallId": "t9", "title": title, "kind": kind, "rawInput": {what: title}});
        let params = json!({"sessionId": "s-1", "toolCall": call, "options": options});
        say(
            &json!({"jsonrpc": "2.0", "id": format!("ask-{}", self.asked), "method": "session/request_permission", "params": params}),
        );
    }

    fn file(&mut self, method: &str, mut params: Value) {
        params["sessionId"] = json!("s-1");
        self.files.push(method.to_owned());
        say(
            &json!({"jsonrpc": "2.0", "id": format!("file-{}", self.files.len()), "method": method, "params": params}),
        );
    }

    fn answered(&mut self, message: &Value) {
        let about =
            if message["id"].as_str().is_some_and(|id| id.starts_with("ask")) { "answer" } else { "file" };
        let what = if message["error"].is_object() { &message["error"] } else { &message["result"] };
        if what["outcome"]["outcome"] == "cancelled" || self.change() {
            return;
        }
        chunk("agent_message_chunk", &format!("{about}: {what}"));
        self.end("end_turn");
    }

    fn end(&mut self, reason: &str) {
        if let Some(id) = self.prompt.take() {
            answer(&id, json!({"stopReason": reason}));
        }
    }
}

fn chunk(kind: &str, text: &str) {
    update(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
}

fn update(update: Value) {
    say(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update": update}}),
    );
}

fn answer(id: &Value, result: Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn fail(id: &Value, code: i64, message: &str) {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn say(message: &Value) {
    line(&message.to_string());
}

fn line(text: &str) {
    writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()).expect("somebody listens");
}

fn say_aside(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

fn record(text: &str) {
    let Ok(path) = std::env::var("ACP_HEARD") else { return };
    let mut file = std::fs::File::options().create(true).append(true).open(path).expect("it can be written");
    writeln!(file, "{text}").expect("it can be written");
}
