//! Which commits go with a worktree, or are nowhere but on its branch.

use crate::error::Error;
use crate::git::{Git, LOOK};
use crate::plan::reference;
use crate::tree::Tree;

/// Where HEAD is, and what it saw before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heads {
    /// The commit; none before the first.
    pub(crate) head: Option<String>,
    /// The branch; none where HEAD is detached.
    pub(crate) branch: Option<String>,
    /// Every commit that HEAD was at, by its log.
    pub(crate) log: Vec<String>,
    /// Every branch that it was on, by its log.
    pub(crate) visited: Vec<String>,
}

impl Heads {
    pub(crate) fn of(git: &Git<'_>) -> Result<Heads, Error> {
        let verb = "look at HEAD";
        let word = |arguments: &[&str]| -> Result<Option<String>, Error> {
            let said = git.run(verb, arguments, b"", LOOK)?;
            Ok(said.is_yes().then(|| String::from_utf8_lossy(&said.stdout).trim_end().to_owned()))
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
        Ok(Heads { head, branch, log: seen, visited })
    }

    /// Its own branches: the one it was made for, and the one it is on.
    pub(crate) fn own(&self, tree: &Tree) -> Vec<String> {
        let mut own = vec![tree.branch.clone()];
        own.extend(self.branch.clone().filter(|branch| *branch != tree.branch));
        own
    }
}

/// Commits of its branches, beyond where it began, that no other branch has, local or remote.
pub(crate) fn unpushed(tree: &Tree, git: &Git<'_>, heads: &Heads) -> Result<u64, Error> {
    let own = heads.own(tree);
    let mut arguments: Vec<String> = ["rev-list", "--count", "--ignore-missing"].map(str::to_owned).into();
    arguments.extend(own.iter().filter(|branch| exists(git, branch)).map(|branch| reference(branch)));
    arguments.extend(["--not".to_owned(), tree.base.clone(), "--remotes".to_owned()]);
    arguments.extend(own.iter().map(|branch| format!("--exclude={branch}")));
    arguments.push("--branches".to_owned());
    git.count("count the commits", &arguments, b"")
}

/// Commits of a detached HEAD that no branch has.
pub(crate) fn detached(tree: &Tree, git: &Git<'_>, heads: &Heads) -> Result<u64, Error> {
    match (&heads.head, &heads.branch) {
        (Some(head), None) => lost(tree, git, std::slice::from_ref(head)),
        _ => Ok(0),
    }
}

/// Commits that nothing holds but the log of its HEAD and its own references, which go with it.
pub(crate) fn abandoned(tree: &Tree, git: &Git<'_>, heads: &Heads) -> Result<Vec<String>, Error> {
    let mut kept = logs(git, &heads.own(tree));
    kept.extend(heads.head.clone());
    let mut seen = heads.log.clone();
    seen.extend(private(git)?);
    let arguments =
        ["rev-list", "--ignore-missing", "--stdin", "--not", &tree.base, "--branches", "--remotes", "--tags"];
    let found = git.run("count the commits", &arguments, &starts(&seen, &kept), LOOK)?;
    let found = found.yes("count the commits")?;
    Ok(String::from_utf8_lossy(&found).lines().map(str::to_owned).collect())
}

/// Of what the log of a branch that is deleted would take along.
pub(crate) fn only_in_log(tree: &Tree, git: &Git<'_>) -> Result<u64, Error> {
    lost(tree, git, &logs(git, std::slice::from_ref(&tree.branch)))
}

fn lost(tree: &Tree, git: &Git<'_>, from: &[String]) -> Result<u64, Error> {
    if from.is_empty() {
        return Ok(0);
    }
    let arguments = ["rev-list", "--count", "--ignore-missing", "--stdin", "--not", &tree.base];
    let arguments: Vec<&str> = arguments.into_iter().chain(["--branches", "--remotes", "--tags"]).collect();
    git.count("count the commits", &arguments, &starts(from, &[]))
}

/// Commits of a repository that nothing holds but its logs.
pub(crate) fn only_in_logs(git: &Git<'_>) -> Result<Vec<String>, Error> {
    let arguments = ["rev-list", "--ignore-missing", "--reflog", "--not", "--all"];
    Ok(lines(&git.read("count the commits", &arguments)?))
}

/// For `--stdin`, where each line stands for itself.
fn starts(from: &[String], kept: &[String]) -> Vec<u8> {
    let lines = from.iter().map(|commit| format!("{commit}\n"));
    lines.chain(kept.iter().map(|commit| format!("^{commit}\n"))).collect::<String>().into_bytes()
}

/// References that belong to this worktree alone.
fn private(git: &Git<'_>) -> Result<Vec<String>, Error> {
    let format = "--format=%(objectname) %(refname)";
    let all = git.word("list the references", &["for-each-ref", format, "refs/worktree/"])?;
    let theirs = all.lines().filter_map(|line| line.split_once(' '));
    Ok(theirs.filter(|(_, name)| !name.starts_with(crate::save::OURS)).map(|(id, _)| id.to_owned()).collect())
}

/// All commits that these branches were at. A branch without a log has none.
fn logs(git: &Git<'_>, branches: &[String]) -> Vec<String> {
    let of = |branch: &String| {
        let arguments = ["log", "--walk-reflogs", "--format=%H", &reference(branch), "--"];
        git.read("look at a branch", &arguments).unwrap_or_default()
    };
    branches.iter().flat_map(|branch| lines(&of(branch))).collect()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

fn exists(git: &Git<'_>, branch: &str) -> bool {
    git.read("look at a branch", &["show-ref", "--verify", "--quiet", &reference(branch)]).is_ok()
}
