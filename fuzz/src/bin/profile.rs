//! Fuzzes the parser of agent profiles.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| profile::fuzz_profile(text));
