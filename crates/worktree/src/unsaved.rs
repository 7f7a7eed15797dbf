//! What would be lost with a worktree, or is in the way of removing it: every kind that there is, each looked for.

use crate::commits::{self, Heads};
use crate::error::Error;
use crate::git::Surroundings;
use crate::reason::Reason;
use crate::repository::listed;
use crate::status::Status;
use crate::tree::{Found, Tree};
use crate::{inside, stash, submodule};
use std::fs::read_to_string;
use std::path::Path;

/// What git leaves in a worktree's own directory while something is under way.
const MIDWAY: [(&str, &str); 8] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("MERGE_AUTOSTASH", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("sequencer", "cherry-pick"),
];

impl Tree {
    /// Every reason not to remove it. Empty: nothing is lost with it.
    ///
    /// # Errors
    /// [`Error::NotOurs`]; where it could not be looked at, which is not the same as nothing.
    pub fn unsaved(&self, surroundings: &Surroundings) -> Result<Vec<Reason>, Error> {
        match self.look()? {
            Found::Ours(private) => self.work(&private, surroundings),
            Found::Empty => Ok(Vec::new()),
            // Git forgets one that is removed, by itself or in `git worktree prune`; not one that is moved away.
            Found::Missing if self.is_listed(surroundings)? => Ok(vec![Reason::NotThere]),
            Found::Missing => Ok(Vec::new()),
        }
    }

    fn is_listed(&self, surroundings: &Surroundings) -> Result<bool, Error> {
        Ok(listed(&self.repository, surroundings)?.iter().any(|other| other.path == self.path))
    }

    fn work(&self, private: &Path, surroundings: &Surroundings) -> Result<Vec<Reason>, Error> {
        let git = self.git(surroundings);
        let mut reasons = in_files(Status::of(&self.path, &git)?);
        let heads = Heads::of(&git)?;
        let detached = commits::detached(self, &git, &heads)?;
        let abandoned = commits::abandoned(self, &git, &heads)?;
        let counted = [
            (commits::unpushed(self, &git, &heads)?, Reason::Unpushed as fn(u64) -> Reason),
            (detached, Reason::Detached),
            (abandoned.len() as u64, Reason::Abandoned),
        ];
        reasons.extend(counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, reason)| reason(n)));
        let stashes = stash::made_in(self, &git, &heads)?;
        reasons.extend((!stashes.is_empty()).then_some(Reason::Stashed(stashes.len())));
        reasons.extend(locked(private));
        reasons.extend(midway(private));
        let worked = submodule::with_work(&self.path, private, surroundings)?;
        reasons.extend(worked.into_iter().map(Reason::Submodule));
        // As late as can be: the rest takes its time.
        let inside = inside::processes(&self.path);
        reasons.extend((!inside.is_empty()).then_some(Reason::InUse(inside)));
        Ok(reasons)
    }
}

fn in_files(status: Status) -> Vec<Reason> {
    let unstaged = [status.unstaged, status.unmerged].concat();
    let kinds = [
        (status.staged, Reason::Staged as fn(Vec<std::path::PathBuf>) -> Reason),
        (unstaged, Reason::Unstaged),
        (status.untracked, Reason::Untracked),
        (status.ignored, Reason::Ignored),
        (status.hidden, Reason::Hidden),
    ];
    kinds.into_iter().filter(|(files, _)| !files.is_empty()).map(|(files, reason)| reason(files)).collect()
}

fn locked(private: &Path) -> Vec<Reason> {
    let words = read_to_string(private.join("locked"));
    let kept = words.ok().map(|why| Reason::Locked(why.trim().to_owned()));
    let locks = ["index.lock", "HEAD.lock"].map(|name| private.join(name));
    let busy = locks.into_iter().filter(|lock| lock.symlink_metadata().is_ok()).map(Reason::Busy);
    kept.into_iter().chain(busy).collect()
}

fn midway(private: &Path) -> Vec<Reason> {
    let mut found: Vec<Reason> = Vec::new();
    for (name, what) in MIDWAY {
        let reason = Reason::Midway(what);
        if private.join(name).symlink_metadata().is_ok() && !found.contains(&reason) {
            found.push(reason);
        }
    }
    found
}
