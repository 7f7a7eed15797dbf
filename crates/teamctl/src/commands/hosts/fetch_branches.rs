//! Fetches the branches of members on other hosts into the repositories here. The daemon runs the
//! hidden command `fetch-branch` when a member on another host has completed a task. `teamctl run`
//! runs this command before it deletes its team.

use super::branch_records::{BranchRecord, FetchedBranch, HostUse, LockedBranchRecords, read_branch_records};
use super::bundle_file::BundleFile;
use super::read_hosts::HostSource;
use super::receive_branch::BranchToReceive;
use crate::command_context::CommandContext;
use crate::use_other_hosts::check_may_connect_to_hosts;
use protocol::branch_exchange::OfferedBranch;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use runner::HostTables;
use std::path::Path;
use std::process::ExitCode;
use store::{Error, Root, StateDir};
use worktree::{GitEnvironment, has_commit};

/// The arguments.
#[derive(Debug, clap::Args)]
pub(super) struct FetchBranchArgs {
    /// The members [default: all with a worktree on another host]
    names: Vec<String>,
}

/// Fetches the branches of members whose repository here is known.
pub(super) fn run(context: &CommandContext, args: &FetchBranchArgs) -> Result<ExitCode, ErrorReport> {
    let team = context.team_name(&context.root()?)?;
    let is_named = |name: &MemberName| args.names.is_empty() || args.names.iter().any(|n| n == name.as_str());
    fetch_recorded_branches(context, &team, is_named)?;
    Ok(ExitCode::SUCCESS)
}

/// Fetches the branches of the chosen members. Skips a member if its repository here is not known,
/// or if its host was forgotten.
///
/// # Errors
///
/// All branches are tried. Then all errors are returned as one.
pub(in crate::commands) fn fetch_recorded_branches(
    context: &CommandContext,
    team: &TeamName,
    is_chosen: impl Fn(&MemberName) -> bool,
) -> Result<(), ErrorReport> {
    let state = context.state_dir()?;
    let mut records = read_branch_records(&state, team)?;
    records.retain(|name, record| {
        is_chosen(name) && record.repository.is_some() && record.host_use == HostUse::InUse
    });
    if records.is_empty() {
        return Ok(());
    }
    let fetcher = BranchFetcher::new(context, &state, team)?;
    let fetch = |(name, record): (&MemberName, &BranchRecord)| match &record.repository {
        Some(repository) => fetcher.fetch(name, &record.host, repository).err(),
        None => None,
    };
    let errors: Vec<ErrorReport> = records.iter().filter_map(fetch).collect();
    join_errors(errors).map_or(Ok(()), Err)
}

/// One error with all messages, and with the kind and the help of the first error.
fn join_errors(errors: Vec<ErrorReport>) -> Option<ErrorReport> {
    errors.into_iter().reduce(|first, next| {
        let message = format!("{}; {}", first.message, next.message);
        ErrorReport { message, ..first }
    })
}

/// Fetches branches of one team.
pub(in crate::commands) struct BranchFetcher<'a> {
    root: Root,
    state: &'a StateDir,
    team: &'a TeamName,
    source: HostSource,
    hosts: HostTables,
    environment: GitEnvironment,
}

impl<'a> BranchFetcher<'a> {
    /// Reads the hosts.
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the caller may not use other hosts; `Config` if the hosts file has errors,
    /// which are printed.
    pub(in crate::commands) fn new(
        context: &CommandContext,
        state: &'a StateDir,
        team: &'a TeamName,
    ) -> Result<BranchFetcher<'a>, ErrorReport> {
        check_may_connect_to_hosts(context)?;
        let mut source = HostSource::default();
        let hosts = source.read_for_team(context, team)?.map_err(|_| {
            ErrorReport::new(ErrorKind::Config, "cannot fetch branches: the hosts file has errors")
                .with_help("its errors: teamctl hosts")
        })?;
        let (root, environment) = (context.root()?, GitEnvironment::from_process());
        Ok(BranchFetcher { root, state, team, source, hosts, environment })
    }

    /// Fetches the branch of a member into `repository`, and writes a record of the fetch. `None`
    /// if the member has no worktree on the host.
    ///
    /// # Errors
    ///
    /// The error names the host and the member. If only the record cannot be written, the branch
    /// has been fetched nevertheless.
    pub(in crate::commands) fn fetch(
        &self,
        member: &MemberName,
        host: &HostName,
        repository: &Path,
    ) -> Result<Option<FetchedBranch>, ErrorReport> {
        let (name, entry) = self.source.find(&self.hosts, host.as_str())?;
        let bundle = BundleFile::lock(self.state, self.team, member)?;
        let was_recorded = read_branch_records(self.state, self.team)?.contains_key(member);
        let branch = BranchToReceive {
            team: self.team,
            member,
            host: (&name, &entry),
            repository,
            bundle: bundle.path(),
            environment: &self.environment,
        };
        let received = branch.receive();
        bundle.remove()?;
        let Some(offered) = received? else { return Ok(None) };
        let fetched = self.fetched_branch(offered, repository)?;
        let repository = Some(repository.to_owned());
        let record = BranchRecord {
            host: host.clone(),
            repository,
            fetched: Some(fetched.clone()),
            host_use: HostUse::InUse,
        };
        let records = LockedBranchRecords::lock(self.state, self.team)?;
        // The daemon does not wait for a fetch when it deletes the team and its records.
        let is_removed = was_recorded && !records.read()?.contains_key(member);
        if !is_removed && !self.is_team_deleted() {
            records.set(member, record)?;
        }
        Ok(Some(fetched))
    }

    fn is_team_deleted(&self) -> bool {
        matches!(self.root.team(self.team), Err(Error::NoSuchTeam { .. }))
    }

    fn fetched_branch(
        &self,
        offered: OfferedBranch,
        repository: &Path,
    ) -> Result<FetchedBranch, ErrorReport> {
        let OfferedBranch { branch, worktree, base_commit, commits, .. } = offered;
        // A branch that was rebased there need not contain the commit.
        let has_base = has_commit(repository, &base_commit, &self.environment)?;
        let tip = commits.into_iter().next().unwrap_or_default();
        let base_commit = if has_base { base_commit } else { tip };
        Ok(FetchedBranch { branch, base_commit, worktree })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_several_branches_has_all_messages() {
        let error = |kind, message| ErrorReport::new(kind, message).with_help(message);
        assert_eq!(join_errors(Vec::new()), None);
        let joined = join_errors(vec![error(ErrorKind::Io, "a"), error(ErrorKind::Refused, "b")]);
        assert_eq!(joined, Some(ErrorReport::new(ErrorKind::Io, "a; b").with_help("a")));
    }
}
