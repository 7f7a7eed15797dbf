//! An interactive program without hooks: an editor of prompts that knows bracketed pastes, shows `> ` while it waits, and
//! writes down each text that is handed in, and each key that a dialog got.
//!
//! A text with `dialog` in it opens one, which `y` closes; one with `hold:PATH` waits until somebody writes into that
//! FIFO; `hand-in:FILE` hands in the plan in that file.

use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;

/// The marks around what is pasted.
const PASTE: &str = "\x1b[200~";
const PASTED: &str = "\x1b[201~";

pub(crate) fn run(file: &str, rest: &[&str]) {
    let (options, first) = crate::options(rest);
    crate::hook_program::set_raw_mode();
    let mut program = PromptEditor { input: String::new(), options };
    print_text("\x1b[?2004h");
    if let Some(text) = first {
        program.run_turn(Path::new(file), &text);
    }
    loop {
        print_text("> ");
        let text = program.read_text();
        program.run_turn(Path::new(file), &text);
    }
}

struct PromptEditor {
    /// What was read and not taken yet.
    input: String,
    options: Vec<String>,
}

impl PromptEditor {
    /// One text, as it is handed in by the Enter key: a newline in a paste is part of it.
    fn read_text(&mut self) -> String {
        let mut text = String::new();
        loop {
            self.wait_for_input();
            if self.input.starts_with(PASTE) {
                let pasted = self.read_until(PASTED);
                let pasted = pasted.trim_start_matches(PASTE).to_owned();
                print_text(&pasted.replace('\n', "\r\n"));
                text.push_str(&pasted);
                continue;
            }
            match self.read_key() {
                '\r' => {
                    print_text("\r\n");
                    return text;
                }
                key => {
                    print_text(&key.to_string());
                    text.push(key);
                }
            }
        }
    }

    fn run_turn(&mut self, file: &Path, text: &str) {
        append_line(file, &json!({ "text": text, "options": self.options }));
        if let Some(plan) = text.split("hand-in:").nth(1).and_then(|rest| rest.split_whitespace().next()) {
            let handed_in = std::process::Command::new("teamctl").args(["-q", "plan", plan]).status();
            assert!(handed_in.expect("teamctl is there").success());
        }
        print_text("working\r\n");
        if let Some(fifo) = text.split("hold:").nth(1).and_then(|rest| rest.split_whitespace().next()) {
            drop(std::fs::read(fifo).expect("the test has made it"));
        }
        if text.contains("dialog") {
            print_text("Do you trust it? \r\n> ");
            loop {
                let key = self.read_key();
                append_line(file, &json!({"key": key.to_string()}));
                if key == 'y' {
                    break;
                }
            }
            print_text("\x1b[2J\x1b[H");
        }
    }

    fn read_key(&mut self) -> char {
        self.wait_for_input();
        if self.input.starts_with(PASTE) {
            // A dialog takes a paste for keys.
            self.input.drain(..PASTE.len());
            return '\x1b';
        }
        self.input.remove(0)
    }

    /// Until it is known whether a key comes or a paste.
    fn wait_for_input(&mut self) {
        while PASTE.starts_with(&self.input) && self.input != PASTE {
            self.read_more();
        }
    }

    fn read_until(&mut self, mark: &str) -> String {
        while !self.input.contains(mark) {
            self.read_more();
        }
        let end = self.input.find(mark).unwrap_or_default();
        let taken: String = self.input.drain(..end + mark.len()).collect();
        taken[..end].to_owned()
    }

    fn read_more(&mut self) {
        let mut bytes = [0; 4096];
        match std::io::stdin().read(&mut bytes) {
            Ok(read) if read > 0 => self.input.push_str(&String::from_utf8_lossy(&bytes[..read])),
            _ => std::process::exit(0),
        }
    }
}

fn print_text(text: &str) {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

fn append_line(file: &Path, line: &serde_json::Value) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.as_mut().expect("the file can be made"), "{line}").ok();
}
