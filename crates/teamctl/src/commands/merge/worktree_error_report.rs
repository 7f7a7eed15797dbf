//! Error reports for errors of git and of worktrees during a merge.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use worktree::Error;

/// The report of an error, with what to do next.
pub(super) fn to_report(error: &Error) -> ErrorReport {
    let report = |kind| ErrorReport::new(kind, error.to_string());
    match error {
        Error::NoGit => report(ErrorKind::MissingPath).with_help("install git, and try again"),
        Error::ProgramMissing { program, .. } => report(ErrorKind::MissingPath)
            .with_help(format!("install {program}, or add its directory to your PATH, and try again")),
        Error::NoCommit(_) => report(ErrorKind::Refused).with_help("make a first commit"),
        Error::NoIdentity(_) => report(ErrorKind::Config)
            .with_help("git config --global user.name NAME; git config --global user.email ADDRESS"),
        Error::NoSuchCommit(_) => report(ErrorKind::NotFound)
            .with_help("name a commit or a branch with --onto; list them: git branch --all"),
        Error::InvalidBranch(_) => {
            report(ErrorKind::Usage).with_help("git check-ref-format --branch NAME tells")
        }
        Error::BranchTaken { branch, worktree } => {
            let message = format!("cannot merge into {branch}: it is checked out in {}", worktree.display());
            ErrorReport::new(ErrorKind::Refused, message)
                .with_help("switch to another branch there, or name another branch with --into")
        }
        Error::SymbolicBranch(_) | Error::BranchInUse { .. } => {
            report(ErrorKind::Refused).with_help("name another branch with --into")
        }
        Error::BranchBlocked { obstacle, .. } => report(ErrorKind::Refused).with_help(format!(
            "name another branch with --into; or rename it: git branch -m {} NAME",
            shell_quote(obstacle)
        )),
        Error::BranchDiverged { branch, start } => report(ErrorKind::AlreadyExists).with_help(format!(
            "leave out --onto to continue the branch, or bring it forward: git switch {} && git merge {}",
            shell_quote(branch),
            shell_quote(start)
        )),
        Error::UntrustedDirectory { path, .. } => report(ErrorKind::Refused)
            .with_help(format!("if it is yours: chmod go-w {}", shell_quote(&path.to_string_lossy()))),
        Error::MountPoint { mount, .. } => report(ErrorKind::Refused)
            .with_help(format!("unmount it first: umount {}", shell_quote(&mount.to_string_lossy()))),
        Error::NotRecorded { .. }
        | Error::PathNotUtf8(_)
        | Error::NoRepository(_)
        | Error::TooManyIncludedFiles { .. }
        | Error::OwnCommits { .. }
        | Error::ChangedWhileSaving(_) => report(ErrorKind::Refused),
        Error::Git { .. } | Error::Io { .. } => report(ErrorKind::Io)
            .with_help("what is merged so far is kept; when the cause is gone, type the same command again"),
        Error::Timeout { .. } | Error::RepositoryBusy { .. } => {
            report(ErrorKind::Timeout).with_help("type the same command again")
        }
    }
}
