//! The MCP server: a call of a tool, from the line that asks to the line that answers.

use crate::{median, row, team, timed};
use harness::Mcp;
use serde_json::json;

pub(crate) fn round_trips() {
    let house = team();
    let mut server = None;
    let start = timed(|| server = Some(Mcp::of(&house, &["--team", "bench"])));
    let mut server = server.unwrap();
    let mut took = Vec::new();
    for n in 1..=500 {
        let message = json!({"recipient": "team-lead", "content": format!("message {n}"), "summary": "s"});
        took.push(timed(|| assert_eq!(server.call("SendMessage", &message).unwrap()["success"], true)));
    }
    server.end();
    took.sort();
    let slowest = took[took.len() * 99 / 100];
    row(
        "MCP: start to the first answer; SendMessage, from the line that asks to the line that answers, median of 500; 99 of 100",
        &format!("{start:.1?}; {:.2?}; {slowest:.1?}", median(took)),
        "2 ms",
    );
    house.end();
}
