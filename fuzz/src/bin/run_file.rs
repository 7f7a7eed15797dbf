//! A team in a file, as `teamctl run` reads it.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| runner::fuzz_run_file(text));
