//! Fuzzes the lines of the control socket: the assembly of received lines, the parsers of the
//! messages, and the round trip of a sent text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::control_socket::framing::{LineAssembler, MAX_LINE_BYTES, encode};
use protocol::control_socket::{Call, FromShim, Response, ToShim};

fuzz_target!(|text: &str| {
    let mut assembler = LineAssembler::default();
    for line in text.lines() {
        match assembler.push_line(line) {
            Ok(Some(object)) => parse_all_message_types(&object),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    let mut receiver = LineAssembler::default();
    let lines = encode(&text).expect("a text can be encoded");
    let mut received = None;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(line.len() < MAX_LINE_BYTES);
        received = receiver
            .push_line(std::str::from_utf8(line).expect("an encoded line is UTF-8"))
            .expect("an encoded line is accepted");
    }
    let received = received.expect("the last line completes the object");
    assert_eq!(serde_json::from_str::<String>(&received).expect("the object is a string"), text);
});

fn parse_all_message_types(object: &str) {
    serde_json::from_str::<Call>(object).ok();
    serde_json::from_str::<Response>(object).ok();
    serde_json::from_str::<FromShim>(object).ok();
    serde_json::from_str::<ToShim>(object).ok();
}
