//! A profile of the user's.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| profile::fuzz_profile(text));
