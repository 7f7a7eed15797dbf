//! Tests several versions of Claude Code as teammates with native delivery, on the team's own host
//! and on another host. `make test-claude` runs this program.
//!
//! The test observes Claude Code only from outside: its files, its screen and its requests to the
//! model. The model is a script, `scripted_model.mjs`, which carries out the messages that it gets.
//! The test is skipped unless `TEAMD_TEST_CLAUDE` names the directory of the script `install`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that cannot continue must stop")]

mod annex_steps;
mod claude_annex;
mod claude_env;
mod claude_home;
mod steps;

use claude_annex::ClaudeAnnex;
use claude_env::ClaudeEnv;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The name of a step, and the function that carries it out. It panics if the step fails.
type Step<Env> = (&'static str, fn(&Env));

/// The result of a step.
#[derive(Clone)]
enum StepResult {
    /// The duration in ms.
    Passed(u128),
    Failed,
    /// An earlier step failed.
    Skipped,
}

fn main() -> ExitCode {
    let Some(directory) = std::env::var_os("TEAMD_TEST_CLAUDE").map(PathBuf::from) else {
        print_line("claude: skipped; make test-claude runs it");
        return ExitCode::SUCCESS;
    };
    // `report_failure` writes the message of a panic to a file, so the panic hook prints nothing.
    std::panic::set_hook(Box::new(|_| {}));
    let versions = std::fs::read_to_string(directory.join("versions")).expect("the install script has run");
    let runs = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1);
    let mut all_passed = true;
    for run in 1..=runs {
        let names = steps::ALL.iter().map(|step| step.0).chain(annex_steps::ALL.iter().map(|step| step.0));
        print_line(&format!("run {run} of {runs}\n{}", table_row("version", names.map(str::to_owned))));
        for version in versions.lines() {
            let start_annex = || ClaudeAnnex::start(version, &directory);
            let cells = [
                run_steps(version, &directory, &steps::ALL, || ClaudeEnv::start(version, &directory)),
                run_steps(version, &directory, &annex_steps::ALL, start_annex),
            ]
            .concat();
            all_passed &= cells.iter().all(|cell| matches!(cell, StepResult::Passed(_)));
            print_line(&table_row(version, cells.iter().map(StepResult::to_text)));
        }
    }
    if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs steps in order, in the environment that `start_env` starts. Skips the steps after a failed
/// one, because they need its result.
fn run_steps<Env>(
    version: &str,
    directory: &Path,
    steps: &[Step<Env>],
    start_env: impl Fn() -> Env,
) -> Vec<StepResult> {
    let mut env = None;
    let mut failed = false;
    let cells = steps.iter().map(|(name, step)| {
        if failed {
            return StepResult::Skipped;
        }
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| {
            step(env.get_or_insert_with(&start_env));
        }));
        match done {
            Ok(()) => StepResult::Passed(start.elapsed().as_millis()),
            Err(panic) => {
                failed = true;
                report_failure(version, name, directory, &*panic);
                StepResult::Failed
            }
        }
    });
    cells.collect()
}

/// Writes the message of a panic to a file in `directory`, and prints its first line.
#[allow(clippy::disallowed_methods, reason = "the report is a file of the test")]
fn report_failure(version: &str, step: &str, directory: &Path, panic: &(dyn std::any::Any + Send)) {
    let text = panic.downcast_ref::<String>().cloned();
    let text =
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
    let path = directory.join(format!("failed-{version}-{step}.txt"));
    std::fs::write(&path, &text).expect("the report can be written");
    let first = text.lines().next().unwrap_or_default();
    print_line(&format!("{version}, {step}: {first}\n  full message: {}", path.display()));
}

impl StepResult {
    fn to_text(&self) -> String {
        match self {
            StepResult::Passed(ms) => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
            StepResult::Failed => "FAILED".to_owned(),
            StepResult::Skipped => "-".to_owned(),
        }
    }
}

fn table_row(version: &str, cells: impl Iterator<Item = String>) -> String {
    cells.fold(format!("{version:<10}"), |line, cell| format!("{line}{cell:>10}"))
}

fn print_line(text: &str) {
    writeln!(std::io::stdout(), "{text}").ok();
}
