//! A member that was spawned on another host may have a worktree and a branch there. This module
//! records the repository on this host into which the branch can be fetched. This is the repository
//! that contains the directory in which the command was typed.

use crate::command_context::CommandContext;
use crate::commands::hosts::branch_records::{BranchRecord, HostUse, LockedBranchRecords};
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeSet;
use store::Team;
use worktree::{GitEnvironment, common_git_dir};

/// The members that config.json lists for a host.
pub(super) fn members_on(team: &Team, host: &HostName) -> Result<BTreeSet<MemberName>, ErrorReport> {
    let members = team.config()?.members.into_iter();
    let is_there = |host_of_member: Option<String>| host_of_member.as_deref() == Some(host.as_str());
    Ok(members.filter(|member| is_there(member.host.clone())).map(|member| member.name).collect())
}

/// Records the repository for the new member on `host`. `before` has the names of the members on
/// `host` before the spawn. A member that is not in `before` is new. The new name is found by this
/// comparison, because the other host chooses the name if the command has `--unique`.
pub(super) fn record_worktree(
    context: &CommandContext,
    (team, host): (&Team, &HostName),
    before: &BTreeSet<MemberName>,
) -> Result<(), ErrorReport> {
    let state = context.state_dir()?;
    let cwd = std::env::current_dir().ok();
    let repository = cwd.and_then(|cwd| common_git_dir(&cwd, &GitEnvironment::from_process()).ok());
    let records = LockedBranchRecords::lock(&state, team.name())?;
    let known = records.read()?;
    for member in members_on(team, host)?.difference(before) {
        let fetched = known.get(member).and_then(|record| record.fetched.clone());
        let (host, repository) = (host.clone(), repository.clone());
        let record = BranchRecord { host, repository, fetched, host_use: HostUse::InUse };
        records.set(member, record)?;
    }
    Ok(())
}
