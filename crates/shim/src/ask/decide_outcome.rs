//! Decides how an ask has ended, from the program's exit status and its output.

use super::answer_collector::CollectedAnswer;
use protocol::control_socket::ExitReport;
use protocol::teamctl_ask_setup_and_record::{AskOutcome, MAX_ANSWER_BYTES};
use std::process::ExitStatus;

/// Why the shim no longer waits for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhyWaitEnded {
    Exited,
    TimedOut,
    Interrupted,
}

/// A program that has ended, with all processes that it had started.
#[derive(Debug)]
pub(super) struct FinishedProgram {
    pub(super) why: WhyWaitEnded,
    /// `None` if the program still ran after SIGKILL.
    pub(super) status: Option<ExitStatus>,
    pub(super) answer: CollectedAnswer,
    /// The last lines of standard error, or of standard output if standard error is empty.
    pub(super) last_lines: String,
}

/// How the ask has ended, and its answer, which is empty if there is none.
pub(super) fn decide_outcome(program: FinishedProgram) -> (AskOutcome, String) {
    let failed = |reason: String| (AskOutcome::Failed { reason }, String::new());
    let is_success = program.status.is_some_and(|status| status.success());
    match (program.why, program.answer) {
        (WhyWaitEnded::TimedOut, _) => (AskOutcome::TimedOut, String::new()),
        (WhyWaitEnded::Interrupted, _) => (AskOutcome::Interrupted, String::new()),
        (WhyWaitEnded::Exited, CollectedAnswer::Text(answer)) if is_success => (AskOutcome::Answered, answer),
        (WhyWaitEnded::Exited, CollectedAnswer::TooLong) if is_success => {
            failed(format!("its answer has more than {MAX_ANSWER_BYTES} bytes"))
        }
        (WhyWaitEnded::Exited, CollectedAnswer::KeyMissing(key)) if is_success => {
            failed(format!("its output has no answer: no JSON line has the key {key}"))
        }
        (WhyWaitEnded::Exited, _) => {
            let exit = program.status.map_or_else(
                || "its end is unknown".to_owned(),
                |status| ExitReport::from_status(status).to_string(),
            );
            let separator = if program.last_lines.is_empty() { "" } else { ": " };
            failed(format!("{exit}{separator}{}", program.last_lines))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn outcome(why: WhyWaitEnded, raw_status: i32, answer: CollectedAnswer) -> (AskOutcome, String) {
        let status = Some(ExitStatus::from_raw(raw_status));
        decide_outcome(FinishedProgram { why, status, answer, last_lines: "no login".to_owned() })
    }

    fn text() -> CollectedAnswer {
        CollectedAnswer::Text("4".to_owned())
    }

    #[test]
    fn only_an_answer_with_exit_code_0_counts() {
        use WhyWaitEnded::{Exited, Interrupted, TimedOut};
        assert_eq!(outcome(Exited, 0, text()), (AskOutcome::Answered, "4".to_owned()));
        assert_eq!(outcome(TimedOut, 0, text()).0, AskOutcome::TimedOut);
        assert_eq!(outcome(Interrupted, 0, text()).0, AskOutcome::Interrupted);
        for (raw_status, answer, expected) in [
            (2 << 8, text(), "exit 2: no login"),
            (9, CollectedAnswer::TooLong, "signal 9: no login"),
            (0, CollectedAnswer::TooLong, "its answer has more than 1048576 bytes"),
            (
                0,
                CollectedAnswer::KeyMissing("k".into()),
                "its output has no answer: no JSON line has the key k",
            ),
        ] {
            let failed = AskOutcome::Failed { reason: expected.to_owned() };
            assert_eq!(outcome(Exited, raw_status, answer), (failed, String::new()));
        }
    }
}
