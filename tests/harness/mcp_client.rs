//! A client of `teamctl mcp`, as bare as can be: lines out, lines in.

use crate::TestEnv;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Result, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

/// See the head of this file.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl McpClient {
    /// A server of its own, which has said what it is.
    pub fn connect(env: &TestEnv, arguments: &[&str]) -> McpClient {
        McpClient::connect_with_env(env, arguments, &[])
    }

    /// The same with further variables.
    pub fn connect_with_env(env: &TestEnv, arguments: &[&str], variables: &[(&str, &str)]) -> McpClient {
        let mut command = env.command(crate::programs().join("teamctl"));
        command
            .arg("mcp")
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("teamctl starts");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut mcp = McpClient { child, input, output, calls: 0 };
        let us = json!({"name": "bare", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": us});
        mcp.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))
            .expect("it reads");
        mcp.receive().expect("it answers");
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).expect("it reads");
        mcp
    }

    /// The result of a tool, or the text of its refusal.
    ///
    /// # Panics
    /// Where the server is gone.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> std::result::Result<Value, String> {
        self.send_call(tool, arguments).expect("the server reads");
        let result = self.receive().expect("the server answers")["result"].take();
        match result["isError"].as_bool() {
            Some(true) => Err(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
            _ => Ok(result["structuredContent"].clone()),
        }
    }

    /// The names of all tools.
    ///
    /// # Panics
    /// Where the server is gone.
    pub fn tools(&mut self) -> Vec<String> {
        self.calls += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/list"}))
            .expect("the server reads");
        let result = self.receive().expect("the server answers")["result"].take();
        let names = result["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str());
        names.map(|name| name.expect("a tool has a name").to_owned()).collect()
    }

    fn send_call(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        self.calls += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}))
    }

    /// Asks, and kill -9 so long after, whether it has answered or not. Of no use any more.
    ///
    /// # Panics
    /// Where the server is gone.
    pub fn call_and_kill(&mut self, tool: &str, arguments: &Value, span: Duration) {
        self.send_call(tool, arguments).expect("the server reads");
        crate::sleep(span);
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    /// The program that it serves goes away; the server's exit code.
    pub fn close(self) -> i32 {
        let McpClient { mut child, input, .. } = self;
        drop(input);
        child.wait().expect("it is ours").code().unwrap_or(-1)
    }

    fn send(&mut self, line: &Value) -> Result<()> {
        writeln!(self.input, "{line}")
    }

    fn receive(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}
