//! The errors of this crate, with messages for people: what failed, why, and what to do next.

use nix::errno::Errno;
use protocol::check_program_supports_answer::UnsupportedAnswer;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::length_limits_of_texts::TextTooLong;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {verb} {}: {cause}", path.display())]
    Io {
        /// The operation, as a verb.
        verb: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// Another user could have changed this file or directory.
    #[error("cannot trust {}: {reason}", path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// Why another user has access.
        reason: &'static str,
        /// The command that corrects the permissions.
        remedy: String,
    },
    /// The path leads to a symbolic link, pipe, directory or device instead of a regular file. Also
    /// used for a file that has several hard links.
    #[error("cannot use {}: it is {what}", path.display())]
    UnexpectedFileType {
        path: PathBuf,
        /// The file type found there.
        what: &'static str,
    },
    /// The file is larger than teamd reads or writes.
    #[error("cannot take {}: it would be {size} bytes, and {limit} is the limit", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The largest size allowed, in bytes.
        limit: u64,
    },
    /// A text is longer than its limit.
    #[error(transparent)]
    TextTooLong(#[from] TextTooLong),
    /// The file is not valid JSON, and stayed so during all retries.
    #[error("cannot parse {}: {reason}", path.display())]
    Corrupt {
        /// The file, which is unchanged.
        path: PathBuf,
        /// The position and the kind of the syntax error.
        reason: String,
        /// A copy of the file. `None` if there are already enough copies.
        backup: Option<PathBuf>,
    },
    /// The file is valid JSON, but a known field has the wrong type.
    #[error("cannot understand {}: {reason}", path.display())]
    Malformed {
        /// The file, which is unchanged.
        path: PathBuf,
        /// The field and its value.
        reason: String,
    },
    /// Another program held the lock until the timeout, or something other than an empty directory
    /// is at the lock's path.
    #[error("cannot lock {}: {reason}", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// What prevented the lock.
        reason: String,
    },
    /// Other programs changed the file before every attempt to replace it.
    #[error("cannot change {}: other programs keep changing it", .0.display())]
    Contended(PathBuf),
    /// The team does not exist.
    #[error("cannot find team {name}")]
    NoSuchTeam {
        /// The requested name.
        name: TeamName,
        /// The most similar names.
        nearest: Vec<String>,
    },
    /// The team has no such member.
    #[error("cannot find {name:?} in team {team}{}", if *is_suspended { ": it is suspended" } else { "" })]
    NoSuchMember {
        /// The requested name.
        name: String,
        team: TeamName,
        /// The most similar names.
        nearest: Vec<String>,
        /// Whether the member is suspended and can be resumed.
        is_suspended: bool,
    },
    /// The task does not exist.
    #[error("cannot find task {id} in team {team}")]
    NoSuchTask {
        /// The requested id.
        id: TaskId,
        team: TeamName,
    },
    /// The name is in use.
    #[error("cannot create {what}: it exists already")]
    AlreadyExists {
        /// `team X`, `member X` or `file X`.
        what: String,
    },
    /// The team is a session team of Claude Code, which teamd does not change.
    #[error("cannot change team {0}: it belongs to a session of Claude Code")]
    ReadOnly(TeamName),
    /// The name in a config is not a valid team name.
    #[error(transparent)]
    InvalidName(#[from] protocol::team_and_member_names::NameError),
    /// Another member owns the task.
    #[error("cannot claim task {id}: {owner} has it")]
    TaskClaimed {
        id: TaskId,
        /// Its owner.
        owner: MemberName,
    },
    /// The member that claims the task already owns it, and the task is in progress.
    #[error("cannot claim task {id}: {owner} has it already, and it is in progress")]
    AlreadyInProgress {
        id: TaskId,
        /// Its owner.
        owner: MemberName,
    },
    /// The task has blockers that are not completed.
    #[error("cannot start task {id}: it waits for {}", join_ids(blockers))]
    TaskBlocked {
        id: TaskId,
        /// The open blockers.
        blockers: Vec<TaskId>,
    },
    /// The team has no task that the member could claim.
    #[error("cannot claim a task: none is available in team {0}")]
    NoTaskAvailable(TeamName),
    /// The new dependency would close a cycle.
    #[error("cannot link the tasks: {} would wait for itself", join_ids(path))]
    DependencyCycle {
        /// The cycle. The first task is repeated at the end.
        path: Vec<TaskId>,
    },
    /// The tasks of a batch depend on each other in a cycle.
    #[error("cannot create the tasks: {} is a circle", path.join(" → "))]
    BatchCycle {
        /// The dependency cycle. Each task blocks the next one, and the first task is repeated at
        /// the end. A new task is named by its subject, an existing task by its id.
        path: Vec<String>,
    },
    /// A task of a batch depends on an index that the batch does not have.
    #[error("cannot create the tasks: {subject:?} waits for number {index} of {count}, counted from 0")]
    NoSuchBatchIndex {
        /// The subject of the task that names the index.
        subject: String,
        /// The missing index, counted from 0.
        index: usize,
        /// The number of tasks in the batch.
        count: usize,
    },
    /// The task's current status does not allow the new one.
    #[error("cannot set task {id} to {to}: it is {from}")]
    InvalidTransition {
        id: TaskId,
        /// Its current status.
        from: String,
        /// The requested status.
        to: String,
    },
    /// The task has its new owner, but the message to the owner was not sent.
    #[error("task {id} has its owner, but {owner} could not be notified: {cause}")]
    OwnerNotNotified {
        id: TaskId,
        /// The new owner.
        owner: MemberName,
        /// Why the message was not sent.
        #[source]
        cause: Box<Error>,
    },
    /// No open request has this id or an id that begins with it.
    #[error("cannot answer {id}: {}", if open.is_empty() { "no member waits for an answer now" } else { "there is no such request" })]
    NoSuchRequest {
        /// The requested id.
        id: String,
        /// The ids of the open requests.
        open: Vec<String>,
    },
    /// Several requests have an id that begins with `id`, or two members used the same id.
    #[error("cannot answer {id}: it could be {}", candidates.join(", "))]
    AmbiguousRequest {
        /// The requested id.
        id: String,
        /// The requests that match.
        candidates: Vec<String>,
    },
    /// The request already has an answer.
    #[error("cannot answer {id}: it was answered with a {} already", if *approved { "yes" } else { "no" })]
    AlreadyAnswered {
        id: String,
        /// Whether that answer was an approval.
        approved: bool,
    },
    /// The member that made the request has exited.
    #[error("cannot answer {id}: {from} has ended, and so has its request")]
    AskerGone {
        id: String,
        /// The member that made the request.
        from: MemberName,
    },
    /// The member that made the request is suspended.
    #[error("cannot answer {id} now: {from} is suspended, and asks again when it is resumed")]
    AskerSuspended {
        id: String,
        /// The member that made the request.
        from: MemberName,
    },
    /// The member no longer waits for the answer.
    #[error("cannot answer {id}: {from} has taken it back, since the turn that asked is over")]
    Withdrawn {
        id: String,
        /// The member that made the request.
        from: MemberName,
    },
    /// The answer is of the wrong kind for the request.
    #[error("cannot answer {id} like that: {reason}")]
    AnswerNotApplicable {
        id: String,
        /// Why the answer does not fit.
        reason: &'static str,
    },
    /// The member's program can't act on this answer.
    #[error("cannot answer {id} like that: {}", unsupported_answer.reason)]
    UnsupportedAnswer {
        id: String,
        /// Why the program can't act on it, and what to do instead.
        unsupported_answer: UnsupportedAnswer,
    },
    /// The team's directories contain files that teamd does not know.
    #[error("cannot delete team {team}: not known to us and kept: {}", join_paths(paths))]
    UnknownFiles {
        team: TeamName,
        /// The unknown files.
        paths: Vec<PathBuf>,
    },
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> ErrorReport {
        ErrorReport { kind: error.kind(), message: error.to_string(), help: error.help() }
    }
}

/// What to do if a process has no free descriptor. teamd raises its soft limit to the hard one itself.
pub const MORE_DESCRIPTORS_HELP: &str = "raise the hard limit of descriptors, which ulimit -Hn shows, and start \
    the program again; teamd needs three for each member";

impl Error {
    pub(crate) fn io(verb: &'static str, path: &Path, cause: impl Into<io::Error>) -> Error {
        Error::Io { verb, path: path.to_owned(), cause: cause.into() }
    }

    /// Converts the error of a system call. For `map_err`.
    pub(crate) fn from_errno(verb: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
        move |cause| Error::io(verb, path, cause)
    }

    /// Whether a directory could not be removed because there is a file in it.
    pub(crate) fn is_directory_not_empty(&self) -> bool {
        matches!(self, Error::Io { cause, .. } if cause.kind() == io::ErrorKind::DirectoryNotEmpty)
    }

    /// The kind of the error, which decides the exit code.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } | Error::TooLarge { .. } => ErrorKind::Io,
            Error::Untrusted { .. } => ErrorKind::NotPermitted,
            Error::Corrupt { .. } | Error::Malformed { .. } | Error::UnexpectedFileType { .. } => {
                ErrorKind::InvalidData
            }
            Error::Locked { .. } | Error::Contended(_) => ErrorKind::Timeout,
            Error::NoSuchTeam { .. } | Error::NoSuchMember { .. } | Error::NoSuchTask { .. } => {
                ErrorKind::NotFound
            }
            Error::NoTaskAvailable(_) => ErrorKind::NotFound,
            Error::AlreadyExists { .. } | Error::TaskClaimed { .. } | Error::AlreadyInProgress { .. } => {
                ErrorKind::AlreadyExists
            }
            Error::ReadOnly(_) => ErrorKind::NotPermitted,
            Error::InvalidName(_) | Error::NoSuchBatchIndex { .. } | Error::TextTooLong(_) => {
                ErrorKind::Usage
            }
            Error::TaskBlocked { .. } | Error::DependencyCycle { .. } | Error::BatchCycle { .. } => {
                ErrorKind::Refused
            }
            Error::InvalidTransition { .. } => ErrorKind::Refused,
            Error::UnknownFiles { .. } | Error::UnsupportedAnswer { .. } | Error::AskerSuspended { .. } => {
                ErrorKind::Refused
            }
            Error::NoSuchRequest { .. } | Error::AskerGone { .. } | Error::Withdrawn { .. } => {
                ErrorKind::NotFound
            }
            Error::AlreadyAnswered { .. } => ErrorKind::AlreadyExists,
            Error::AmbiguousRequest { .. } | Error::AnswerNotApplicable { .. } => ErrorKind::Usage,
            Error::OwnerNotNotified { .. } => ErrorKind::Partial,
        }
    }

    /// What to do next. `None` if there is no good suggestion.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::Io { cause, .. } if cause.raw_os_error() == Some(Errno::EMFILE as i32) => {
                Some(MORE_DESCRIPTORS_HELP.to_owned())
            }
            Error::Io { path, cause, .. } => io_help(cause.kind(), path),
            Error::Untrusted { remedy, .. } => Some(remedy.clone()),
            Error::UnexpectedFileType { path, .. } => Some(format!("see: ls -ld {}", path.display())),
            Error::TooLarge { .. } | Error::InvalidName(_) => None,
            Error::TextTooLong(_) => Some(TextTooLong::HELP.to_owned()),
            Error::Corrupt { backup: Some(copy), .. } => {
                Some(format!("a copy is in {}; what is damaged: teamctl doctor", copy.display()))
            }
            Error::Corrupt { backup: None, .. } | Error::Malformed { .. } => {
                Some("repair the file; what is damaged: teamctl doctor".to_owned())
            }
            Error::Locked { path, .. } => Some(format!(
                "look at {}, and remove it if nothing uses it; what the killed have left: teamctl doctor --fix",
                path.display()
            )),
            Error::Contended(_) => Some("try again; who is on the team: teamctl status".to_owned()),
            Error::OwnerNotNotified { cause, .. } => cause.help(),
            team_error => team_error.team_help(),
        }
    }

    fn team_help(&self) -> Option<String> {
        let help = match self {
            Error::NoSuchTeam { nearest, .. } => nearest_help(nearest, "teamctl status"),
            Error::NoSuchMember { is_suspended: true, .. } | Error::AskerSuspended { .. } => {
                "resume it with: teamctl up --resume".to_owned()
            }
            Error::NoSuchMember { nearest, .. } => nearest_help(nearest, "teamctl status"),
            Error::AlreadyExists { what } if what.starts_with("file") => return None,
            Error::AlreadyExists { .. } => "take another name, or let --unique choose one".to_owned(),
            Error::ReadOnly(_) => "make one of your own with: teamctl create NAME".to_owned(),
            Error::UnknownFiles { .. } => "move them away and delete the team again".to_owned(),
            Error::NoSuchTask { .. } => "list them with: teamctl task list".to_owned(),
            Error::TaskClaimed { .. } => "take another: teamctl task list --available".to_owned(),
            Error::AlreadyInProgress { id, .. } => {
                format!("go on with it, or give it back with: teamctl task release {id}")
            }
            Error::NoTaskAvailable(_) => {
                "create one with: teamctl task create SUBJECT; see what the other tasks wait for: teamctl task list"
                    .to_owned()
            }
            Error::TaskBlocked { .. } | Error::DependencyCycle { .. } => {
                "see which task waits for which: teamctl task list".to_owned()
            }
            Error::InvalidTransition { id, .. } => format!("see: teamctl task get {id}"),
            Error::NoSuchRequest { open, .. } if !open.is_empty() => format!("open: {}", open.join(", ")),
            Error::AmbiguousRequest { .. } => {
                "give more of its id; all that wait: teamctl requests".to_owned()
            }
            Error::NoSuchRequest { .. } => {
                "nothing to do; see the requests with: teamctl requests".to_owned()
            }
            Error::AlreadyAnswered { .. }
            | Error::AskerGone { .. }
            | Error::Withdrawn { .. }
            | Error::AnswerNotApplicable { .. } => "what waits for an answer: teamctl requests".to_owned(),
            Error::UnsupportedAnswer { unsupported_answer, .. } => unsupported_answer.help.clone(),
            _ => return None,
        };
        Some(help)
    }
}

/// Help for an error of the system. `None` if there is no good suggestion.
fn io_help(cause: io::ErrorKind, path: &Path) -> Option<String> {
    match cause {
        // A failed write leaves no file, so the help names the parent directory.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some(format!("make room: df -h {}", path.parent().unwrap_or(path).display()))
        }
        io::ErrorKind::PermissionDenied => Some(format!("see whose it is: ls -ld {}", path.display())),
        _ => None,
    }
}

/// Lists the most similar names. If there are none, names the command that lists all.
fn nearest_help(names: &[String], all: &str) -> String {
    match names {
        [] => format!("list them with: {all}"),
        names => format!("did you mean {}?", names.join(" or ")),
    }
}

fn join_ids(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::to_string).collect::<Vec<_>>().join(", ")
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
