//! Fuzzes the parsers of tmux output: blocks of a control-mode client and rows of its pane list.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tmux::fuzz_reply(bytes));
