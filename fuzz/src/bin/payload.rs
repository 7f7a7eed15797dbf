//! Fuzzes the JSON payload of a message: a written payload is parsed to the same value. Also runs
//! the escaping of control characters and the parsers of shell commands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::inbox_message_payload::Payload;

fuzz_target!(|text: &str| {
    if let Some(payload) = Payload::parse(text) {
        assert_eq!(Payload::parse(&payload.to_text()).as_ref(), Some(&payload), "{}", payload.type_name());
    }
    protocol::escape_control_chars::visible(text);
    protocol::split_shell_command::parse_plain_command(text);
    protocol::split_shell_command::split_commands(text);
});
