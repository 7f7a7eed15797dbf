//! Stashes belong to a repository, not to a worktree; but each says on which branch it was made, and from which
//! commit. None is lost with a worktree. Whose it is would be.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::local_commits::HeadState;
use crate::record::WorktreeRecord;

/// The commits of the stashes that were made in this worktree, as far as that can be told.
pub(crate) fn stashes_of_worktree(
    tree: &WorktreeRecord,
    git: &Git<'_>,
    heads: &HeadState,
) -> Result<Vec<String>, Error> {
    let all = list_stashes(git)?;
    let own = |stash: &&Stash| match stash_branch(&stash.subject) {
        Some("(no branch)") | None => heads.reflog.contains(&stash.parent),
        Some(branch) => {
            heads.own_branches(tree).iter().chain(&heads.visited_branches).any(|own| own == branch)
        }
    };
    Ok(all.iter().filter(own).map(|stash| stash.commit.clone()).collect())
}

/// How many there are at all.
pub(crate) fn count_stashes(git: &Git<'_>) -> Result<usize, Error> {
    Ok(list_stashes(git)?.len())
}

struct Stash {
    commit: String,
    parent: String,
    subject: String,
}

fn list_stashes(git: &Git<'_>) -> Result<Vec<Stash>, Error> {
    let verb = "list the stashes";
    if !git.run(verb, &["rev-parse", "--verify", "--quiet", "refs/stash"], b"", READ_TIMEOUT)?.is_success() {
        return Ok(Vec::new());
    }
    let log =
        git.output_text(verb, &["log", "--walk-reflogs", "--format=%H%x09%P%x09%gs", "refs/stash", "--"])?;
    let stash = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (commit, parents, what) = (parts.next()?, parts.next()?, parts.next()?);
        let parent = parents.split(' ').next()?;
        Some(Stash { commit: commit.to_owned(), parent: parent.to_owned(), subject: what.to_owned() })
    };
    Ok(log.lines().filter_map(stash).collect())
}

/// `WIP on BRANCH: …`, `On BRANCH: …`; somebody's own words otherwise.
fn stash_branch(what: &str) -> Option<&str> {
    let rest = what.strip_prefix("WIP on ").or_else(|| what.strip_prefix("On "))?;
    rest.split_once(": ").map(|(branch, _)| branch)
}
