//! What tmux says over a control-mode client, and the rows of its lists.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tmux::fuzz_reply(bytes));
