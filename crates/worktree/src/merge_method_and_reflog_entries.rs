//! How `teamctl merge` brings a member's commits onto the target branch: by a merge or by a rebase.
//! Both add an entry to the reflog of the target branch. After a rebase, this entry names the last
//! commit that was copied, so that a later rebase does not copy the same commits again.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::look_up_branches::branch_ref;

/// The first words of the entries. The last commit of the merged branch follows.
const MERGED_MESSAGE: &str = "teamd: merged ";
const REBASED_MESSAGE: &str = "teamd: rebased ";

/// How a member's commits get onto the branch that collects the merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeMethod {
    /// A merge commit, also where git could fast-forward. So each member has one commit.
    Merge,
    /// Adds the member's commits and makes no merge commit. If the member's branch contains the
    /// target branch, the commits stay unchanged. Otherwise git copies them onto the target branch.
    /// Git leaves out commits that an earlier rebase has copied, and commits whose change is
    /// already on the target branch.
    Rebase,
}

impl MergeMethod {
    /// The message of the reflog entry for `merged`, the last commit of the merged branch.
    pub(crate) fn reflog_message(self, merged: &str) -> String {
        match self {
            MergeMethod::Merge => format!("{MERGED_MESSAGE}{merged}"),
            MergeMethod::Rebase => format!("{REBASED_MESSAGE}{merged}"),
        }
    }
}

/// Reads from the reflog of the branch `name` which branches were rebased onto it, and returns the
/// last commit of each. A rebase counts only if its result is still in the history of the commit
/// `base`.
pub(crate) fn copied_commits(git: &Git<'_>, name: &str, base: &str) -> Result<Vec<String>, Error> {
    let arguments = ["log", "--walk-reflogs", "--format=%H %gs", &branch_ref(name), "--"];
    let log = git.text_if_success("read the branch's log", &arguments)?.unwrap_or_default();
    let entries: Vec<(&str, &str)> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(result, message)| Some((result, message.strip_prefix(REBASED_MESSAGE)?)))
        .collect();
    let input: String = entries.iter().map(|(result, _)| format!("{result}\n")).collect();
    let (action, arguments) = ("compare commits", ["rev-list", "--stdin", "--not", base]);
    let missing = git.run(action, &arguments, input.as_bytes(), READ_TIMEOUT)?.stdout_or_error(action)?;
    let missing = String::from_utf8_lossy(&missing).into_owned();
    let is_missing = |result: &str| missing.lines().any(|line| line == result);
    Ok(entries.iter().filter(|(result, _)| !is_missing(result)).map(|(_, tip)| (*tip).to_owned()).collect())
}
