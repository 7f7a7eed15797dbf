//! An interactive program with hooks, like a coding agent. It always reads its terminal. At the end
//! of each turn it runs a hook. If the hook returns a text, the program continues with it.
//! Otherwise it waits for a line from the terminal.
//!
//! Each turn appends a line of JSON to a file. Words in the text of the turn change what it does:
//!
//! - `hold:PATH` waits until another program writes to this FIFO.
//! - `give-up` ignores what the hook at the end of this turn returns.
//! - `notify` runs the notification hook, as for a dialog.
//! - `mute` leaves the last message of the turn empty.
//! - `nested` runs the hooks of another program of the same user in a shell and records their
//!   output.
//! - `not-now` makes the program refuse the text the first time. Coding agents do this when they
//!   have continued too often without their user.
//!
//! With the variable `TURN_PROGRAM`, each turn also runs this program, with the text as its standard
//! input.
//!
//! With the option `--never-says`, the program never reports that a hook has requested the turn.

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What the program waits for.
enum ProgramEvent {
    /// A line from the terminal.
    Line(String),
    /// The output of the turn-end hook. Empty if the hook requests no further turn.
    Hook(String),
}

/// Runs the program. `args` are its options and its first prompt. The turns are recorded in `file`.
pub(crate) fn run(file: &str, args: &[&str]) {
    let (options, first_prompt) = super::parse_options(args);
    let program = HookProgram {
        file: PathBuf::from(file),
        options,
        turn: 0,
        mute: false,
        requested_by_hook: false,
        has_refused: false,
    };
    let (sender, events) = channel();
    set_raw_mode();
    let line_sender = sender.clone();
    std::thread::spawn(move || read_lines(&line_sender));
    program.run_hook("session-start", "");
    program.run_loop(first_prompt, &sender, &events);
}

struct HookProgram {
    file: PathBuf,
    options: Vec<String>,
    turn: u32,
    mute: bool,
    /// Whether the hook has requested the current turn.
    requested_by_hook: bool,
    /// Whether a text with `not-now` was already refused.
    has_refused: bool,
}

impl HookProgram {
    fn run_loop(
        mut self,
        first_prompt: Option<String>,
        sender: &Sender<ProgramEvent>,
        events: &Receiver<ProgramEvent>,
    ) {
        let mut queued: Vec<String> = Vec::new();
        let mut next = first_prompt;
        loop {
            let text = match next.take() {
                Some(text) => text,
                None => {
                    let line = if queued.is_empty() { next_line(events) } else { queued.remove(0) };
                    self.run_hook("prompt", &line);
                    line
                }
            };
            self.do_turn(&text);
            self.end_turn(text.contains("give-up"), sender);
            let output = loop {
                match events.recv().expect("a sender exists") {
                    ProgramEvent::Line(line) => queued.push(line),
                    ProgramEvent::Hook(output) => break output,
                }
            };
            let output: serde_json::Value = serde_json::from_str(&output).unwrap_or_default();
            next = output["reason"].as_str().map(str::to_owned).filter(|text| self.accept_text(text));
            self.requested_by_hook = next.is_some();
        }
    }

    /// Whether the program accepts a text from its hook. Records a refusal.
    fn accept_text(&mut self, text: &str) -> bool {
        let is_accepted = !text.contains("not-now") || self.has_refused;
        if !is_accepted {
            self.has_refused = true;
            self.log_line(&serde_json::json!({"refused": text}));
        }
        is_accepted
    }

    fn do_turn(&mut self, text: &str) {
        self.turn += 1;
        self.log_line(
            &serde_json::json!({"turn": self.turn, "text": text, "at": super::unix_time_ns().to_string(), "options": self.options}),
        );
        self.mute = text.contains("mute");
        if text.contains("notify") {
            self.run_hook("notification", "");
        }
        if let Some(fifo) = text.split("hold:").nth(1).and_then(|rest| rest.split_whitespace().next()) {
            drop(std::fs::read(fifo).expect("the test has created the FIFO"));
        }
        if let Some(program) = std::env::var_os("TURN_PROGRAM") {
            let mut child = Command::new(program).stdin(Stdio::piped()).spawn().expect("it starts");
            write!(child.stdin.take().expect("the stream is piped"), "{text}").ok();
            child.wait().ok();
        }
        if text.contains("nested") {
            let script = "for event in session-start prompt turn-end; do \
                          echo '{\"session_id\":\"s-nested\"}' | teamd-shim hook $event; done; echo over";
            let mut shell = Command::new("sh");
            let output = shell.args(["-c", script]).output().expect("sh starts");
            self.log_line(&serde_json::json!({"nested": String::from_utf8_lossy(&output.stdout)}));
        }
    }

    /// Starts the turn-end hook. A thread sends the hook's output as an event when the hook ends.
    fn end_turn(&self, ignores_hook: bool, sender: &Sender<ProgramEvent>) {
        let mut child = hook_command("turn-end").stdout(Stdio::piped()).spawn().expect("teamd-shim starts");
        write!(child.stdin.take().expect("the stream is piped"), "{}", self.hook_input("")).ok();
        let mut stdout = child.stdout.take().expect("the stream is piped");
        if ignores_hook {
            drop(stdout);
            sender.send(ProgramEvent::Hook(String::new())).ok();
            std::thread::spawn(move || child.wait());
            return;
        }
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut output = String::new();
            stdout.read_to_string(&mut output).ok();
            child.wait().ok();
            sender.send(ProgramEvent::Hook(output)).ok();
        });
    }

    /// Runs a hook and waits until it ends.
    fn run_hook(&self, event: &str, prompt: &str) {
        let mut child = hook_command(event).stdout(Stdio::null()).spawn().expect("teamd-shim starts");
        write!(child.stdin.take().expect("the stream is piped"), "{}", self.hook_input(prompt)).ok();
        child.wait().ok();
    }

    fn hook_input(&self, prompt: &str) -> String {
        let last_message = if self.mute { String::new() } else { format!("turn {} is done", self.turn) };
        serde_json::json!({
            "session_id": "s-1", "prompt": prompt, "message": "may it?", "last_assistant_message": last_message,
            "stop_hook_active": self.requested_by_hook && !self.options.iter().any(|option| option == "--never-says"),
        })
        .to_string()
    }

    fn log_line(&self, line: &serde_json::Value) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.file);
        writeln!(file.as_mut().expect("the file can be opened"), "{line}").ok();
    }
}

fn hook_command(event: &str) -> Command {
    let mut command = Command::new("teamd-shim");
    command.arg("hook").arg(event).stdin(Stdio::piped());
    command
}

fn next_line(events: &Receiver<ProgramEvent>) -> String {
    loop {
        if let ProgramEvent::Line(line) = events.recv().expect("a sender exists") {
            return line;
        }
    }
}

/// Sets the terminal to raw mode, as the prompt editor of a coding agent does.
fn set_raw_mode() {
    let Ok(mut attributes) = tcgetattr(std::io::stdin()) else { return };
    attributes.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &attributes).ok();
}

fn read_lines(sender: &Sender<ProgramEvent>) {
    let (mut line, mut bytes) = (Vec::new(), [0; 64]);
    while let Ok(read) = std::io::stdin().read(&mut bytes)
        && read > 0
    {
        for byte in &bytes[..read] {
            match byte {
                b'\r' | b'\n' => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                    sender.send(ProgramEvent::Line(text)).ok();
                }
                byte => line.push(*byte),
            }
        }
    }
}
