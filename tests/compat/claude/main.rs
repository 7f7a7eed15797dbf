//! Claude Code itself, in several versions, as a native teammate: what `make test-claude` runs.
//!
//! Nothing is known of the program but what can be seen from outside: files, screen, what it asks the model. The model
//! is a script of ours (scripted_model.mjs) that does what the messages say. Skipped unless `TEAMD_TEST_CLAUDE` names the
//! directory that `install` has filled.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that cannot go on must stop")]

mod claude_env;
mod claude_home;
mod steps;

use claude_env::ClaudeEnv;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// What became of a step.
enum StepResult {
    /// So many milliseconds.
    Passed(u128),
    Failed,
    /// One before it failed.
    Skipped,
}

fn main() -> ExitCode {
    let Some(directory) = std::env::var_os("TEAMD_TEST_CLAUDE").map(PathBuf::from) else {
        print_line("claude: skipped; make test-claude runs it");
        return ExitCode::SUCCESS;
    };
    // A failure is written into a file, with all that can be seen.
    std::panic::set_hook(Box::new(|_| {}));
    let versions = std::fs::read_to_string(directory.join("versions")).expect("the install script has run");
    let runs = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1);
    let mut good = true;
    for run in 1..=runs {
        print_line(&format!(
            "run {run} of {runs}\n{}",
            table_row("version", steps::ALL.iter().map(|(name, _)| (*name).to_owned()))
        ));
        for version in versions.lines() {
            let cells = run_steps(version, &directory);
            good &= cells.iter().all(|cell| matches!(cell, StepResult::Passed(_)));
            print_line(&table_row(version, cells.iter().map(StepResult::to_text)));
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All steps in order; after one that failed the others have nothing to stand on.
fn run_steps(version: &str, directory: &Path) -> Vec<StepResult> {
    let mut world = None;
    let mut failed = false;
    let cells = steps::ALL.iter().map(|(name, step)| {
        if failed {
            return StepResult::Skipped;
        }
        let begun = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| {
            step(world.get_or_insert_with(|| ClaudeEnv::start(version, directory)));
        }));
        match done {
            Ok(()) => StepResult::Passed(begun.elapsed().as_millis()),
            Err(why) => {
                failed = true;
                report_failure(version, name, directory, &*why);
                StepResult::Failed
            }
        }
    });
    cells.collect()
}

#[allow(clippy::disallowed_methods, reason = "the test's own report")]
fn report_failure(version: &str, step: &str, directory: &Path, why: &(dyn std::any::Any + Send)) {
    let text = why.downcast_ref::<String>().cloned();
    let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
    let path = directory.join(format!("failed-{version}-{step}.txt"));
    std::fs::write(&path, &text).expect("the report can be written");
    let first = text.lines().next().unwrap_or_default();
    print_line(&format!("{version}, {step}: {first}\n  the whole of it: {}", path.display()));
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
