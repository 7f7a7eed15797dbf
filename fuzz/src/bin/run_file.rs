//! Fuzzes the parser of run files, the TOML files that `teamctl run` takes.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| runner::fuzz_run_file(text));
