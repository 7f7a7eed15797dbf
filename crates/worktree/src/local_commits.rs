//! Which commits go with a worktree, or are nowhere but on its branch.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::proposal::branch_ref;
use crate::record::WorktreeRecord;

/// Where HEAD is, and what it saw before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadState {
    /// The commit; none before the first.
    pub(crate) head: Option<String>,
    /// The branch; none where HEAD is detached.
    pub(crate) branch: Option<String>,
    /// Every commit that HEAD was at, by its log.
    pub(crate) reflog: Vec<String>,
    /// Every branch that it was on, by its log.
    pub(crate) visited_branches: Vec<String>,
}

impl HeadState {
    pub(crate) fn read(git: &Git<'_>) -> Result<HeadState, Error> {
        let verb = "look at HEAD";
        let word = |arguments: &[&str]| -> Result<Option<String>, Error> {
            let said = git.run(verb, arguments, b"", READ_TIMEOUT)?;
            Ok(said.is_success().then(|| String::from_utf8_lossy(&said.stdout).trim_end().to_owned()))
        };
        let head = word(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        let branch = word(&["symbolic-ref", "--quiet", "HEAD"])?;
        let branch = branch.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        let log = word(&["log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--"])?.unwrap_or_default();
        let (mut seen, mut visited) = (Vec::new(), Vec::new());
        for (commit, what) in log.lines().filter_map(|line| line.split_once(' ')) {
            seen.push(commit.to_owned());
            let moved = what.strip_prefix("checkout: moving from ").and_then(|rest| rest.split_once(" to "));
            visited.extend(moved.into_iter().flat_map(|(from, to)| [from.to_owned(), to.to_owned()]));
        }
        Ok(HeadState { head, branch, reflog: seen, visited_branches: visited })
    }

    /// Its own branches: the one it was made for, and the one it is on.
    pub(crate) fn own_branches(&self, tree: &WorktreeRecord) -> Vec<String> {
        let mut own = vec![tree.branch.clone()];
        own.extend(self.branch.clone().filter(|branch| *branch != tree.branch));
        own
    }
}

/// Commits of its branches, beyond where it began, that no other branch has, local or remote.
pub(crate) fn count_unpushed(tree: &WorktreeRecord, git: &Git<'_>, heads: &HeadState) -> Result<u64, Error> {
    let own = heads.own_branches(tree);
    let mut arguments: Vec<String> = ["rev-list", "--count", "--ignore-missing"].map(str::to_owned).into();
    arguments.extend(own.iter().filter(|branch| branch_exists(git, branch)).map(|branch| branch_ref(branch)));
    arguments.extend(["--not".to_owned(), tree.base_commit.clone(), "--remotes".to_owned()]);
    arguments.extend(own.iter().map(|branch| format!("--exclude={branch}")));
    arguments.push("--branches".to_owned());
    git.output_number("count the commits", &arguments, b"")
}

/// Commits of a detached HEAD that no branch has.
pub(crate) fn count_detached(tree: &WorktreeRecord, git: &Git<'_>, heads: &HeadState) -> Result<u64, Error> {
    match (&heads.head, &heads.branch) {
        (Some(head), None) => count_unreferenced(tree, git, std::slice::from_ref(head)),
        _ => Ok(0),
    }
}

/// Commits that nothing holds but the log of its HEAD and its own references, which go with it.
pub(crate) fn reflog_only_commits(
    tree: &WorktreeRecord,
    git: &Git<'_>,
    heads: &HeadState,
) -> Result<Vec<String>, Error> {
    let mut kept = branch_logs(git, &heads.own_branches(tree));
    kept.extend(heads.head.clone());
    let mut seen = heads.reflog.clone();
    seen.extend(worktree_refs(git)?);
    let arguments = [
        "rev-list",
        "--ignore-missing",
        "--stdin",
        "--not",
        &tree.base_commit,
        "--branches",
        "--remotes",
        "--tags",
    ];
    let found = git.run("count the commits", &arguments, &rev_list_input(&seen, &kept), READ_TIMEOUT)?;
    let found = found.stdout_or_error("count the commits")?;
    Ok(String::from_utf8_lossy(&found).lines().map(str::to_owned).collect())
}

/// Of what the log of a branch that is deleted would take along.
pub(crate) fn count_only_in_branch_log(tree: &WorktreeRecord, git: &Git<'_>) -> Result<u64, Error> {
    count_unreferenced(tree, git, &branch_logs(git, std::slice::from_ref(&tree.branch)))
}

fn count_unreferenced(tree: &WorktreeRecord, git: &Git<'_>, from: &[String]) -> Result<u64, Error> {
    if from.is_empty() {
        return Ok(0);
    }
    let arguments = ["rev-list", "--count", "--ignore-missing", "--stdin", "--not", &tree.base_commit];
    let arguments: Vec<&str> = arguments.into_iter().chain(["--branches", "--remotes", "--tags"]).collect();
    git.output_number("count the commits", &arguments, &rev_list_input(from, &[]))
}

/// Commits of a repository that nothing holds but its logs.
pub(crate) fn reflog_only_in_repository(git: &Git<'_>) -> Result<Vec<String>, Error> {
    let arguments = ["rev-list", "--ignore-missing", "--reflog", "--not", "--all"];
    Ok(lines(&git.output_of("count the commits", &arguments)?))
}

/// For `--stdin`, where each line stands for itself.
fn rev_list_input(from: &[String], kept: &[String]) -> Vec<u8> {
    let lines = from.iter().map(|commit| format!("{commit}\n"));
    lines.chain(kept.iter().map(|commit| format!("^{commit}\n"))).collect::<String>().into_bytes()
}

/// References that belong to this worktree alone.
fn worktree_refs(git: &Git<'_>) -> Result<Vec<String>, Error> {
    let format = "--format=%(objectname) %(refname)";
    let all = git.output_text("list the references", &["for-each-ref", format, "refs/worktree/"])?;
    let theirs = all.lines().filter_map(|line| line.split_once(' '));
    Ok(theirs
        .filter(|(_, name)| !name.starts_with(crate::save::SAVED_REFS))
        .map(|(id, _)| id.to_owned())
        .collect())
}

/// All commits that these branches were at. A branch without a log has none.
fn branch_logs(git: &Git<'_>, branches: &[String]) -> Vec<String> {
    let of = |branch: &String| {
        let arguments = ["log", "--walk-reflogs", "--format=%H", &branch_ref(branch), "--"];
        git.output_of("look at a branch", &arguments).unwrap_or_default()
    };
    branches.iter().flat_map(|branch| lines(&of(branch))).collect()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

fn branch_exists(git: &Git<'_>, branch: &str) -> bool {
    git.output_of("look at a branch", &["show-ref", "--verify", "--quiet", &branch_ref(branch)]).is_ok()
}
