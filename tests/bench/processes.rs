//! What a call of the command line takes as a process, beside the least that a process takes.

use crate::{median, row, team, timed};
use harness::House;
use std::process::{Command, Stdio};

const ROUNDS: usize = 200;

/// In turn. What `send` does at the files is measured by itself: the server of MCP does the same in a process that goes on.
pub(crate) fn send_beside_a_hello() {
    let house = team();
    let (mut nothing, mut hello, mut send) = (Vec::new(), Vec::new(), Vec::new());
    let run = |times: &mut Vec<_>, mut command: Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        times.push(timed(|| assert!(command.status().unwrap().success())));
    };
    for n in 0..ROUNDS {
        run(&mut nothing, house.command("true"));
        run(&mut hello, of(&house, "hello", &["you", "--twice"]));
        run(&mut send, of(&house, "teamctl", &["send", "team-lead", &format!("message {n}")]));
    }
    let (nothing, hello, send) = (median(nothing), median(hello), median(send));
    row(
        "whole process, median of 200: `true`; a Rust hello with clap; `teamctl send`",
        &format!(
            "{nothing:.2?}; {hello:.2?}; {send:.2?}; {:.2} × the hello",
            send.as_secs_f64() / hello.as_secs_f64()
        ),
        "1.5 × the hello and what it does at the files",
    );
    house.end();
}

fn of(house: &House, program: &str, words: &[&str]) -> Command {
    let mut command = house.command(harness::programs().join(program));
    command.args(words);
    command
}
