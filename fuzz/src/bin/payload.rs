//! What a message says in JSON: read, written, and read the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::payload::Payload;

fuzz_target!(|text: &str| {
    if let Some(payload) = Payload::parse(text) {
        assert_eq!(Payload::parse(&payload.to_text()).as_ref(), Some(&payload), "{}", payload.type_name());
    }
    protocol::escape_control_chars::visible(text);
    protocol::split_shell_command::parse_plain_command(text);
    protocol::split_shell_command::split_commands(text);
});
