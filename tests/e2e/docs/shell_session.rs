//! A person at a terminal, in a repository: types what a page says, line by line, in one shell in a pane of the environment's
//! tmux.

use super::fake_programs;
use super::output_match::{normalize_environment, output_matches};
use super::page_parser::{DocPage, DocStep};
use harness::TestEnv;
use std::cell::Cell;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// Types what comes through a pipe; what a command shows, and its exit code, go to files by its number.
const TYPIST: &str = r#"#!/bin/sh
code=0 number=0
while IFS= read -r line <&3; do
    number=$((number + 1))
    command eval "(exit $code)
$line" 3<&- >"$TEST_DIR/out/$number.shown" 2>&1
    code=$?
    echo $code >"$TEST_DIR/out/$number.code"
done 3<>"$TEST_DIR/typist"
"#;

/// What only looks: a person looks again until it is there to be seen.
const LOOKS: [&str; 12] = [
    "capture", "events", "get", "inbox", "list", "logs", "requests", "status", "trace", "why", "cat",
    "git log",
];

pub(super) struct ShellSession {
    pub(super) env: TestEnv,
    /// How long a person looks again.
    pub(super) patience: Duration,
    typed: Cell<usize>,
}

struct TypedResult {
    code: i32,
    shown: String,
}

impl ShellSession {
    /// At a prompt in `~/project`, a git repository, with tmux around and no teamd.
    pub(super) fn open() -> ShellSession {
        let mut env = TestEnv::new();
        env.variables = variables(&env);
        fake_programs::install_fake_programs(&env);
        env.create_gate("typist");
        let typist = env.write_script("typist.sh", TYPIST).display().to_string();
        let project = env.path("home/project").display().to_string();
        let given =
            env.variables.iter().flat_map(|(name, value)| ["-e".to_owned(), format!("{name}={value}")]);
        let given: Vec<String> = given.collect();
        let mut words = vec!["new-window", "-d", "-t", "user:", "-c", &project];
        words.extend(given.iter().map(String::as_str));
        words.extend(["--", "sh", &typist]);
        let _pane = env.run_tmux(&words).expect_success();
        ShellSession { env, patience: Duration::from_secs(15), typed: Cell::new(0) }
    }

    /// Does what the page says, in its order; the first that is not as it says is told as `LINE: …`.
    pub(super) fn run_page(&self, page: &DocPage) -> Result<(), String> {
        let mut steps = page.steps.iter().peekable();
        while let Some(step) = steps.next() {
            match step {
                DocStep::Write { path, text, .. } => self.write(path, text),
                DocStep::NotRun { .. } => {}
                DocStep::Type { line, command, prints } => {
                    // The next line tells the exit code.
                    let told =
                        matches!(steps.peek(), Some(DocStep::Type { command, .. }) if command == "echo $?");
                    self.check_command(command, prints, told).map_err(|fault| format!("{line}: {fault}"))?;
                }
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, text: &str) {
        let path = match path.strip_prefix("~/") {
            Some(path) => format!("home/{path}"),
            None => format!("home/project/{path}"),
        };
        std::fs::create_dir_all(self.env.path(&path).parent().unwrap()).unwrap();
        if text.starts_with("#!") {
            self.env.write_script(&path, text);
        } else {
            self.env.write_file(&path, text);
        }
    }

    /// Types a command, and again where it only looks and what it is to show is not there yet.
    fn check_command(&self, command: &str, prints: &str, told: bool) -> Result<(), String> {
        let mut said = self.type_command(command);
        let looks = LOOKS
            .iter()
            .any(|verb| command.split(['$', '|']).next().is_some_and(|typed| is_command(typed, verb)));
        let fits = |said: &TypedResult| {
            prints.is_empty() || output_matches(&normalize_environment(&self.env, &said.shown), prints)
        };
        if looks && !fits(&said) {
            let end = Instant::now() + self.patience;
            self.env.wait_until("it is there to be seen", || {
                said = self.type_command(command);
                (fits(&said) || Instant::now() > end).then_some(())
            });
        }
        let shown = normalize_environment(&self.env, &said.shown);
        match (said.code, fits(&said)) {
            (code, _) if code != 0 && !told => Err(format!("`{command}` ends with {code}:\n{shown}")),
            (_, false) => Err(format!("`{command}` prints\n{shown}and not\n{prints}")),
            _ => Ok(()),
        }
    }

    fn type_command(&self, command: &str) -> TypedResult {
        self.typed.set(self.typed.get() + 1);
        let number = self.typed.get();
        // Without a reader it is refused: one that has ended would be waited for without end.
        let now = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let open = || std::fs::File::options().write(true).custom_flags(now).open(self.env.path("typist"));
        let mut typist = self.env.wait_until("the shell is there", || open().ok());
        writeln!(typist, "{command}").unwrap();
        let code = self.env.wait_until(command, || {
            let code = self.env.read(&format!("out/{number}.code"));
            code.strip_suffix('\n').map(|code| code.parse().unwrap())
        });
        TypedResult { code, shown: self.env.read(&format!("out/{number}.shown")) }
    }

    pub(super) fn close(self) {
        self.env.shut_down();
    }
}

/// Of the person's terminal: programs of their own first, and all that is built below one directory.
fn variables(env: &TestEnv) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap();
    let places = [env.path("home/bin"), env.path("bin"), harness::programs().clone(), path.into()];
    let path = places.map(|place| place.display().to_string()).join(":");
    let [target, tmp] = ["target", "tmp"].map(|name| env.path(name).display().to_string());
    let all = [("PATH", path), ("CARGO_TARGET_DIR", target), ("TMPDIR", tmp)];
    all.map(|(name, value)| (name.to_owned(), value)).into()
}

/// `teamctl VERB …`, `teamctl task VERB …`, or a program of the system's.
fn is_command(typed: &str, verb: &str) -> bool {
    let words: Vec<&str> = typed.split_whitespace().take(3).collect();
    match words.as_slice() {
        ["teamctl", "task", word, ..] => *word == verb,
        ["teamctl", word, ..] => *word == verb,
        _ => typed.starts_with(&format!("{verb} ")),
    }
}
