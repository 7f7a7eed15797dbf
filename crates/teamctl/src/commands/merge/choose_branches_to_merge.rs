//! Chooses the branches to merge: those of the named members, or of all members with a worktree.

use crate::commands::hosts::branch_records::{BranchRecord, BranchRecords};
use protocol::control_socket::WorktreeStatus;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use protocol::team_config::{Member, TeamConfig};

/// A member whose branch is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChosenMember {
    /// Its worktree is here.
    Here(WorktreeStatus),
    /// Its worktree is on another host.
    Elsewhere(MemberElsewhere),
}

/// A member with a worktree on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberElsewhere {
    pub(super) name: MemberName,
    pub(super) host: HostName,
    /// `None` if the member was spawned without a worktree, or by an older teamctl.
    pub(super) record: Option<BranchRecord>,
}

/// The members and worktrees from which the members to merge are chosen.
pub(super) struct MergeCandidates<'a> {
    pub(super) team: &'a TeamName,
    pub(super) config: &'a TeamConfig,
    /// Those of `config` whose hosts this one may connect to: all at the team's home, else none.
    pub(super) reachable: &'a [Member],
    /// Those of the team here, oldest first.
    pub(super) worktrees: &'a [WorktreeStatus],
    pub(super) records: &'a BranchRecords,
}

impl MergeCandidates<'_> {
    /// Returns the members whose branches are merged, in the order of the merges. If `names` is
    /// empty, these are all members with a worktree: first those on this host, then those on other
    /// hosts.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown member, for a member without a worktree, and if no member has a
    /// worktree.
    pub(super) fn choose(&self, names: &[String]) -> Result<Vec<ChosenMember>, ErrorReport> {
        let chosen = match names {
            [] => {
                // A member that an older teamctl has spawned may have a worktree without a record.
                let hosted = self.reachable.iter().filter(|member| member.host.is_some());
                let unrecorded =
                    hosted.map(|member| &member.name).filter(|name| !self.records.contains_key(*name));
                let names = self.records.keys().chain(unrecorded);
                let elsewhere = names.filter_map(|name| self.member_elsewhere(name.as_str()));
                let here = latest_worktrees(self.worktrees).into_iter().map(ChosenMember::Here);
                here.chain(elsewhere.map(ChosenMember::Elsewhere)).collect()
            }
            names => self.named(names)?,
        };
        match chosen.as_slice() {
            [] => Err(no_worktree_error(&format!("cannot merge: no member of {} has a worktree", self.team))),
            _ => Ok(chosen),
        }
    }

    /// The named members. A name that occurs twice counts once.
    fn named(&self, names: &[String]) -> Result<Vec<ChosenMember>, ErrorReport> {
        let mut chosen = Vec::new();
        for name in names.iter().map(|name| strip_team(name, self.team)) {
            let member = self.member(name)?;
            if !chosen.contains(&member) {
                chosen.push(member);
            }
        }
        Ok(chosen)
    }

    fn member(&self, name: &str) -> Result<ChosenMember, ErrorReport> {
        let is_match = |member: &MemberName| member.as_str().eq_ignore_ascii_case(name);
        let listed = self.config.members.iter().find(|member| is_match(&member.name));
        let here = latest_worktrees(self.worktrees).into_iter().find(|worktree| is_match(&worktree.member));
        let elsewhere = self.member_elsewhere(name);
        match (here, elsewhere, listed) {
            // A listed member on another host may have had a worktree here before.
            (_, Some(elsewhere), Some(Member { host: Some(_), .. })) => {
                Ok(ChosenMember::Elsewhere(elsewhere))
            }
            (Some(here), _, _) => Ok(ChosenMember::Here(here)),
            (None, Some(elsewhere), _) => Ok(ChosenMember::Elsewhere(elsewhere)),
            (None, None, Some(member)) => Err(member_without_worktree_error(&member.name)),
            (None, None, None) => {
                let worktrees = self.worktrees.iter().map(|worktree| &worktree.member);
                let listed = self.config.members.iter().map(|member| &member.name);
                Err(unknown_member_error(name, listed.chain(worktrees).chain(self.records.keys())))
            }
        }
    }

    /// The member, if it is listed for another host or has a record.
    fn member_elsewhere(&self, name: &str) -> Option<MemberElsewhere> {
        let is_match = |member: &MemberName| member.as_str().eq_ignore_ascii_case(name);
        let listed = self.config.members.iter().find(|member| is_match(&member.name));
        let host = listed.and_then(|member| Some((&member.name, HostName::parse(member.host.as_ref()?)?)));
        let record = self.records.iter().find(|(member, _)| is_match(member));
        let recorded = record.map(|(member, record)| (member, record.host.clone()));
        let (name, host) = host.or(recorded)?;
        Some(MemberElsewhere { name: name.clone(), host, record: record.map(|(_, record)| record.clone()) })
    }
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

/// The error for a member without a worktree.
pub(super) fn member_without_worktree_error(member: &MemberName) -> ErrorReport {
    no_worktree_error(&format!("cannot merge the branch of {member}: it has no worktree"))
}

pub(super) fn no_worktree_error(message: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, message)
        .with_help("a member gets one with: teamctl spawn NAME --worktree")
}

fn unknown_member_error<'a>(name: &str, known: impl Iterator<Item = &'a MemberName>) -> ErrorReport {
    let suggestion = did_you_mean(name, known.map(MemberName::as_str));
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find {name}: no such member"))
        .with_help(suggestion.unwrap_or_else(|| "list them with: teamctl status".to_owned()))
}

/// Checks that all branches belong to the same repository.
///
/// # Errors
///
/// `Usage`.
pub(super) fn check_same_repository<'a>(
    mut branches: impl Iterator<Item = &'a WorktreeStatus>,
) -> Result<(), ErrorReport> {
    let Some(first) = branches.next() else { return Ok(()) };
    match branches.find(|other| other.repository != first.repository) {
        None => Ok(()),
        Some(other) => Err(several_repositories_error(first, other)),
    }
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
pub(super) fn check_no_member_branch<'a>(
    mut worktrees: impl Iterator<Item = &'a WorktreeStatus>,
    into: &str,
) -> Result<(), ErrorReport> {
    let Some(owner) = worktrees.find(|worktree| worktree.branch == into) else { return Ok(()) };
    let message = format!("cannot merge into {into}: it is the branch of {}", owner.member);
    Err(ErrorReport::new(ErrorKind::Refused, message).with_help("name another branch with --into"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::hosts::branch_records::HostUse;

    fn worktree(member: &str, branch: &str) -> WorktreeStatus {
        WorktreeStatus {
            member: MemberName::new_unchecked(member),
            path: "/w".into(),
            branch: branch.to_owned(),
            repository: "/r/.git".into(),
        }
    }

    fn config() -> TeamConfig {
        let member = |name: &str, host: &str| {
            format!(
                r#"{{"agentId":"{name}@t","name":"{name}","joinedAt":1,"cwd":"/","tmuxPaneId":""{host}}}"#
            )
        };
        let members =
            [member("ann", ""), member("bob", ""), member("cy", ""), member("eve", r#","host":"box""#)];
        let text = format!(
            r#"{{"name":"t","createdAt":1,"leadAgentId":"x","leadSessionId":"y","members":[{}]}}"#,
            members.join(",")
        );
        TeamConfig::parse(&text).unwrap()
    }

    #[test]
    fn last_worktree_of_each_member_is_chosen() {
        let worktrees = [worktree("ann", "1"), worktree("bob", "2"), worktree("ann", "3")];
        let (team, config) = (TeamName::parse("t").unwrap(), config());
        let host = HostName::parse("box").unwrap();
        let record = BranchRecord { host, repository: None, fetched: None, host_use: HostUse::InUse };
        let records = BranchRecords::from([(MemberName::new_unchecked("dan"), record)]);
        let candidates = MergeCandidates {
            team: &team,
            config: &config,
            reachable: &config.members,
            worktrees: &worktrees,
            records: &records,
        };
        let choose = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let name = |chosen: ChosenMember| match chosen {
                ChosenMember::Here(worktree) => worktree.branch,
                ChosenMember::Elsewhere(member) => format!("{} on {}", member.name, member.host),
            };
            Ok::<_, ErrorReport>(candidates.choose(&names)?.into_iter().map(name).collect::<Vec<_>>())
        };
        assert_eq!(choose(&[]).unwrap(), ["3", "2", "dan on box", "eve on box"]);
        assert_eq!(choose(&["bob", "Ann@t", "bob"]).unwrap(), ["2", "3"]);
        assert_eq!(choose(&["eve", "Dan"]).unwrap(), ["eve on box", "dan on box"]);
        let help = |name: &str| choose(&[name]).unwrap_err().help.unwrap();
        assert!(help("cy").contains("--worktree"));
        assert_eq!(help("bobb"), "did you mean bob?");
        assert!(check_no_member_branch(worktrees.iter(), "4").is_ok());
        assert!(check_no_member_branch(worktrees.iter(), "1").is_err());
    }
}
