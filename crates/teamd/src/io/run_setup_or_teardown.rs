//! Runs the commands `setup` and `teardown` of a policy in the worktrees of members. The threads of
//! worktree jobs call this module, so the event loop does not wait for these commands.

use crate::core::jobs::worktree_jobs::PolicyCommand;
use crate::core::roster::MemberWorktree;
use crate::io::cancel_worktree_setups::{CancelledSetups, WORKTREE_VARIABLE};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::WorktreeCommandKind;
use protocol::state_file_names::LOGS_DIR;
use protocol::team_and_member_names::MemberName;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::StateDir;
use worktree::{
    CommandEnd, Error, GitEnvironment, LoggedCommand, WorktreeRecord, end_processes_with_variable,
};

/// Ends what is left of a setup or teardown command whose daemon was killed.
pub(super) fn end_unfinished_command(record: &WorktreeRecord) -> Result<(), Error> {
    end_processes_with_variable(WORKTREE_VARIABLE, &record.path)
}

/// Runs a setup or teardown command in the top directory of a worktree, unless `cancelled` names
/// this worktree.
///
/// # Errors
///
/// `Refused` if the command fails or is cancelled, `Timeout` if it does not end in time, `Io` if it
/// cannot be started. Each error names the log, which has the command's output.
pub(super) fn run_setup_or_teardown(
    command: &PolicyCommand,
    member: &MemberName,
    record: &WorktreeRecord,
    variables: Vec<(OsString, OsString)>,
    cancelled: &CancelledSetups,
) -> Result<(), ErrorReport> {
    let (kind, log) = (command.kind, log_path(command, member)?);
    let logged = LoggedCommand {
        argv: &command.command.argv,
        directory: &record.path,
        variables: variables.into_iter().chain(teamd_variables(command, member, record)).collect(),
        marker: WORKTREE_VARIABLE,
        worktree: &record.path,
        timeout: command.command.timeout(kind),
        log: &log,
    };
    let child = cancelled.start_unless_cancelled(&record.path, || logged.start());
    let end = match child {
        Some(child) => child.and_then(|child| logged.finish(child)),
        None => Ok(CommandEnd::Failed("cancelled".to_owned())),
    };
    let Some((error_kind, reason)) = failure(end, logged.timeout) else { return Ok(()) };
    let lines = logged.last_lines().unwrap_or_default().into_iter().map(|line| format!("\n    {line}"));
    let message = format!(
        "cannot {} the worktree of {member}: {} {reason}; its output: {}{}",
        verb(kind),
        kind.as_str(),
        log.display(),
        lines.collect::<String>()
    );
    Err(ErrorReport::new(error_kind, message)
        .with_help("when the cause is gone, type the same command again"))
}

/// How a command has failed. `None` if it has not.
fn failure(end: Result<CommandEnd, Error>, timeout: Duration) -> Option<(ErrorKind, String)> {
    match end {
        Ok(CommandEnd::Succeeded) => None,
        Ok(CommandEnd::Failed(status)) => Some((ErrorKind::Refused, format!("failed ({status})"))),
        Ok(CommandEnd::TimedOut) => {
            Some((ErrorKind::Timeout, format!("did not end within {} s", timeout.as_secs())))
        }
        Err(error) => Some((ErrorKind::Io, format!("could not be run or ended: {error}"))),
    }
}

/// What the command does with the worktree, in words.
fn verb(kind: WorktreeCommandKind) -> &'static str {
    match kind {
        WorktreeCommandKind::Setup => "prepare",
        WorktreeCommandKind::Teardown => "tear down",
    }
}

/// Runs the teardown command in all `worktrees` at once. Returns a text for each that failed.
pub(super) fn run_teardowns(
    command: &PolicyCommand,
    worktrees: &[&MemberWorktree],
    environment: &GitEnvironment,
) -> Vec<String> {
    let run = |worktree: &MemberWorktree| {
        let mut variables = environment.variables().to_vec();
        let caller = command.variables.iter().map(|(name, value)| (name.into(), value.into()));
        variables.extend(caller);
        let never_cancelled = CancelledSetups::default();
        run_setup_or_teardown(command, &worktree.member, &worktree.record, variables, &never_cancelled)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = worktrees.iter().map(|worktree| scope.spawn(|| run(worktree))).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        results.filter_map(|result| Some(result.err()?.message)).collect()
    })
}

/// The variables that tell a command where it runs.
fn teamd_variables(
    command: &PolicyCommand,
    member: &MemberName,
    record: &WorktreeRecord,
) -> Vec<(OsString, OsString)> {
    let path = |path: &Path| path.as_os_str().to_owned();
    vec![
        ("TEAMD_ROOT".into(), path(&command.root)),
        ("TEAMD_TEAM".into(), command.team.as_str().into()),
        ("TEAMD_MEMBER".into(), member.as_str().into()),
        ("TEAMD_BRANCH".into(), record.branch.clone().into()),
    ]
}

/// The file for the output, `logs/worktrees/TEAM/MEMBER-setup.log` in the state directory.
fn log_path(command: &PolicyCommand, member: &MemberName) -> Result<PathBuf, ErrorReport> {
    let logs = StateDir::open(&command.state_dir)?.open_subdir(LOGS_DIR)?.open_subdir("worktrees")?;
    let directory = logs.open_subdir(command.team.as_str())?;
    Ok(directory.path().join(format!("{}-{}.log", member.file_stem(), command.kind.as_str())))
}
