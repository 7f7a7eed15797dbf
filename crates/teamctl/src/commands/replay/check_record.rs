//! `teamctl replay --check`: runs `teamd --check-record`, which repeats the daemon's decisions from
//! the recorded inputs. Shows where these decisions differ from those in the record.

use crate::command_context::CommandContext;
use crate::output;
use client::daemon_command_line::daemon_path;
use client::read_team_record::CUT_RECORD;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::record_check::{CheckedRecordEnd, RecordCheck};
use serde_json::json;
use similar::TextDiff;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};

/// The exit code if the daemon decides otherwise than in the record.
const DIFFERS: u8 = 1;

/// Checks a record with the installed teamd.
pub(super) fn check_record(context: &CommandContext, file: &Path) -> Result<ExitCode, ErrorReport> {
    let check = run_teamd(file)?;
    if check.end == CheckedRecordEnd::CutLine {
        output::print_warning(CUT_RECORD);
    }
    let diff = history_diff(&check);
    let object = json!({
        "differs": diff.is_some(),
        "diff": diff,
        "members": check.members,
        "tasks": check.tasks,
    });
    let sentence = diff.as_ref().map_or_else(|| agreement(&check), |diff| visible_lines(diff));
    output::print_result(context, &object, &sentence);
    Ok(if diff.is_some() { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS })
}

/// The result of `teamd --check-record`.
fn run_teamd(file: &Path) -> Result<RecordCheck, ErrorReport> {
    let program = daemon_path()?;
    let mut command = Command::new(&program);
    command.arg("--check-record").arg(file).stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        let message = format!("cannot start {}: {error}", program.display());
        ErrorReport::new(ErrorKind::MissingPath, message).with_help("install all programs: make install")
    })?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Err(no_result(file, &program, &output)))
}

/// The error if teamd printed no result: it was killed, or is of another release.
fn no_result(file: &Path, program: &Path, output: &Output) -> ErrorReport {
    let text = String::from_utf8_lossy(&output.stderr);
    let first_line = text.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
    let (file, program, status) = (file.display(), program.display(), output.status);
    let message = format!("cannot check {file}: {program} ended without a result ({status}){first_line}");
    ErrorReport::new(ErrorKind::Internal, message)
        .with_help("install all programs of one release: make install; play the record: teamctl replay FILE")
}

/// How the history of the replay differs from the recorded one. `None` if it does not differ.
fn history_diff(check: &RecordCheck) -> Option<String> {
    if check.recorded == check.replayed {
        return None;
    }
    // The diff needs a timeout: if the recorded and the replayed history have no common lines, its
    // time grows with the square of the number of lines.
    let mut config = TextDiff::configure();
    config.timeout(std::time::Duration::from_secs(10));
    let diff = config.diff_lines(check.recorded.as_str(), check.replayed.as_str());
    Some(diff.unified_diff().header("recorded", "replayed").to_string())
}

fn agreement(check: &RecordCheck) -> String {
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    format!("{}, {}: decided as recorded", count(check.members, "member"), count(check.tasks, "task"))
}

/// Makes the control characters of each line visible. The diff has names and reasons of the record.
fn visible_lines(diff: &str) -> String {
    let lines: Vec<String> = diff.lines().map(output::sanitize).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(recorded: &str, replayed: &str) -> RecordCheck {
        let (recorded, replayed) = (recorded.to_owned(), replayed.to_owned());
        RecordCheck { members: 1, tasks: 2, end: CheckedRecordEnd::Complete, recorded, replayed }
    }

    #[test]
    fn equal_histories_have_no_diff() {
        let equal = check("claims\n", "claims\n");
        assert_eq!(history_diff(&equal), None);
        assert_eq!(agreement(&equal), "1 member, 2 tasks: decided as recorded");
    }

    #[test]
    fn diff_names_both_histories_and_shows_control_characters() {
        let diff = history_diff(&check("claims\n  task 1 by a\u{1b}\n", "claims\n  task 1 by b\n")).unwrap();
        let expected =
            "--- recorded\n+++ replayed\n@@ -1,2 +1,2 @@\n claims\n-  task 1 by a\u{1b}\n+  task 1 by b\n";
        assert_eq!(diff, expected);
        assert!(!visible_lines(&diff).contains('\u{1b}'));
    }
}
