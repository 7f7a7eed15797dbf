//! Decides how an ask has ended, from what its program has left.

use crate::turns::extract_reply_text::extract_whole_reply;
use protocol::ask_setup_and_record::{AskOutcome, AskState, MAX_ANSWER_BYTES};
use protocol::token_and_cost_usage::Usage;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Why the shim no longer waits for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskEnd {
    Exited,
    TimedOut,
    Interrupted,
}

/// A program that has ended, with all processes that it had started.
#[derive(Debug)]
pub(super) struct FinishedProgram {
    pub(super) end: AskEnd,
    /// `None` if the program could not be ended.
    pub(super) status: Option<ExitStatus>,
    /// Standard output, at most one byte more than [`MAX_ANSWER_BYTES`].
    pub(super) output: Vec<u8>,
    /// The last lines of standard error.
    pub(super) last_lines: String,
    pub(super) session_id: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// The state of the record. `reply_key` is the key of the answer in JSON lines of the output. `None` if
/// the whole output is the answer. `ended_at` is in ms since the epoch.
pub(super) fn ended_state(program: &FinishedProgram, reply_key: Option<&str>, ended_at: u64) -> AskState {
    let answer = extract_whole_reply(&program.output, reply_key).trim_end().to_owned();
    let outcome = outcome(program, &answer, reply_key);
    AskState::Ended { outcome, answer, usage: program.usage, ended_at }
}

fn outcome(program: &FinishedProgram, answer: &str, reply_key: Option<&str>) -> AskOutcome {
    match (program.end, program.status) {
        (AskEnd::TimedOut, _) => AskOutcome::TimedOut,
        (AskEnd::Interrupted, _) => AskOutcome::Interrupted,
        (AskEnd::Exited, Some(status)) if status.success() => successful_outcome(program, answer, reply_key),
        (AskEnd::Exited, status) => {
            let exit = status.map_or("its end is unknown".to_owned(), exit_text);
            let lines = if program.last_lines.is_empty() { answer } else { &program.last_lines };
            let separator = if lines.is_empty() { "" } else { ": " };
            AskOutcome::Failed { reason: format!("{exit}{separator}{lines}") }
        }
    }
}

fn successful_outcome(program: &FinishedProgram, answer: &str, reply_key: Option<&str>) -> AskOutcome {
    if program.output.len() > MAX_ANSWER_BYTES {
        let reason = format!("its answer has more than {MAX_ANSWER_BYTES} bytes");
        return AskOutcome::Failed { reason };
    }
    match reply_key {
        Some(key) if answer.is_empty() => {
            AskOutcome::Failed { reason: format!("its output has no answer: no JSON line has the key {key}") }
        }
        _ => AskOutcome::Answered,
    }
}

/// How the program ended, such as `exit code 2` or `signal 9`.
fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "its end is unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(raw_status: i32, output: &str, last_lines: &str) -> FinishedProgram {
        FinishedProgram {
            end: AskEnd::Exited,
            status: Some(ExitStatus::from_raw(raw_status)),
            output: output.into(),
            last_lines: last_lines.to_owned(),
            session_id: None,
            usage: None,
        }
    }

    fn outcome_and_answer(program: &FinishedProgram, key: Option<&str>) -> (AskOutcome, String) {
        match ended_state(program, key, 0) {
            AskState::Ended { outcome, answer, .. } => (outcome, answer),
            AskState::Running => panic!("the program has ended"),
        }
    }

    #[test]
    fn answer_is_the_whole_output_or_a_key_of_it() {
        let lines = "{\"text\":\"no\"}\n{\"text\":\"4\"}\n";
        assert_eq!(
            outcome_and_answer(&exited(0, lines, ""), Some("text")),
            (AskOutcome::Answered, "4".into())
        );
        assert_eq!(outcome_and_answer(&exited(0, " 4\n\n", ""), None), (AskOutcome::Answered, " 4".into()));
        assert_eq!(outcome_and_answer(&exited(0, "", ""), None).0, AskOutcome::Answered);
    }

    #[test]
    fn missing_or_oversized_answer_is_a_failure() {
        let reason = |program: &FinishedProgram, key| match outcome_and_answer(program, key).0 {
            AskOutcome::Failed { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(&exited(0, "{}", ""), Some("text")).contains("the key text"));
        assert!(reason(&exited(0, &"x".repeat(MAX_ANSWER_BYTES + 1), ""), None).contains("more than"));
        assert_eq!(reason(&exited(2 << 8, "a", "no login"), None), "exit code 2: no login");
        assert_eq!(reason(&exited(2 << 8, "no login", ""), None), "exit code 2: no login");
        assert_eq!(reason(&exited(9, "", ""), None), "signal 9");
    }

    #[test]
    fn timeout_and_interrupt_win_over_the_exit_code() {
        for (end, expected) in
            [(AskEnd::TimedOut, AskOutcome::TimedOut), (AskEnd::Interrupted, AskOutcome::Interrupted)]
        {
            let program = FinishedProgram { end, ..exited(0, "half", "") };
            assert_eq!(outcome_and_answer(&program, None), (expected, "half".into()));
        }
    }
}
