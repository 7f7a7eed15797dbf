//! Types the commands of a page, line by line, into one shell in a pane of the test's tmux server.
//! The shell runs in a repository.

use super::fake_programs;
use super::output_match::{normalize_environment, output_matches};
use super::page_parser::{DocPage, DocStep};
use harness::TestEnv;
use std::cell::Cell;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// Script that runs the commands that it reads from a pipe. Writes the output and the exit code of
/// command N to `out/N.shown` and `out/N.code`.
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

/// Commands that only read. They are repeated until the output matches, as a person would do.
const READ_COMMANDS: [&str; 13] = [
    "capture", "events", "get", "inbox", "list", "logs", "report", "requests", "status", "trace", "why",
    "cat", "git log",
];

pub(super) struct ShellSession {
    pub(super) env: TestEnv,
    /// How long a command that only reads is repeated.
    pub(super) retry_timeout: Duration,
    /// Number of commands typed.
    command_count: Cell<usize>,
}

struct TypedResult {
    code: i32,
    /// stdout and stderr.
    output: String,
}

impl ShellSession {
    /// Opens a shell in `~/project`, a git repository, in a pane of tmux. No teamd runs.
    pub(super) fn open() -> ShellSession {
        let mut env = TestEnv::new();
        env.variables = variables(&env);
        fake_programs::install_fake_programs(&env);
        env.create_gate("typist");
        let typist = env.write_script("typist.sh", TYPIST).display().to_string();
        let project = env.path("home/project").display().to_string();
        let env_options =
            env.variables.iter().flat_map(|(name, value)| ["-e".to_owned(), format!("{name}={value}")]);
        let env_options: Vec<String> = env_options.collect();
        let mut args = vec!["new-window", "-d", "-t", "user:", "-c", &project];
        args.extend(env_options.iter().map(String::as_str));
        args.extend(["--", "sh", &typist]);
        let _pane = env.run_tmux(&args).expect_success();
        ShellSession { env, retry_timeout: Duration::from_secs(15), command_count: Cell::new(0) }
    }

    /// Does the steps of the page in order.
    ///
    /// # Errors
    ///
    /// Which step fails or has other output than the page shows, as `LINE: …`.
    pub(super) fn run_page(&self, page: &DocPage) -> Result<(), String> {
        let mut steps = page.steps.iter().peekable();
        while let Some(step) = steps.next() {
            match step {
                DocStep::Write { path, text, .. } => self.write(path, text),
                DocStep::NotRun { .. } => {}
                DocStep::Type { line, command, expected_output } => {
                    // The page shows the exit code if the next command prints it.
                    let shows_code =
                        matches!(steps.peek(), Some(DocStep::Type { command, .. }) if command == "echo $?");
                    self.check_command(command, expected_output, shows_code)
                        .map_err(|error| format!("{line}: {error}"))?;
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

    /// Types a command and checks its output and exit code. Repeats a command that only reads while
    /// its output does not match. If `may_fail`, any exit code is accepted.
    fn check_command(&self, command: &str, expected_output: &str, may_fail: bool) -> Result<(), String> {
        let mut result = self.type_command(command);
        let is_read_command = READ_COMMANDS
            .iter()
            .any(|name| command.split(['$', '|']).next().is_some_and(|part| is_command(part, name)));
        let matches = |result: &TypedResult| {
            expected_output.is_empty()
                || output_matches(&normalize_environment(&self.env, &result.output), expected_output)
        };
        if is_read_command && !matches(&result) {
            let end = Instant::now() + self.retry_timeout;
            self.env.wait_until("the command prints the output of the page", || {
                result = self.type_command(command);
                (matches(&result) || Instant::now() > end).then_some(())
            });
        }
        let output = normalize_environment(&self.env, &result.output);
        match (result.code, matches(&result)) {
            (code, _) if code != 0 && !may_fail => Err(format!("`{command}` ends with {code}:\n{output}")),
            (_, false) => Err(format!("`{command}` prints\n{output}and not\n{expected_output}")),
            _ => Ok(()),
        }
    }

    fn type_command(&self, command: &str) -> TypedResult {
        self.command_count.set(self.command_count.get() + 1);
        let number = self.command_count.get();
        // Without O_NONBLOCK, the open would block forever if the shell has ended.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let open_pipe =
            || std::fs::File::options().write(true).custom_flags(flags).open(self.env.path("typist"));
        let mut typist = self.env.wait_until("the shell reads the pipe", || open_pipe().ok());
        writeln!(typist, "{command}").unwrap();
        let code = self.env.wait_until(command, || {
            let code = self.env.read(&format!("out/{number}.code"));
            code.strip_suffix('\n').map(|code| code.parse().unwrap())
        });
        TypedResult { code, output: self.env.read(&format!("out/{number}.shown")) }
    }

    pub(super) fn close(self) {
        self.env.shut_down();
    }
}

/// The variables of the shell: a PATH that begins with `~/bin` and the fake programs, directories of the
/// test for builds and temporary files, and the variables of cron jobs.
fn variables(env: &TestEnv) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap();
    let directories = [env.path("home/bin"), env.path("bin"), harness::programs().clone(), path.into()];
    let path = directories.map(|directory| directory.display().to_string()).join(":");
    let [target, tmp] = ["target", "tmp"].map(|name| env.path(name).display().to_string());
    let cron = cron_variables(env);
    let variables = [("PATH", path), ("CARGO_TARGET_DIR", target), ("TMPDIR", tmp), ("CRON_VARIABLES", cron)];
    variables.map(|(name, value)| (name.to_owned(), value)).into()
}

/// What keeps a cron job in the test environment. cron has no `XDG_RUNTIME_DIR` of a login; the job gets
/// a directory of its own instead.
fn cron_variables(env: &TestEnv) -> String {
    let directories = [
        ("TEAMD_ROOT", "root"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_RUNTIME_DIR", "cron"),
        ("TMUX_TMPDIR", "run"),
    ];
    let pairs = directories.map(|(name, path)| format!(" {name}={}", env.path(path).display()));
    env.process_tag() + &pairs.concat()
}

/// Whether the line is `teamctl NAME …`, `teamctl task NAME …`, or begins with the program NAME.
fn is_command(line: &str, name: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    match words.as_slice() {
        ["teamctl", "task", word, ..] => *word == name,
        ["teamctl", word, ..] => *word == name,
        _ => line.starts_with(&format!("{name} ")),
    }
}
