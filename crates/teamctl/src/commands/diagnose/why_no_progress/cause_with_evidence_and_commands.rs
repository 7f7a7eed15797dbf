//! A cause with everything that is printed about it.

use super::cause::Cause;
use crate::output::{print_line, sanitize};
use protocol::single_line::single_line;
use serde::Serialize;

/// A cause as it is printed. The keys are those of `--json`.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Diagnosis {
    pub(super) cause: Cause,
    pub(in crate::commands) sentence: String,
    evidence: Vec<String>,
    /// Commands for the caller. The first is the recommended one.
    pub(in crate::commands) next: Vec<String>,
}

impl Diagnosis {
    /// Creates a diagnosis without evidence and commands. `sentence` and all evidence that is added
    /// later are made single lines. So a text of another program cannot imitate a line of the
    /// output.
    pub(super) fn new(cause: Cause, sentence: impl AsRef<str>) -> Diagnosis {
        let sentence = single_line(sentence.as_ref());
        Diagnosis { cause, sentence, evidence: Vec::new(), next: Vec::new() }
    }

    /// Adds lines of evidence. Lines that are `None` or empty are left out.
    pub(super) fn with_evidence<L: Into<Option<String>>>(
        mut self,
        lines: impl IntoIterator<Item = L>,
    ) -> Diagnosis {
        let lines = lines.into_iter().filter_map(Into::into).filter(|line| !line.is_empty());
        self.evidence.extend(lines.map(|line| single_line(&line)));
        self
    }

    /// Adds commands for the lead.
    pub(super) fn with_next(mut self, commands: impl IntoIterator<Item = String>) -> Diagnosis {
        self.next.extend(commands);
        self
    }

    /// Whether the cause keeps the member from making progress.
    pub(super) fn is_blocking(&self) -> bool {
        self.cause.is_blocking()
    }

    /// Whether the member waits for the answer to a request.
    pub(in crate::commands) fn awaits_answer(&self) -> bool {
        matches!(self.cause, Cause::AwaitingPermission | Cause::AwaitingPlanApproval)
    }

    /// Whether the other diagnosis has the same cause, and the same command helps.
    pub(in crate::commands) fn is_alike(&self, other: &Diagnosis) -> bool {
        (self.cause, self.next.first()) == (other.cause, other.next.first())
    }

    /// Whether the other diagnosis has the same cause and the same sentence.
    pub(super) fn is_same(&self, other: &Diagnosis) -> bool {
        (self.cause, &self.sentence) == (other.cause, &other.sentence)
    }

    /// Prints the sentence, and below it the evidence and the commands.
    pub(in crate::commands::diagnose) fn print(&self) {
        print_line(&sanitize(&self.sentence));
        self.evidence.iter().for_each(|line| print_line(&sanitize(&format!("    {line}"))));
        self.next.iter().for_each(|command| print_line(&sanitize(&format!("  > {command}"))));
    }
}
