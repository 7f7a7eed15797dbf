//! The MCP server: a call of a tool, from the line that asks to the line that answers.

use crate::{median, row, team};
use harness::House;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A program that speaks to the server.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn of(house: &House) -> Client {
        let mut command = house.command(harness::programs().join("teamctl"));
        command.args(["mcp", "--team", "bench"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Client { child, input, output }
    }

    /// What came back, and how long that took.
    fn ask(&mut self, line: &str) -> (String, Duration) {
        let began = Instant::now();
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        (answer, began.elapsed())
    }

    fn end(mut self) {
        drop(self.input);
        self.child.wait().unwrap();
    }
}

pub(crate) fn round_trips() {
    let house = team();
    let mut client = Client::of(&house);
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let (_, start) = client.ask(hello);
    writeln!(client.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    let mut took = Vec::new();
    for n in 1..=500 {
        let arguments = format!(r#"{{"recipient":"team-lead","content":"message {n}","summary":"s"}}"#);
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"SendMessage","arguments":{arguments}}}}}"#
        );
        let (answer, time) = client.ask(&call);
        assert!(answer.contains("\"success\":true"), "{answer}");
        took.push(time);
    }
    client.end();
    took.sort();
    let slowest = took[took.len() * 99 / 100];
    row(
        "MCP: start to the first answer; SendMessage, from the line that asks to the line that answers, median of 500; 99 of 100",
        &format!("{start:.1?}; {:.2?}; {slowest:.1?}", median(took)),
        "2 ms",
    );
    house.end();
}
