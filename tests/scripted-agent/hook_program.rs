//! An interactive program with hooks, as coding agents are: it reads its terminal all the time, runs a hook at each
//! turn's end, and goes on with what that answers; else it waits for a line from its person.
//!
//! A turn writes itself down as a line of JSON. Words in its text make it do more: `hold:PATH` waits until somebody
//! writes into that FIFO, `give-up` listens to the hook of this turn's end no more, `notify` tells of a dialog, `mute`
//! says nothing at its turn's end, `nested` runs another program of the same person in a shell, whose hooks' answers
//! are written down. A text with `not-now` is not taken the first time, as by a program that has gone on by itself often
//! enough.

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

enum TerminalEvent {
    Line(String),
    Hook(String),
}

/// `rest`: what else it is given on its command line.
pub(crate) fn run(file: &str, rest: &[&str]) {
    let (options, first) = super::options(rest);
    let program = HookProgram {
        file: PathBuf::from(file),
        options,
        turn: 0,
        mute: false,
        continues: false,
        refused: false,
    };
    let (tell, happened) = channel();
    set_raw_mode();
    let lines = tell.clone();
    std::thread::spawn(move || read_lines(&lines));
    program.run_hook("session-start", "");
    program.run_loop(first, &tell, &happened);
}

struct HookProgram {
    file: PathBuf,
    options: Vec<String>,
    turn: u32,
    mute: bool,
    /// Its hook has asked for the turn that it is in.
    continues: bool,
    refused: bool,
}

impl HookProgram {
    fn run_loop(
        mut self,
        first: Option<String>,
        tell: &Sender<TerminalEvent>,
        happened: &Receiver<TerminalEvent>,
    ) {
        let mut queued: Vec<String> = Vec::new();
        let mut next = first;
        loop {
            let text = match next.take() {
                Some(text) => text,
                None => {
                    let line = if queued.is_empty() { next_line(happened) } else { queued.remove(0) };
                    self.run_hook("prompt", &line);
                    line
                }
            };
            self.do_turn(&text);
            self.end_turn(text.contains("give-up"), tell);
            let answer = loop {
                match happened.recv().expect("the terminal's reader lives as long") {
                    TerminalEvent::Line(line) => queued.push(line),
                    TerminalEvent::Hook(answer) => break answer,
                }
            };
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
            next = answer["reason"].as_str().map(str::to_owned).filter(|text| self.accept_text(text));
            self.continues = next.is_some();
        }
    }

    fn accept_text(&mut self, text: &str) -> bool {
        let takes = !text.contains("not-now") || self.refused;
        if !takes {
            self.refused = true;
            self.log_line(&serde_json::json!({"refused": text}));
        }
        takes
    }

    fn do_turn(&mut self, text: &str) {
        self.turn += 1;
        self.log_line(
            &serde_json::json!({"turn": self.turn, "text": text, "at": super::nanoseconds().to_string(), "options": self.options}),
        );
        self.mute = text.contains("mute");
        if text.contains("notify") {
            self.run_hook("notification", "");
        }
        if let Some(fifo) = text.split("hold:").nth(1).and_then(|rest| rest.split_whitespace().next()) {
            drop(std::fs::read(fifo).expect("the test has made it"));
        }
        if text.contains("nested") {
            let script = "for event in session-start prompt turn-end; do \
                          echo '{\"session_id\":\"s-nested\"}' | teamd-shim hook $event; done; echo over";
            let mut shell = Command::new("sh");
            let out = shell.args(["-c", script]).output().expect("there is a shell");
            self.log_line(&serde_json::json!({"nested": String::from_utf8_lossy(&out.stdout)}));
        }
    }

    /// Its hook's answer comes when it comes.
    fn end_turn(&self, gives_up: bool, tell: &Sender<TerminalEvent>) {
        let mut child = hook_command("turn-end").stdout(Stdio::piped()).spawn().expect("teamctl is there");
        write!(child.stdin.take().expect("it is piped"), "{}", self.hook_input("")).ok();
        let mut out = child.stdout.take().expect("it is piped");
        if gives_up {
            drop(out);
            tell.send(TerminalEvent::Hook(String::new())).ok();
            std::thread::spawn(move || child.wait());
            return;
        }
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut answer = String::new();
            out.read_to_string(&mut answer).ok();
            child.wait().ok();
            tell.send(TerminalEvent::Hook(answer)).ok();
        });
    }

    fn run_hook(&self, event: &str, prompt: &str) {
        let mut child = hook_command(event).stdout(Stdio::null()).spawn().expect("teamctl is there");
        write!(child.stdin.take().expect("it is piped"), "{}", self.hook_input(prompt)).ok();
        child.wait().ok();
    }

    fn hook_input(&self, prompt: &str) -> String {
        let last = if self.mute { String::new() } else { format!("turn {} is done", self.turn) };
        serde_json::json!({
            "session_id": "s-1", "prompt": prompt, "message": "may it?", "last_assistant_message": last,
            "stop_hook_active": self.continues && !self.options.iter().any(|option| option == "--never-says"),
        })
        .to_string()
    }

    fn log_line(&self, line: &serde_json::Value) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.file);
        writeln!(file.as_mut().expect("the file can be made"), "{line}").ok();
    }
}

fn hook_command(event: &str) -> Command {
    let mut command = Command::new("teamd-shim");
    command.arg("hook").arg(event).stdin(Stdio::piped());
    command
}

fn next_line(happened: &Receiver<TerminalEvent>) -> String {
    loop {
        if let TerminalEvent::Line(line) = happened.recv().expect("the terminal's reader lives as long") {
            return line;
        }
    }
}

/// Every key at once, as an editor of prompts reads them.
fn set_raw_mode() {
    let Ok(mut attributes) = tcgetattr(std::io::stdin()) else { return };
    attributes.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &attributes).ok();
}

fn read_lines(tell: &Sender<TerminalEvent>) {
    let (mut line, mut bytes) = (Vec::new(), [0; 64]);
    while let Ok(read) = std::io::stdin().read(&mut bytes)
        && read > 0
    {
        for byte in &bytes[..read] {
            match byte {
                b'\r' | b'\n' => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                    tell.send(TerminalEvent::Line(text)).ok();
                }
                byte => line.push(*byte),
            }
        }
    }
}
