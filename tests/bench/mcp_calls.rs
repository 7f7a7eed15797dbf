//! The MCP server: a call of a tool, from the line that asks to the line that answers.

use crate::{env_with_team, median, print_row, time_call};
use harness::McpClient;
use serde_json::json;

pub(crate) fn measure_calls() {
    let env = env_with_team();
    let mut server = None;
    let start = time_call(|| server = Some(McpClient::connect(&env, &["--team", "bench"])));
    let mut server = server.unwrap();
    let mut took = Vec::new();
    for n in 1..=500 {
        let message = json!({"recipient": "team-lead", "content": format!("message {n}"), "summary": "s"});
        took.push(time_call(|| assert_eq!(server.call("SendMessage", &message).unwrap()["success"], true)));
    }
    server.close();
    took.sort();
    let slowest = took[took.len() * 99 / 100];
    print_row(
        "MCP: start to the first answer; SendMessage, from the line that asks to the line that answers, median of 500; 99 of 100",
        &format!("{start:.1?}; {:.2?}; {slowest:.1?}", median(took)),
        "2 ms",
    );
    env.shut_down();
}
