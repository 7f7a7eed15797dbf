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
    crate::hooked::raw();
    let mut program = Program { input: String::new(), options };
    show("\x1b[?2004h");
    if let Some(text) = first {
        program.turn(Path::new(file), &text);
    }
    loop {
        show("> ");
        let text = program.line();
        program.turn(Path::new(file), &text);
    }
}

struct Program {
    /// What was read and not taken yet.
    input: String,
    options: Vec<String>,
}

impl Program {
    /// One text, as it is handed in by the Enter key: a newline in a paste is part of it.
    fn line(&mut self) -> String {
        let mut text = String::new();
        loop {
            self.wait();
            if self.input.starts_with(PASTE) {
                let pasted = self.until(PASTED);
                let pasted = pasted.trim_start_matches(PASTE).to_owned();
                show(&pasted.replace('\n', "\r\n"));
                text.push_str(&pasted);
                continue;
            }
            match self.key() {
                '\r' => {
                    show("\r\n");
                    return text;
                }
                key => {
                    show(&key.to_string());
                    text.push(key);
                }
            }
        }
    }

    fn turn(&mut self, file: &Path, text: &str) {
        note(file, &json!({ "text": text, "options": self.options }));
        if let Some(plan) = text.split("hand-in:").nth(1).and_then(|rest| rest.split_whitespace().next()) {
            let handed_in = std::process::Command::new("teamctl").args(["-q", "plan", plan]).status();
            assert!(handed_in.expect("teamctl is there").success());
        }
        show("working\r\n");
        if let Some(fifo) = text.split("hold:").nth(1).and_then(|rest| rest.split_whitespace().next()) {
            drop(std::fs::read(fifo).expect("the test has made it"));
        }
        if text.contains("dialog") {
            show("Do you trust it? \r\n> ");
            loop {
                let key = self.key();
                note(file, &json!({"key": key.to_string()}));
                if key == 'y' {
                    break;
                }
            }
            show("\x1b[2J\x1b[H");
        }
    }

    fn key(&mut self) -> char {
        self.wait();
        if self.input.starts_with(PASTE) {
            // A dialog takes a paste for keys.
            self.input.drain(..PASTE.len());
            return '\x1b';
        }
        self.input.remove(0)
    }

    /// Until it is known whether a key comes or a paste.
    fn wait(&mut self) {
        while PASTE.starts_with(&self.input) && self.input != PASTE {
            self.more();
        }
    }

    fn until(&mut self, mark: &str) -> String {
        while !self.input.contains(mark) {
            self.more();
        }
        let end = self.input.find(mark).unwrap_or_default();
        let taken: String = self.input.drain(..end + mark.len()).collect();
        taken[..end].to_owned()
    }

    fn more(&mut self) {
        let mut bytes = [0; 4096];
        match std::io::stdin().read(&mut bytes) {
            Ok(read) if read > 0 => self.input.push_str(&String::from_utf8_lossy(&bytes[..read])),
            _ => std::process::exit(0),
        }
    }
}

fn show(text: &str) {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

fn note(file: &Path, line: &serde_json::Value) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.as_mut().expect("the file can be made"), "{line}").ok();
}
