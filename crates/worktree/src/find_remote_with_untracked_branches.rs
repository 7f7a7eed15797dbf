//! Finds a remote of which this repository tracks only some branches, as after `git clone
//! --single-branch`. Commits that were pushed to one of the other branches look as if they were not
//! pushed, because this repository does not know those branches.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::git_output::split_nul;
use std::collections::BTreeMap;

/// The part of a fetch rule that tracks every branch.
const ALL_BRANCHES: &str = "refs/heads/*:";

/// Returns the first remote of which not every branch is tracked.
///
/// # Errors
///
/// The errors of [`Git::run`].
pub(crate) fn find_narrow_remote(git: &Git<'_>) -> Result<Option<String>, Error> {
    let arguments = ["config", "--null", "--get-regexp", r"^remote\..*\.fetch$"];
    // git fails if no key matches. So a failure is treated as an empty output.
    Ok(narrow_remote(&git.run("read the remotes", &arguments, b"", READ_TIMEOUT)?.stdout))
}

/// Returns the first remote without a fetch rule (refspec) for all branches. `output` is what `git
/// config --null --get-regexp` prints: each entry is a key, a newline and a fetch rule.
fn narrow_remote(output: &[u8]) -> Option<String> {
    let mut tracks_all_by_remote: BTreeMap<String, bool> = BTreeMap::new();
    for entry in split_nul(output).map(String::from_utf8_lossy) {
        let Some((key, rule)) = entry.split_once('\n') else { continue };
        let Some(name) = key.strip_prefix("remote.").and_then(|key| key.strip_suffix(".fetch")) else {
            continue;
        };
        *tracks_all_by_remote.entry(name.to_owned()).or_default() |= rule.contains(ALL_BRANCHES);
    }
    tracks_all_by_remote.into_iter().find(|(_, tracks_all)| !tracks_all).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_is_narrow_unless_a_rule_tracks_every_branch() {
        let all_branches = "remote.a.b.fetch\n+refs/heads/*:refs/remotes/a.b/*\0";
        let one_branch = "remote.a.b.fetch\n+refs/heads/main:refs/remotes/a.b/main\0";
        for (output, expected) in [
            ("", None),
            (all_branches, None),
            (one_branch, Some("a.b")),
            (&format!("{one_branch}{all_branches}"), None),
        ] {
            assert_eq!(narrow_remote(output.as_bytes()).as_deref(), expected, "{output}");
        }
    }
}
