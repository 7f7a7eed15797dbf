//! What can go wrong with the files, in words for people: what could not be done, why, and what to do next.

use nix::errno::Errno;
use protocol::capabilities::UnsupportedAnswer;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use std::io;
use std::path::{Path, PathBuf};

/// The failures of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system said no.
    #[error("cannot {verb} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Somebody else could change what is in this directory.
    #[error("cannot trust {}: {reason}", path.display())]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Who else can write there.
        reason: &'static str,
        /// The command that mends it.
        remedy: String,
    },
    /// A link, pipe, directory or device where a file should be, or a file that is not ours alone.
    #[error("cannot use {}: it is {what}", path.display())]
    UnexpectedFileType {
        /// Where.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// Larger than we read or write.
    #[error("cannot take {}: it would be {size} bytes, and {limit} is the limit", path.display())]
    TooLarge {
        /// Of what.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The most we take, in bytes.
        limit: u64,
    },
    /// Does not parse, also after a while.
    #[error("cannot parse {}: {reason}", path.display())]
    Corrupt {
        /// The file, which is left as it is.
        path: PathBuf,
        /// Where and how.
        reason: String,
        /// A copy of it; none where there are enough already.
        backup: Option<PathBuf>,
    },
    /// Parses, but a known field is of an unexpected type.
    #[error("cannot understand {}: {reason}", path.display())]
    Malformed {
        /// The file, which is left as it is.
        path: PathBuf,
        /// Which field, and its value.
        reason: String,
    },
    /// Somebody held the lock all the time, or what is there is no lock of the usual kind.
    #[error("cannot lock {}: {reason}", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// What stands in the way.
        reason: String,
    },
    /// Others changed the file each time before our change was in.
    #[error("cannot change {}: other programs keep changing it", .0.display())]
    Contended(PathBuf),
    /// No such team.
    #[error("cannot find team {name}")]
    NoSuchTeam {
        /// The name asked for.
        name: TeamName,
        /// Those most like it.
        nearest: Vec<String>,
    },
    /// No such member.
    #[error("cannot find {name:?} in team {team}{}", if *is_suspended { ": it rests" } else { "" })]
    NoSuchMember {
        /// The name asked for.
        name: String,
        /// Where.
        team: TeamName,
        /// Those most like it.
        nearest: Vec<String>,
        /// It is none at present, and can be brought back.
        is_suspended: bool,
    },
    /// No such task.
    #[error("cannot find task {id} in team {team}")]
    NoSuchTask {
        /// The id asked for.
        id: TaskId,
        /// Where.
        team: TeamName,
    },
    /// The name is taken.
    #[error("cannot create {what}: it exists already")]
    AlreadyExists {
        /// `team X` or `member X`.
        what: String,
    },
    /// The team belongs to Claude Code.
    #[error("cannot change team {0}: it belongs to a session of Claude Code")]
    ReadOnly(TeamName),
    /// A config whose name can't be a team's.
    #[error(transparent)]
    InvalidName(#[from] protocol::name::NameError),
    /// Somebody has the task.
    #[error("cannot claim task {id}: {owner} has it")]
    TaskClaimed {
        /// Which.
        id: TaskId,
        /// Who.
        owner: AgentName,
    },
    /// Whoever wants the task has it and works on it.
    #[error("cannot claim task {id}: {owner} has it already, and it is in progress")]
    AlreadyInProgress {
        /// Which.
        id: TaskId,
        /// Who.
        owner: AgentName,
    },
    /// The task waits for others.
    #[error("cannot start task {id}: it waits for {}", join_ids(blockers))]
    TaskBlocked {
        /// Which.
        id: TaskId,
        /// What is not over yet.
        blockers: Vec<TaskId>,
    },
    /// No task that could be taken.
    #[error("cannot claim a task: none is available in team {0}")]
    NoTaskAvailable(TeamName),
    /// The link would close a circle.
    #[error("cannot link the tasks: {} would wait for itself", join_ids(path))]
    DependencyCycle {
        /// The circle; the first is the last.
        path: Vec<TaskId>,
    },
    /// Planned tasks would wait for each other in a circle.
    #[error("cannot create the tasks: {} is a circle", path.join(" → "))]
    BatchCycle {
        /// The circle: each is waited for by the next, and the first is the last. New ones by their
        /// subject, others by their id.
        path: Vec<String>,
    },
    /// A planned task that waits for one that is not among the planned.
    #[error("cannot create the tasks: {subject:?} waits for number {index} of {count}, counted from 0")]
    NoSuchBatchIndex {
        /// Whose plan it is.
        subject: String,
        /// The index it names.
        index: usize,
        /// How many are planned.
        count: usize,
    },
    /// The task's status does not allow it.
    #[error("cannot set task {id} to {to}: it is {from}")]
    InvalidTransition {
        /// Which.
        id: TaskId,
        /// Its status.
        from: String,
        /// The status asked for.
        to: String,
    },
    /// The task has its owner, but the owner was not told.
    #[error("task {id} has its owner, but cannot tell {owner}: {cause}")]
    OwnerNotNotified {
        /// Which.
        id: TaskId,
        /// Who.
        owner: AgentName,
        /// Why not.
        #[source]
        cause: Box<Error>,
    },
    /// No request of that id, or of several ids that begin so.
    #[error("cannot answer {id}: {}", if open.is_empty() { "no request is open" } else { "there is no such request" })]
    NoSuchRequest {
        /// The id asked for.
        id: String,
        /// Those that wait for an answer.
        open: Vec<String>,
    },
    /// More than one request begins so, or two members have asked under one id.
    #[error("cannot answer {id}: it could be {}", candidates.join(", "))]
    AmbiguousRequest {
        /// The id asked for.
        id: String,
        /// What it could be.
        candidates: Vec<String>,
    },
    /// The request has its answer.
    #[error("cannot answer {id}: it was answered with a {} already", if *approved { "yes" } else { "no" })]
    AlreadyAnswered {
        /// Which.
        id: String,
        /// What the answer was.
        approved: bool,
    },
    /// Whoever asked is not there any more.
    #[error("cannot answer {id}: {from} has ended, and so has its request")]
    AskerGone {
        /// Which.
        id: String,
        /// Who asked.
        from: AgentName,
    },
    /// Its asker waits for it no longer.
    #[error("cannot answer {id}: {from} has taken it back, since the turn that asked is over")]
    Withdrawn {
        /// Which.
        id: String,
        /// Who asked.
        from: AgentName,
    },
    /// The answer does not fit the request.
    #[error("cannot answer {id} like that: {reason}")]
    AnswerNotApplicable {
        /// Which.
        id: String,
        /// What is in the way.
        reason: &'static str,
    },
    /// Whoever asks could not follow the answer.
    #[error("cannot answer {id} like that: {}", unsupported_answer.reason)]
    UnsupportedAnswer {
        /// Which.
        id: String,
        /// Why not, and what can be done.
        unsupported_answer: UnsupportedAnswer,
    },
    /// Files that we do not know are in the team's directories.
    #[error("cannot delete team {team}: not known to us and kept: {}", join_paths(paths))]
    UnknownFiles {
        /// Which.
        team: TeamName,
        /// What is left.
        paths: Vec<PathBuf>,
    },
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> ErrorReport {
        ErrorReport { kind: error.kind(), message: error.to_string(), help: error.help() }
    }
}

impl Error {
    pub(crate) fn io(verb: &'static str, path: &Path, cause: impl Into<io::Error>) -> Error {
        Error::Io { verb, path: path.to_owned(), cause: cause.into() }
    }

    /// For `map_err` behind a system call.
    pub(crate) fn from_errno(verb: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
        move |cause| Error::io(verb, path, cause)
    }

    /// What kind of failure it is; decides the exit code.
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
            Error::InvalidName(_) | Error::NoSuchBatchIndex { .. } => ErrorKind::Usage,
            Error::TaskBlocked { .. } | Error::DependencyCycle { .. } | Error::BatchCycle { .. } => {
                ErrorKind::Refused
            }
            Error::InvalidTransition { .. } => ErrorKind::Refused,
            Error::UnknownFiles { .. } | Error::UnsupportedAnswer { .. } => ErrorKind::Refused,
            Error::NoSuchRequest { .. } | Error::AskerGone { .. } | Error::Withdrawn { .. } => {
                ErrorKind::NotFound
            }
            Error::AlreadyAnswered { .. } => ErrorKind::AlreadyExists,
            Error::AmbiguousRequest { .. } | Error::AnswerNotApplicable { .. } => ErrorKind::Usage,
            Error::OwnerNotNotified { .. } => ErrorKind::Partial,
        }
    }

    /// The next step, where there is one to name.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::Io { path, cause, .. } => io_help(cause.kind(), path),
            Error::Untrusted { remedy, .. } => Some(remedy.clone()),
            Error::UnexpectedFileType { path, .. } => {
                Some(format!("see what is there: ls -ld {}", path.display()))
            }
            Error::TooLarge { .. } | Error::InvalidName(_) => None,
            Error::Corrupt { backup: Some(copy), .. } => {
                Some(format!("a copy is in {}; what is damaged: teamctl doctor", copy.display()))
            }
            Error::Corrupt { backup: None, .. } | Error::Malformed { .. } => {
                Some("mend the file; what is damaged: teamctl doctor".to_owned())
            }
            Error::Locked { path, .. } => Some(format!(
                "look at {}, and remove it if nothing uses it; what the killed have left: teamctl doctor --fix",
                path.display()
            )),
            Error::Contended(_) => Some("try again; who is on the team: teamctl status".to_owned()),
            Error::OwnerNotNotified { cause, .. } => cause.help(),
            about_a_team => about_a_team.team_help(),
        }
    }

    fn team_help(&self) -> Option<String> {
        let hint = match self {
            Error::NoSuchTeam { nearest, .. } => nearest_help(nearest, "teamctl status"),
            Error::NoSuchMember { is_suspended: true, .. } => {
                "bring it back with: teamctl up --resume".to_owned()
            }
            Error::NoSuchMember { nearest, .. } => nearest_help(nearest, "teamctl status"),
            Error::AlreadyExists { what } if what.starts_with("file") => return None,
            Error::AlreadyExists { .. } => "take another name, or let --unique choose one".to_owned(),
            Error::ReadOnly(_) => "make one of your own with: teamctl create NAME".to_owned(),
            Error::UnknownFiles { .. } => "move them away and delete the team again".to_owned(),
            Error::NoSuchTask { .. } => "those there are: teamctl task list".to_owned(),
            Error::TaskClaimed { .. } => "take another: teamctl task list --available".to_owned(),
            Error::AlreadyInProgress { id, .. } => {
                format!("go on with it, or give it back with: teamctl task release {id}")
            }
            Error::TaskBlocked { .. } | Error::NoTaskAvailable(_) | Error::DependencyCycle { .. } => {
                "what waits for what: teamctl task list".to_owned()
            }
            Error::InvalidTransition { id, .. } => format!("how it stands: teamctl task get {id}"),
            Error::NoSuchRequest { open, .. } if !open.is_empty() => format!("open: {}", open.join(", ")),
            Error::AmbiguousRequest { .. } => {
                "give more of its id; all that wait: teamctl requests".to_owned()
            }
            Error::NoSuchRequest { .. }
            | Error::AlreadyAnswered { .. }
            | Error::AskerGone { .. }
            | Error::Withdrawn { .. }
            | Error::AnswerNotApplicable { .. } => "what waits for an answer: teamctl requests".to_owned(),
            Error::UnsupportedAnswer { unsupported_answer: beyond, .. } => beyond.help.clone(),
            _ => return None,
        };
        Some(hint)
    }
}

/// What may be seen, or done, about an answer of the kernel's.
fn io_help(cause: io::ErrorKind, path: &Path) -> Option<String> {
    match cause {
        // What could not be written is gone again: its directory is there.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some(format!("make room: df -h {}", path.parent().unwrap_or(path).display()))
        }
        io::ErrorKind::PermissionDenied => Some(format!("see whose it is: ls -ld {}", path.display())),
        _ => None,
    }
}

/// Those most like it, else where all are to be seen.
fn nearest_help(names: &[String], all: &str) -> String {
    match names {
        [] => format!("those there are: {all}"),
        names => format!("there is: {}", names.join(", ")),
    }
}

fn join_ids(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::to_string).collect::<Vec<_>>().join(", ")
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
