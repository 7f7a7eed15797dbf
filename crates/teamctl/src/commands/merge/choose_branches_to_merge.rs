//! Chooses the branches to merge: those of the named members, or of all members with a worktree.

use protocol::control_socket::WorktreeStatus;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use protocol::team_config::{Member, TeamConfig};
use store::Team;

/// Chooses the worktrees whose branches are merged, in the order of the merges. The result has at
/// least one worktree, and all belong to the same repository. `worktrees` are the worktrees of the
/// team, oldest first. If `names` is empty, all members are chosen.
///
/// # Errors
///
/// `NotFound` for an unknown member and for a member without a worktree. `Usage` if the worktrees
/// belong to several repositories.
pub(super) fn choose_branches(
    team: &Team,
    worktrees: &[WorktreeStatus],
    names: &[String],
) -> Result<Vec<WorktreeStatus>, ErrorReport> {
    let config = team.config()?;
    check_worktrees_are_here(&config, team.name(), names)?;
    let members: Vec<&MemberName> = config.members.iter().map(|member| &member.name).collect();
    let chosen = match names {
        [] => latest_worktrees(worktrees),
        names => named_worktrees(team.name(), &members, worktrees, names)?,
    };
    match chosen.as_slice() {
        [] => Err(no_worktree_error(&format!("cannot merge: no member of {} has a worktree", team.name()))),
        [first, others @ ..] => match others.iter().find(|other| other.repository != first.repository) {
            None => Ok(chosen),
            Some(other) => Err(several_repositories_error(first, other)),
        },
    }
}

/// Checks that no named member runs on another host, where its worktree is too.
fn check_worktrees_are_here(
    config: &TeamConfig,
    team: &TeamName,
    names: &[String],
) -> Result<(), ErrorReport> {
    let is_named = |member: &&Member| {
        names.iter().any(|name| strip_team(name, team).eq_ignore_ascii_case(member.name.as_str()))
    };
    let mut elsewhere = config.members.iter().filter(is_named);
    let Some((name, host)) = elsewhere.find_map(|member| Some((&member.name, member.host.as_ref()?))) else {
        return Ok(());
    };
    let message = format!("cannot merge the branch of {name}: its worktree is on {host}");
    Err(ErrorReport::new(ErrorKind::NotFound, message).with_help(format!(
        "fetch the branch from there with git; its name: teamctl --host {host} status -t {team}"
    )))
}

/// The last worktree of each member, in the order in which the members got their first ones.
fn latest_worktrees(worktrees: &[WorktreeStatus]) -> Vec<WorktreeStatus> {
    let mut latest: Vec<WorktreeStatus> = Vec::new();
    for worktree in worktrees {
        match latest.iter_mut().find(|earlier| earlier.member == worktree.member) {
            Some(earlier) => *earlier = worktree.clone(),
            None => latest.push(worktree.clone()),
        }
    }
    latest
}

/// The last worktree of each named member. A name that occurs twice counts once.
fn named_worktrees(
    team: &TeamName,
    members: &[&MemberName],
    worktrees: &[WorktreeStatus],
    names: &[String],
) -> Result<Vec<WorktreeStatus>, ErrorReport> {
    let latest = latest_worktrees(worktrees);
    let mut chosen: Vec<WorktreeStatus> = Vec::new();
    for name in names.iter().map(|name| strip_team(name, team)) {
        let is_match = |member: &MemberName| member.as_str().eq_ignore_ascii_case(name);
        let Some(worktree) = latest.iter().find(|worktree| is_match(&worktree.member)) else {
            let known = members.iter().copied().chain(latest.iter().map(|worktree| &worktree.member));
            return Err(match members.iter().find(|member| is_match(member)) {
                Some(member) => {
                    no_worktree_error(&format!("cannot merge the branch of {member}: it has no worktree"))
                }
                None => unknown_member_error(name, known),
            });
        };
        if !chosen.contains(worktree) {
            chosen.push(worktree.clone());
        }
    }
    Ok(chosen)
}

fn no_worktree_error(message: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, message)
        .with_help("a member gets one with: teamctl spawn NAME --worktree")
}

fn unknown_member_error<'a>(name: &str, known: impl Iterator<Item = &'a MemberName>) -> ErrorReport {
    let suggestion = did_you_mean(name, known.map(MemberName::as_str));
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find {name}: no such member"))
        .with_help(suggestion.unwrap_or_else(|| "list them with: teamctl status".to_owned()))
}

fn several_repositories_error(first: &WorktreeStatus, other: &WorktreeStatus) -> ErrorReport {
    let message = format!(
        "cannot merge {} and {}: they work in different repositories, {} and {}",
        first.member,
        other.member,
        first.repository.display(),
        other.repository.display()
    );
    ErrorReport::new(ErrorKind::Usage, message)
        .with_help(format!("name the members of one repository: teamctl merge {}", first.member))
}

/// Checks that `into` is not the branch of a member: only the member changes its branch.
///
/// # Errors
///
/// `Refused`.
pub(super) fn check_no_member_branch(worktrees: &[WorktreeStatus], into: &str) -> Result<(), ErrorReport> {
    let Some(owner) = worktrees.iter().find(|worktree| worktree.branch == into) else { return Ok(()) };
    let message = format!("cannot merge into {into}: it is the branch of {}", owner.member);
    Err(ErrorReport::new(ErrorKind::Refused, message).with_help("name another branch with --into"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worktree(member: &str, branch: &str) -> WorktreeStatus {
        WorktreeStatus {
            member: MemberName::new_unchecked(member),
            path: "/w".into(),
            branch: branch.to_owned(),
            repository: "/r/.git".into(),
        }
    }

    fn branches(worktrees: &[WorktreeStatus]) -> Vec<&str> {
        worktrees.iter().map(|worktree| worktree.branch.as_str()).collect()
    }

    #[test]
    fn last_worktree_of_each_member_is_chosen() {
        let worktrees = [worktree("ann", "1"), worktree("bob", "2"), worktree("ann", "3")];
        assert_eq!(branches(&latest_worktrees(&worktrees)), ["3", "2"]);
        let team = TeamName::parse("t").unwrap();
        let [ann, bob, cy] = ["ann", "bob", "cy"].map(MemberName::new_unchecked);
        let choose = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            named_worktrees(&team, &[&ann, &bob, &cy], &worktrees, &names)
        };
        assert_eq!(branches(&choose(&["bob", "Ann@t", "bob"]).unwrap()), ["2", "3"]);
        let help = |name: &str| choose(&[name]).unwrap_err().help.unwrap();
        assert!(help("cy").contains("--worktree"));
        assert_eq!(help("bobb"), "did you mean bob?");
        assert!(check_no_member_branch(&worktrees, "4").is_ok());
        assert!(check_no_member_branch(&worktrees, "1").is_err());
    }
}
