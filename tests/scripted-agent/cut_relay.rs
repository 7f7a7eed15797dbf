//! A line to another host that breaks after a number of bytes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

/// Runs a program, and carries its standard input and output. Exits with code 1, without any warning
/// to either side, after `to_program` bytes of input or `from_program` bytes of output. `-`: the line
/// does not break in this direction.
pub(crate) fn run(to_program: &str, from_program: &str, words: &[&str]) -> ! {
    let (program, arguments) = words.split_first().expect("there is a program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (to_program, from_program) = (parse_limit(to_program), parse_limit(from_program));
    thread::spawn(move || carry(std::io::stdin(), input, to_program));
    carry(output, std::io::stdout(), from_program);
    let status = child.wait().expect("the program ends");
    std::process::exit(status.code().unwrap_or(1));
}

fn parse_limit(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

/// Passes each part on at once, and ends the process after `limit` bytes.
fn carry(mut from: impl Read, mut to: impl Write, limit: u64) {
    let (mut left, mut buffer) = (limit, [0; 4096]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
            return;
        }
        left -= count as u64;
        if left == 0 {
            std::process::exit(1);
        }
    }
}
