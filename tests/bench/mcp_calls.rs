//! Measures the MCP server: its start, and a tool call from the request line to the reply line.

use crate::{env_with_team, median, print_row, time_call};
use harness::McpClient;
use serde_json::json;

pub(crate) fn measure_calls() {
    let env = env_with_team();
    let mut server = None;
    let start = time_call(|| server = Some(McpClient::connect(&env, &["--team", "bench"])));
    let mut server = server.unwrap();
    let mut times = Vec::new();
    for n in 1..=500 {
        let message = json!({"recipient": "team-lead", "content": format!("message {n}"), "summary": "s"});
        times.push(time_call(|| assert_eq!(server.call("SendMessage", &message).unwrap()["success"], true)));
    }
    server.close();
    times.sort();
    let p99 = times[times.len() * 99 / 100];
    print_row(
        "MCP: start to the first reply; SendMessage, from the request line to the reply line, median of 500; p99",
        &format!("{start:.1?}; {:.2?}; {p99:.1?}", median(times)),
        "2 ms",
    );
    env.shut_down();
}
