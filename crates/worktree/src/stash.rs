//! Stashes belong to a repository, not to a worktree; but each says on which branch it was made, and from which
//! commit. None is lost with a worktree. Whose it is would be.

use crate::commits::Heads;
use crate::error::Error;
use crate::git::{Git, LOOK};
use crate::tree::Tree;

/// The commits of the stashes that were made in this worktree, as far as that can be told.
pub(crate) fn made_in(tree: &Tree, git: &Git<'_>, heads: &Heads) -> Result<Vec<String>, Error> {
    let all = all(git)?;
    let own = |stash: &&Stash| match branch_of(&stash.what) {
        Some("(no branch)") | None => heads.log.contains(&stash.parent),
        Some(branch) => heads.own(tree).iter().chain(&heads.visited).any(|own| own == branch),
    };
    Ok(all.iter().filter(own).map(|stash| stash.commit.clone()).collect())
}

/// How many there are at all.
pub(crate) fn count(git: &Git<'_>) -> Result<usize, Error> {
    Ok(all(git)?.len())
}

struct Stash {
    commit: String,
    parent: String,
    what: String,
}

fn all(git: &Git<'_>) -> Result<Vec<Stash>, Error> {
    let verb = "list the stashes";
    if !git.run(verb, &["rev-parse", "--verify", "--quiet", "refs/stash"], b"", LOOK)?.is_yes() {
        return Ok(Vec::new());
    }
    let log = git.word(verb, &["log", "--walk-reflogs", "--format=%H%x09%P%x09%gs", "refs/stash", "--"])?;
    let stash = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (commit, parents, what) = (parts.next()?, parts.next()?, parts.next()?);
        let parent = parents.split(' ').next()?;
        Some(Stash { commit: commit.to_owned(), parent: parent.to_owned(), what: what.to_owned() })
    };
    Ok(log.lines().filter_map(stash).collect())
}

/// `WIP on BRANCH: …`, `On BRANCH: …`; somebody's own words otherwise.
fn branch_of(what: &str) -> Option<&str> {
    let rest = what.strip_prefix("WIP on ").or_else(|| what.strip_prefix("On "))?;
    rest.split_once(": ").map(|(branch, _)| branch)
}
