//! Error reports for worktrees of agents, with what to do next.

use crate::error::Error;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use std::path::Path;

impl From<Error> for ErrorReport {
    fn from(error: Error) -> ErrorReport {
        let message = error.to_string();
        let report = |kind| ErrorReport::new(kind, &message);
        match &error {
            Error::NoGit => report(ErrorKind::MissingPath).with_help("install git, or do without --worktree"),
            Error::ProgramMissing { program, .. } => {
                report(ErrorKind::MissingPath).with_help(install_help(program))
            }
            Error::NoRepository(_) => report(ErrorKind::Refused)
                .with_help("name a directory of one with --cwd, or do without --worktree"),
            Error::NoCommit(_) => report(ErrorKind::Refused).with_help("make a first commit"),
            Error::InvalidBranch(_) => {
                report(ErrorKind::Usage).with_help("git check-ref-format --branch NAME tells")
            }
            Error::BranchTaken { .. } => {
                report(ErrorKind::AlreadyExists).with_help("name another branch, or none")
            }
            Error::BranchBlocked { obstacle, .. } => report(ErrorKind::Refused).with_help(format!(
                "name another branch: --worktree BRANCH; or rename it: git branch -m {} NAME",
                shell_quote(obstacle)
            )),
            Error::UntrustedDirectory { path, .. } => report(ErrorKind::Refused).with_help(format!(
                "if it is yours: chmod go-w {}; else move it away: teamd then makes one of your own",
                shell_quote(&path.to_string_lossy())
            )),
            Error::NotRecorded { .. }
            | Error::PathNotUtf8(_)
            | Error::NoIdentity(_)
            | Error::NoSuchCommit(_)
            | Error::SymbolicBranch(_)
            | Error::BranchInUse { .. }
            | Error::BranchDiverged { .. } => report(ErrorKind::Refused),
            Error::OwnCommits { branch, .. } => report(ErrorKind::Refused)
                .with_help(format!("give it another name: git branch -m {} NAME", shell_quote(branch))),
            Error::TooManyIncludedFiles { .. } => {
                report(ErrorKind::Refused).with_help("name fewer files in .worktreeinclude")
            }
            Error::MountPoint { mount, .. } => report(ErrorKind::Refused).with_help(unmount_help(mount)),
            Error::ChangedWhileSaving(_) => {
                report(ErrorKind::Refused).with_help("see who works in it, and try again")
            }
            Error::Git { .. } | Error::Io { .. } => report(ErrorKind::Io),
            Error::Timeout { .. } => {
                report(ErrorKind::Timeout).with_help("does a hook or a filter of the repository wait?")
            }
            Error::RepositoryBusy { .. } => {
                report(ErrorKind::Timeout).with_help("try again when they are made")
            }
        }
    }
}

/// What to do if a file system is mounted in a worktree.
pub fn unmount_help(mount: &Path) -> String {
    format!("unmount it first: umount {}", shell_quote(&mount.to_string_lossy()))
}

/// What to do if git does not find a program.
pub fn install_help(program: &str) -> String {
    format!("install {program}, or add its directory to your PATH, and try again")
}
