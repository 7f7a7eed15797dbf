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
    #[error("cannot trust {}: {why}", path.display())]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Who else can write there.
        why: &'static str,
        /// The command that mends it.
        remedy: String,
    },
    /// A link, pipe, directory or device where a file should be, or a file that is not ours alone.
    #[error("cannot use {}: it is {what}", path.display())]
    Odd {
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
    #[error("cannot parse {}: {why}", path.display())]
    Corrupt {
        /// The file, which is left as it is.
        path: PathBuf,
        /// Where and how.
        why: String,
        /// A copy of it; none where there are enough already.
        copy: Option<PathBuf>,
    },
    /// Parses, but a known field is of an unexpected type.
    #[error("cannot understand {}: {why}", path.display())]
    Malformed {
        /// The file, which is left as it is.
        path: PathBuf,
        /// Which field, and its value.
        why: String,
    },
    /// Somebody held the lock all the time, or what is there is no lock of the usual kind.
    #[error("cannot lock {}: {why}", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// What stands in the way.
        why: String,
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
    #[error("cannot find {name:?} in team {team}{}", if *rests { ": it rests" } else { "" })]
    NoSuchMember {
        /// The name asked for.
        name: String,
        /// Where.
        team: TeamName,
        /// Those most like it.
        nearest: Vec<String>,
        /// It is none at present, and can be brought back.
        rests: bool,
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
    Exists {
        /// `team X` or `member X`.
        what: String,
    },
    /// The team belongs to Claude Code.
    #[error("cannot change team {0}: it belongs to a session of Claude Code")]
    ReadOnly(TeamName),
    /// A config whose name can't be a team's.
    #[error(transparent)]
    Name(#[from] protocol::name::NameError),
    /// Somebody has the task.
    #[error("cannot claim task {id}: {owner} has it")]
    Claimed {
        /// Which.
        id: TaskId,
        /// Who.
        owner: AgentName,
    },
    /// Whoever wants the task has it and works on it.
    #[error("cannot claim task {id}: {owner} has it already, and it is in progress")]
    AlreadyTheirs {
        /// Which.
        id: TaskId,
        /// Who.
        owner: AgentName,
    },
    /// The task waits for others.
    #[error("cannot start task {id}: it waits for {}", listed(blockers))]
    Blocked {
        /// Which.
        id: TaskId,
        /// What is not over yet.
        blockers: Vec<TaskId>,
    },
    /// No task that could be taken.
    #[error("cannot claim a task: none is available in team {0}")]
    NothingAvailable(TeamName),
    /// The link would close a circle.
    #[error("cannot link the tasks: {} would wait for itself", listed(way))]
    Cycle {
        /// The circle; the first is the last.
        way: Vec<TaskId>,
    },
    /// Planned tasks would wait for each other in a circle.
    #[error("cannot create the tasks: {} is a circle", way.join(" → "))]
    PlannedCycle {
        /// The circle: each is waited for by the next, and the first is the last. New ones by their
        /// subject, others by their id.
        way: Vec<String>,
    },
    /// A planned task that waits for one that is not among the planned.
    #[error("cannot create the tasks: {subject:?} waits for number {after} of {count}, counted from 0")]
    NoSuchPlanned {
        /// Whose plan it is.
        subject: String,
        /// The index it names.
        after: usize,
        /// How many are planned.
        count: usize,
    },
    /// The task's status does not allow it.
    #[error("cannot set task {id} to {to}: it is {from}")]
    Transition {
        /// Which.
        id: TaskId,
        /// Its status.
        from: String,
        /// The status asked for.
        to: String,
    },
    /// The task has its owner, but the owner was not told.
    #[error("task {id} has its owner, but cannot tell {owner}: {cause}")]
    Untold {
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
    #[error("cannot answer {id}: it could be {}", several.join(", "))]
    ManyRequests {
        /// The id asked for.
        id: String,
        /// What it could be.
        several: Vec<String>,
    },
    /// The request has its answer.
    #[error("cannot answer {id}: it was answered with a {} already", if *approved { "yes" } else { "no" })]
    Answered {
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
    TakenBack {
        /// Which.
        id: String,
        /// Who asked.
        from: AgentName,
    },
    /// The answer does not fit the request.
    #[error("cannot answer {id} like that: {why}")]
    Unfit {
        /// Which.
        id: String,
        /// What is in the way.
        why: &'static str,
    },
    /// Whoever asks could not follow the answer.
    #[error("cannot answer {id} like that: {}", beyond.reason)]
    Beyond {
        /// Which.
        id: String,
        /// Why not, and what can be done.
        beyond: UnsupportedAnswer,
    },
    /// Files that we do not know are in the team's directories.
    #[error("cannot delete team {team}: not known to us and kept: {}", paths(leftovers))]
    Leftovers {
        /// Which.
        team: TeamName,
        /// What is left.
        leftovers: Vec<PathBuf>,
    },
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> ErrorReport {
        ErrorReport { kind: error.kind(), message: error.to_string(), help: error.hint() }
    }
}

impl Error {
    pub(crate) fn io(verb: &'static str, path: &Path, cause: impl Into<io::Error>) -> Error {
        Error::Io { verb, path: path.to_owned(), cause: cause.into() }
    }

    /// For `map_err` behind a system call.
    pub(crate) fn at(verb: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
        move |cause| Error::io(verb, path, cause)
    }

    /// What kind of failure it is; decides the exit code.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } | Error::TooLarge { .. } => ErrorKind::Io,
            Error::Untrusted { .. } => ErrorKind::NotPermitted,
            Error::Corrupt { .. } | Error::Malformed { .. } | Error::Odd { .. } => ErrorKind::InvalidData,
            Error::Locked { .. } | Error::Contended(_) => ErrorKind::Timeout,
            Error::NoSuchTeam { .. } | Error::NoSuchMember { .. } | Error::NoSuchTask { .. } => {
                ErrorKind::NotFound
            }
            Error::NothingAvailable(_) => ErrorKind::NotFound,
            Error::Exists { .. } | Error::Claimed { .. } | Error::AlreadyTheirs { .. } => {
                ErrorKind::AlreadyExists
            }
            Error::ReadOnly(_) => ErrorKind::NotPermitted,
            Error::Name(_) | Error::NoSuchPlanned { .. } => ErrorKind::Usage,
            Error::Blocked { .. } | Error::Cycle { .. } | Error::PlannedCycle { .. } => ErrorKind::Refused,
            Error::Transition { .. } => ErrorKind::Refused,
            Error::Leftovers { .. } | Error::Beyond { .. } => ErrorKind::Refused,
            Error::NoSuchRequest { .. } | Error::AskerGone { .. } | Error::TakenBack { .. } => {
                ErrorKind::NotFound
            }
            Error::Answered { .. } => ErrorKind::AlreadyExists,
            Error::ManyRequests { .. } | Error::Unfit { .. } => ErrorKind::Usage,
            Error::Untold { .. } => ErrorKind::Partial,
        }
    }

    /// The next step, where there is one to name.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Io { path, cause, .. } => of_the_system(cause.kind(), path),
            Error::Untrusted { remedy, .. } => Some(remedy.clone()),
            Error::Odd { path, .. } => Some(format!("see what is there: ls -ld {}", path.display())),
            Error::TooLarge { .. } | Error::Name(_) => None,
            Error::Corrupt { copy: Some(copy), .. } => {
                Some(format!("a copy is in {}; what is damaged: teamctl doctor", copy.display()))
            }
            Error::Corrupt { copy: None, .. } | Error::Malformed { .. } => {
                Some("mend the file; what is damaged: teamctl doctor".to_owned())
            }
            Error::Locked { path, .. } => Some(format!(
                "look at {}, and remove it if nothing uses it; what the killed have left: teamctl doctor --fix",
                path.display()
            )),
            Error::Contended(_) => Some("try again; who is on the team: teamctl status".to_owned()),
            Error::Untold { cause, .. } => cause.hint(),
            about_a_team => about_a_team.hint_of_a_team(),
        }
    }

    fn hint_of_a_team(&self) -> Option<String> {
        let hint = match self {
            Error::NoSuchTeam { nearest, .. } => near(nearest, "teamctl status"),
            Error::NoSuchMember { rests: true, .. } => "bring it back with: teamctl up --resume".to_owned(),
            Error::NoSuchMember { nearest, .. } => near(nearest, "teamctl status"),
            Error::Exists { what } if what.starts_with("file") => return None,
            Error::Exists { .. } => "take another name, or let --unique choose one".to_owned(),
            Error::ReadOnly(_) => "make one of your own with: teamctl create NAME".to_owned(),
            Error::Leftovers { .. } => "move them away and delete the team again".to_owned(),
            Error::NoSuchTask { .. } => "those there are: teamctl task list".to_owned(),
            Error::Claimed { .. } => "take another: teamctl task list --available".to_owned(),
            Error::AlreadyTheirs { id, .. } => {
                format!("go on with it, or give it back with: teamctl task release {id}")
            }
            Error::Blocked { .. } | Error::NothingAvailable(_) | Error::Cycle { .. } => {
                "what waits for what: teamctl task list".to_owned()
            }
            Error::Transition { id, .. } => format!("how it stands: teamctl task get {id}"),
            Error::NoSuchRequest { open, .. } if !open.is_empty() => format!("open: {}", open.join(", ")),
            Error::ManyRequests { .. } => "give more of its id; all that wait: teamctl requests".to_owned(),
            Error::NoSuchRequest { .. }
            | Error::Answered { .. }
            | Error::AskerGone { .. }
            | Error::TakenBack { .. }
            | Error::Unfit { .. } => "what waits for an answer: teamctl requests".to_owned(),
            Error::Beyond { beyond, .. } => beyond.help.clone(),
            _ => return None,
        };
        Some(hint)
    }
}

/// What may be seen, or done, about an answer of the kernel's.
fn of_the_system(cause: io::ErrorKind, path: &Path) -> Option<String> {
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
fn near(names: &[String], all: &str) -> String {
    match names {
        [] => format!("those there are: {all}"),
        names => format!("there is: {}", names.join(", ")),
    }
}

fn listed(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::to_string).collect::<Vec<_>>().join(", ")
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
