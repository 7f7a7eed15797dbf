//! The control socket: lines put together, and what they can say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::control::framing::{LineAssembler, MAX_LINE_BYTES, encode};
use protocol::control::{Call, FromShim, Response, ToShim};

fuzz_target!(|text: &str| {
    let mut assembler = LineAssembler::default();
    for line in text.lines() {
        match assembler.push_line(line) {
            Ok(Some(object)) => heard(&object),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    let mut back = LineAssembler::default();
    let lines = encode(&text).expect("a text can be sent");
    let mut whole = None;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(line.len() < MAX_LINE_BYTES);
        whole = back
            .push_line(std::str::from_utf8(line).expect("lines are text"))
            .expect("our own lines are taken");
    }
    let whole = whole.expect("the last line makes it whole");
    assert_eq!(serde_json::from_str::<String>(&whole).expect("it is the text"), text);
});

fn heard(object: &str) {
    serde_json::from_str::<Call>(object).ok();
    serde_json::from_str::<Response>(object).ok();
    serde_json::from_str::<FromShim>(object).ok();
    serde_json::from_str::<ToShim>(object).ok();
}
