//! `teamctl hosts send-branch`: runs on a member's host when the team's home fetches the member's
//! branch. It offers the branch, and sends the commits that the home lacks. It only reads the
//! roster and the repository, so it works without a daemon.

use crate::command_context::CommandContext;
use protocol::branch_exchange::{BundleReply, KnownCommits, OfferReply, OfferedBranch, Receipt};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, Seek, Write};
use std::process::ExitCode;
use worktree::{
    GitEnvironment, WorktreeRecord, has_commit, newest_commits, note_received, unnamed_bundle_file,
    write_bundle,
};

/// The arguments.
#[derive(Debug, clap::Args)]
pub(super) struct SendBranchArgs {
    /// The member
    name: String,
}

pub(super) fn run(context: &CommandContext, args: &SendBranchArgs) -> Result<ExitCode, ErrorReport> {
    let environment = GitEnvironment::from_process();
    let root = context.root()?;
    let offer = offer(context, &context.team_name(&root)?, &args.name, &environment)
        .unwrap_or_else(OfferReply::Failed);
    print(&offer)?;
    if let OfferReply::Branch(branch) = &offer
        && let Some(KnownCommits { known }) = read_line()
    {
        send(branch, &known, &environment)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn offer(
    context: &CommandContext,
    team: &TeamName,
    name: &str,
    environment: &GitEnvironment,
) -> Result<OfferReply, ErrorReport> {
    let roster = store::read_existing_roster(&context.state_dir_path()?)?;
    let mut worktrees = roster.worktrees(team).iter().rev();
    let latest = worktrees.find(|worktree| worktree.member.as_str() == name);
    // The daemon writes the records in the same format.
    let record = latest.and_then(|latest| serde_json::from_value(latest.record.clone()).ok());
    let Some(WorktreeRecord { path, branch, common_git_dir, base_commit, .. }) = record else {
        return Ok(OfferReply::NoWorktree);
    };
    match newest_commits(&common_git_dir, &branch, environment)? {
        None => Ok(OfferReply::NoBranch(branch)),
        Some(commits) => {
            let (worktree, repository) = (path, common_git_dir);
            Ok(OfferReply::Branch(OfferedBranch { branch, worktree, repository, base_commit, commits }))
        }
    }
}

/// Sends the bundle, and notes what the home has received.
fn send(branch: &OfferedBranch, known: &[String], environment: &GitEnvironment) -> Result<(), ErrorReport> {
    match bundle(branch, known, environment) {
        Err(error) => return print(&BundleReply::Failed(error)),
        Ok((mut file, length)) => {
            print(&BundleReply::Bytes(length))?;
            let mut stdout = std::io::stdout().lock();
            // The home reads up to the next newline.
            let sent = std::io::copy(&mut file, &mut stdout).and_then(|_| stdout.write_all(b"\n"));
            sent.and_then(|()| stdout.flush()).map_err(|error| gone(&error))?;
        }
    }
    if let Some(receipt) = read_line::<Receipt>().filter(|receipt| branch.commits.contains(&receipt.received))
    {
        note_received(&branch.repository, &branch.branch, &receipt.received, environment)?;
        print(&receipt)?;
    }
    Ok(())
}

/// The bundle and its length in bytes. Empty if the home has the last commit.
fn bundle(
    branch: &OfferedBranch,
    known: &[String],
    environment: &GitEnvironment,
) -> Result<(File, u64), ErrorReport> {
    let mut file = unnamed_bundle_file()?;
    let is_known = branch.commits.first().is_some_and(|tip| known.contains(tip));
    if !is_known {
        // Only offered commits are of use, and no other text becomes an argument.
        let is_offered = |id: &&String| branch.commits.contains(id) || **id == branch.base_commit;
        let mut known: Vec<String> = known.iter().filter(is_offered).cloned().collect();
        if !has_commit(&branch.repository, &branch.base_commit, environment)? {
            known.retain(|id| *id != branch.base_commit);
        }
        write_bundle(&branch.repository, &branch.branch, &known, &file, environment)?;
    }
    let length = file.seek(std::io::SeekFrom::End(0)).and_then(|length| file.rewind().map(|()| length));
    length.map(|length| (file, length)).map_err(|error| gone(&error))
}

fn print(value: &impl Serialize) -> Result<(), ErrorReport> {
    let line = serde_json::to_string(value).expect("texts and paths can be written as JSON");
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|error| gone(&error))
}

fn gone(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot send the branch to the other machine: {error}"))
}

/// The next line of the home. `None` if the home has gone.
fn read_line<T: DeserializeOwned>() -> Option<T> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}
