//! A minimal client of `teamctl mcp`. It writes and reads lines of JSON and uses no MCP library.

use crate::TestEnv;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Result, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client with its own server process.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl McpClient {
    /// Starts `teamctl mcp` with these arguments and initializes the connection.
    pub fn connect(env: &TestEnv, args: &[&str]) -> McpClient {
        McpClient::connect_with_env(env, args, &[])
    }

    /// As [`McpClient::connect`], with additional environment variables for the server.
    pub fn connect_with_env(env: &TestEnv, args: &[&str], variables: &[(&str, &str)]) -> McpClient {
        let mut command = env.command(crate::programs().join("teamctl"));
        command
            .arg("mcp")
            .args(args)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("teamctl starts");
        let input = child.stdin.take().expect("the stream is piped");
        let output = BufReader::new(child.stdout.take().expect("the stream is piped"));
        let mut mcp = McpClient { child, input, output, calls: 0 };
        let client_info = json!({"name": "bare", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info});
        mcp.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .expect("the server reads the request");
        mcp.receive().expect("the server replies");
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .expect("the server reads the notification");
        mcp
    }

    /// Calls a tool. Returns its structured result, or the text of its error.
    ///
    /// # Panics
    /// If the server has exited.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> std::result::Result<Value, String> {
        self.send_call(tool, arguments).expect("the server reads the call");
        let result = self.receive().expect("the server replies")["result"].take();
        match result["isError"].as_bool() {
            Some(true) => Err(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
            _ => Ok(result["structuredContent"].clone()),
        }
    }

    /// Lists the names of all tools.
    ///
    /// # Panics
    /// If the server has exited.
    pub fn tools(&mut self) -> Vec<String> {
        self.calls += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/list"}))
            .expect("the server reads the request");
        let result = self.receive().expect("the server replies")["result"].take();
        let names = result["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str());
        names.map(|name| name.expect("a tool has a name").to_owned()).collect()
    }

    fn send_call(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        self.calls += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}))
    }

    /// Calls a tool, and kills the server with SIGKILL once `wait` has returned, whether or not the
    /// server has replied.
    /// The client can't be used afterwards.
    ///
    /// # Panics
    /// If the server has exited before.
    pub fn call_and_kill(&mut self, tool: &str, arguments: &Value, wait: impl FnOnce()) {
        self.send_call(tool, arguments).expect("the server reads the call");
        wait();
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server has exited");
    }

    /// Closes the server's standard input, as an agent does when it exits. Returns the server's
    /// exit code, or -1 if a signal has ended the server.
    pub fn close(self) -> i32 {
        let McpClient { mut child, input, .. } = self;
        drop(input);
        child.wait().expect("the server has exited").code().unwrap_or(-1)
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
