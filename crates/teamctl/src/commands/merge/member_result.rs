//! What a merge has done with the branch of each member, and the lines that say so.

use super::conflict_task::ConflictTask;
use super::run_test_command::TestFailure;
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::shell_quote::shell_quote;
use protocol::team_and_member_names::MemberName;
use serde::Serialize;
use std::path::PathBuf;
use worktree::escape_controls;

/// How many files with conflicts a line names.
const SHOWN_FILES: usize = 5;

/// A member whose branch was to be merged.
#[derive(Debug, Serialize)]
pub(super) struct MemberMerge {
    pub(super) name: MemberName,
    pub(super) branch: String,
    /// The host of the member's worktree, if it is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<HostName>,
    /// Why the branch could not be fetched from the host now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fetch_error: Option<ErrorReport>,
    /// The worktree on the member's host. Empty if the branch was never fetched.
    pub(super) worktree: PathBuf,
    /// Whether the member's worktree has changes that are in no commit.
    #[serde(rename = "unsaved_changes")]
    pub(super) has_unsaved_changes: bool,
    /// What is checked out in the member's worktree, if that is not `branch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) other_checkout: Option<OtherCheckout>,
    #[serde(flatten)]
    pub(super) result: MergeResult,
}

/// What a member has checked out instead of its branch. Its commits there are not merged.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OtherCheckout {
    Branch(String),
    DetachedHead,
}

impl OtherCheckout {
    /// `None` if `checked_out` is `own_branch`. `checked_out` is `None` for a detached HEAD.
    pub(super) fn new(checked_out: Option<&str>, own_branch: &str) -> Option<OtherCheckout> {
        match checked_out {
            None => Some(OtherCheckout::DetachedHead),
            Some(branch) => (branch != own_branch).then(|| OtherCheckout::Branch(branch.to_owned())),
        }
    }

    fn text(&self) -> String {
        match self {
            OtherCheckout::Branch(branch) => format!("the branch {branch}, which its worktree has"),
            OtherCheckout::DetachedHead => "commits on the detached HEAD of its worktree".to_owned(),
        }
    }
}

/// What was done with a member's branch.
#[derive(Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(super) enum MergeResult {
    Merged {
        commits: usize,
    },
    NothingToMerge,
    Conflict {
        /// For people: bytes that are not UTF-8 are replaced.
        files: Vec<String>,
        task: ConflictTask,
    },
    TestFailed(TestFailure),
    /// Git cannot merge the branch at all, for example because the histories have no common commit.
    Impossible {
        /// What git says.
        reason: String,
    },
    /// The member's branch was deleted or renamed.
    NoBranch,
    /// The member's branch is on another host, and was never fetched.
    NotFetched,
}

impl MemberMerge {
    /// Whether the result has all commits of the member's branch.
    pub(super) fn is_in(&self) -> bool {
        let is_merged = matches!(self.result, MergeResult::Merged { .. } | MergeResult::NothingToMerge);
        is_merged && self.fetch_error.is_none()
    }

    /// The lines for people. The first begins with the member's name.
    pub(super) fn lines(&self) -> Vec<String> {
        let first = format!("{}: {}{}", self.name, self.result_text(), self.left_out_text());
        let output = match &self.result {
            MergeResult::TestFailed(failure) => failure.last_lines.as_slice(),
            _ => &[],
        };
        let help = self.fetch_error.as_ref().and_then(|error| error.help.as_ref());
        std::iter::once(first).chain(output.iter().chain(help).map(|line| format!("    {line}"))).collect()
    }

    /// What of the member's work is left out. Empty if nothing is.
    fn left_out_text(&self) -> String {
        let unsaved = format!("unsaved changes in {}", self.worktree.display());
        let unsaved = self.has_unsaved_changes.then_some(unsaved);
        let newer = self.fetch_error.as_ref().filter(|_| !matches!(self.result, MergeResult::NotFetched));
        let newer = newer.map(|error| format!("what is newer there: {}", error.message));
        let checkout = self.other_checkout.as_ref().map(OtherCheckout::text);
        let parts: Vec<String> = unsaved.into_iter().chain(checkout).chain(newer).collect();
        if parts.is_empty() { String::new() } else { format!("; left out: {}", parts.join(", ")) }
    }

    fn result_text(&self) -> String {
        match &self.result {
            MergeResult::Merged { commits: 1 } => format!("merged 1 commit of {}", self.branch),
            MergeResult::Merged { commits } => format!("merged {commits} commits of {}", self.branch),
            MergeResult::NothingToMerge => "nothing to merge".to_owned(),
            MergeResult::Conflict { files, task } => format!("conflict in {}; {task}", list(files)),
            MergeResult::TestFailed(failure) => {
                format!("not merged: {}; its output: {}", failure.reason, failure.log.display())
            }
            MergeResult::Impossible { reason } => {
                format!("not merged: git cannot merge {}: {reason}", self.branch)
            }
            MergeResult::NoBranch => format!("not merged: the branch {} does not exist", self.branch),
            MergeResult::NotFetched => {
                let reason = self.fetch_error.as_ref().map(|error| error.message.as_str());
                format!("not merged: {}", reason.unwrap_or_default())
            }
        }
    }
}

/// The first files, and how many others there are.
fn list(files: &[String]) -> String {
    let shown = files.iter().take(SHOWN_FILES).map(|file| escape_controls(file));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(SHOWN_FILES) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

/// The commands for the result.
#[derive(Debug, Serialize)]
pub(super) struct ResultCommands {
    /// Shows the commits that the user's branch lacks.
    look: String,
    /// Merges the branch into the user's branch.
    take: String,
}

impl ResultCommands {
    /// `name` is the branch, in a form that git cannot mistake for a tag.
    pub(super) fn new(name: &str) -> ResultCommands {
        let name = shell_quote(name);
        ResultCommands { look: format!("git log --oneline HEAD..{name}"), take: format!("git merge {name}") }
    }
}

/// Formats the last line of the output: the merge branch, a command that shows its commits, and a
/// command that merges it into the user's branch. `commands` is `None` if the merge branch does not
/// exist.
pub(super) fn summary(branch: &str, commands: Option<&ResultCommands>) -> String {
    match commands {
        Some(ResultCommands { look, take }) => format!("{branch}: look at it: {look}; take it: {take}"),
        None => format!("Nothing is merged, so there is no branch {branch}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::member_task_and_request_ids::TaskId;
    use serde_json::json;

    fn member(result: MergeResult) -> MemberMerge {
        MemberMerge {
            name: MemberName::new_unchecked("ann"),
            branch: "teamd/t/ann".to_owned(),
            host: None,
            fetch_error: None,
            worktree: "/w".into(),
            has_unsaved_changes: matches!(result, MergeResult::Merged { .. }),
            other_checkout: None,
            result,
        }
    }

    #[test]
    fn other_checkout_is_left_out() {
        let new = |checked_out| OtherCheckout::new(checked_out, "own");
        assert_eq!(new(Some("own")), None);
        let line = |checked_out| {
            MemberMerge { other_checkout: new(checked_out), ..member(MergeResult::NothingToMerge) }.lines()
        };
        assert_eq!(
            line(Some("x")),
            ["ann: nothing to merge; left out: the branch x, which its worktree has"]
        );
        let detached = "commits on the detached HEAD of its worktree";
        assert_eq!(line(None), [format!("ann: nothing to merge; left out: {detached}")]);
    }

    #[test]
    fn lines_say_what_was_done() {
        let merged = member(MergeResult::Merged { commits: 2 });
        assert_eq!(merged.lines(), ["ann: merged 2 commits of teamd/t/ann; left out: unsaved changes in /w"]);
        let files = (1..=7).map(|n| n.to_string()).collect();
        let task = ConflictTask::Created { id: TaskId::from_number(7).unwrap() };
        let conflict = member(MergeResult::Conflict { files, task });
        assert_eq!(conflict.lines(), ["ann: conflict in 1, 2, 3, 4, 5 and 2 more; task 7"]);
        let failure = TestFailure {
            reason: "the test failed (exit 1)".to_owned(),
            log: "/log".into(),
            last_lines: vec!["bad".to_owned()],
        };
        let failed = member(MergeResult::TestFailed(failure));
        assert_eq!(
            failed.lines(),
            ["ann: not merged: the test failed (exit 1); its output: /log", "    bad"]
        );
        assert!(merged.is_in() && !conflict.is_in() && !failed.is_in());
    }

    #[test]
    fn json_names_the_result() {
        let task = ConflictTask::Open { id: TaskId::from_number(7).unwrap() };
        let conflict = member(MergeResult::Conflict { files: vec!["a".into()], task });
        assert_eq!(
            json!(conflict),
            json!({"name": "ann", "branch": "teamd/t/ann", "worktree": "/w", "unsaved_changes": false,
                "result": "conflict", "files": ["a"], "task": {"state": "open", "id": "7"}})
        );
    }
}
