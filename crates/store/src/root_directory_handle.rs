//! The root: the directory that holds all teams, usually `~/.claude`. It is opened once, and is
//! trusted only if no other user can write there.

use crate::answer_log::AnswerLog;
use crate::check_no_other_user_can_write::check_own_access;
use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::file_io::{CorruptBackups, IoOptions, TempFile, sync_dir};
use crate::message_journal::journal_and_tail_index_files::Journal;
use crate::private_directory::{check_not_replaceable, check_own_link, create_private_dir};
use crate::remove_stale_files::remove_temp_files;
use crate::state_directory_handle::StateDir;
use crate::state_shared_by_root_handles::SharedRootState;
use crate::team_config_cache::ConfigCaches;
use crate::team_file_names::{CONFIG_FILE, INBOXES_DIR, TASKS_DIR, TEAMS_DIR};
use crate::team_handle::Team;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fstat};
use protocol::did_you_mean::nearest_names;
use protocol::state_file_names::{ANSWERS_DIR, CORRUPT_DIR, JOURNAL_DIR, mirror_marker, team_home};
use protocol::team_and_member_names::TeamName;
use protocol::team_config::TeamConfig;
use protocol::team_home::TeamHome;
use std::fs::{File, TryLockError};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

/// Name of the probe file, by which the daemon tests whether file events arrive.
const PROBE_NAME: &str = "probe";

/// A handle of a root. A clone shares the open directories.
#[derive(Debug, Clone)]
pub struct Root(Arc<SharedRootState>);

impl Root {
    /// Opens the root at `path`. If the root or one of its directories `teams` and `tasks` is
    /// missing, creates it with mode 0700.
    ///
    /// `state_dir` is teamd's state directory for this root, outside the root. It holds the copies
    /// of damaged files, the answer logs and the journal.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if another user owns the root or can write to it, or can replace the
    /// state directory; `Io`.
    pub fn open(path: &Path, state_dir: &Path, durability: Durability) -> Result<Root, Error> {
        check_not_replaceable(state_dir)?;
        check_own_link(path)?;
        create_private_dir(path)?;
        let path = path.canonicalize().map_err(|cause| Error::io("resolve", path, cause))?;
        let dir = DirHandle::open(&path)?;
        dir.check_own_access()?;
        let (teams, tasks) = (dir.create_own_dir(TEAMS_DIR)?, dir.create_own_dir(TASKS_DIR)?);
        let io = IoOptions { durability, backups: CorruptBackups::open(&state_dir.join(CORRUPT_DIR))? };
        let foreign_io = IoOptions { durability, backups: CorruptBackups::new_disabled() };
        let answers = AnswerLog::new(state_dir.join(ANSWERS_DIR));
        let journal = Journal::new(state_dir.join(JOURNAL_DIR));
        Ok(Root(Arc::new(SharedRootState {
            dir,
            teams,
            tasks,
            io,
            foreign_io,
            answer_log: answers,
            journal,
            state_dir: state_dir.to_owned(),
            config_caches: ConfigCaches::default(),
        })))
    }

    /// Whether the paths of the root, `teams` and `tasks` still lead to the directories that this
    /// handle has open. False if one of them was moved, deleted or replaced.
    pub fn is_current(&self) -> bool {
        self.0.is_current()
    }

    /// Whether the root's directories `teams` and `tasks` exist. If they do, [`Root::reopen`]
    /// creates no directory.
    pub fn has_directories(&self) -> bool {
        [TEAMS_DIR, TASKS_DIR].iter().all(|directory| self.path().join(directory).exists())
    }

    /// Opens the root again at the same path, and creates it if it is missing. The new handle uses
    /// the same state directory and the same [`Durability`].
    ///
    /// # Errors
    /// As [`Root::open`].
    pub fn reopen(&self) -> Result<Root, Error> {
        Root::open(self.path(), &self.0.state_dir, self.0.io.durability)
    }

    /// Takes the lock that ensures that only one daemon runs for this root: a flock on the
    /// directory of the teams. Does not wait and writes nothing. The lock is held as long as this
    /// handle or a clone of it exists. Returns false if another handle holds the lock. Only the
    /// daemon calls this.
    ///
    /// # Errors
    /// `Io`.
    pub fn try_lock(&self) -> Result<bool, Error> {
        match self.lock_file()?.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(cause)) => Err(Error::io("lock", self.0.teams.path(), cause)),
        }
    }

    /// Releases the lock of [`Root::try_lock`], so that another handle can take it.
    ///
    /// # Errors
    /// `Io`.
    pub fn unlock(&self) -> Result<(), Error> {
        self.lock_file()?.unlock().map_err(|cause| Error::io("unlock", self.0.teams.path(), cause))
    }

    /// A duplicate of the descriptor of the teams directory. The daemon uses it to take and release
    /// its lock on the root (a flock). Closing the duplicate does not release the flock, which
    /// belongs to the open file description that all duplicates share.
    fn lock_file(&self) -> Result<File, Error> {
        let duplicate = self.0.teams.as_fd().try_clone_to_owned();
        duplicate.map(File::from).map_err(|cause| Error::io("lock", self.0.teams.path(), cause))
    }

    /// The path of the root, without symbolic links.
    pub fn path(&self) -> &Path {
        self.0.dir.path()
    }

    /// Creates and deletes a temporary file `.probe.tmp.…` in the directory of the teams. If the
    /// daemon gets events for this file, it knows that the file system reports changes. Only the
    /// daemon calls this.
    ///
    /// # Errors
    /// `Io`.
    pub fn create_probe(&self) -> Result<(), Error> {
        self.remove_probes()?;
        TempFile::write(&self.0.teams, PROBE_NAME, b"", 0o600, Durability::Process).map(drop)
    }

    /// Deletes the probe files that a killed daemon left in the directory of the teams.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove_probes(&self) -> Result<(), Error> {
        remove_temp_files(&self.0.teams, PROBE_NAME)
    }

    /// The names of all teams, sorted. A team is a directory with a valid name and a `config.json`.
    /// A directory that other users own or can write to is also listed, so that commands report it.
    pub fn teams(&self) -> Result<Vec<TeamName>, Error> {
        let names = self.0.teams.file_names()?;
        let names = names.iter().filter_map(|name| TeamName::parse(name).ok());
        let is_team =
            |name: &TeamName| matches!(self.find_team_dir(name), Ok(Some(_)) | Err(Error::Untrusted { .. }));
        Ok(names.filter(is_team).collect())
    }

    /// The names of directories in `teams` that have no `config.json`, sorted. Either another
    /// program has removed the file, or a crash has interrupted the deletion of the team.
    ///
    /// # Errors
    /// `Io`.
    pub fn teams_without_config(&self) -> Result<Vec<TeamName>, Error> {
        let names = self.0.teams.file_names()?;
        let names = names.iter().filter_map(|name| TeamName::parse(name).ok());
        let has_no_config = |name: &TeamName| matches!(self.open_team_dir(name), Ok(Some(dir)) if matches!(dir.stat(CONFIG_FILE), Ok(None)));
        Ok(names.filter(has_no_config).collect())
    }

    /// The team of this name.
    ///
    /// # Errors
    /// `NoSuchTeam` with the most similar names; `Io`.
    pub fn team(&self, name: &TeamName) -> Result<Team, Error> {
        match self.find_team_dir(name)? {
            Some(dir) => Ok(self.new_team(name, dir)),
            None => Err(Error::NoSuchTeam {
                name: name.clone(),
                nearest: nearest_names(name.as_str(), self.teams()?),
            }),
        }
    }

    pub(crate) fn open_team_dir(&self, name: &TeamName) -> Result<Option<DirHandle>, Error> {
        self.0.teams.open_own_dir(name.as_str())
    }

    pub(crate) fn new_team(&self, name: &TeamName, dir: DirHandle) -> Team {
        Team::new(self.0.clone(), name.clone(), dir)
    }

    fn find_team_dir(&self, name: &TeamName) -> Result<Option<DirHandle>, Error> {
        let Some(dir) = self.open_team_dir(name)? else { return Ok(None) };
        Ok(dir.stat(CONFIG_FILE)?.map(|_| dir))
    }

    /// Creates a team with the given config. The config file is created last. If several callers
    /// create the team at the same time, the caller that creates this file succeeds. If a crash
    /// left a team's directory without a config, the team is completed.
    ///
    /// # Errors
    /// `AlreadyExists`, `ReadOnly` for the name of a session team, `InvalidName`, `Io`.
    pub fn create_team(&self, config: &TeamConfig) -> Result<Team, Error> {
        let name = TeamName::parse(&config.name)?;
        if name.is_claude_session() {
            return Err(Error::ReadOnly(name));
        }
        let dir = self.0.teams.create_own_dir(name.as_str())?;
        dir.create_own_dir(INBOXES_DIR)?;
        let team = Team::new(self.0.clone(), name, dir);
        team.tasks().create_list()?;
        let (text, durability) = (config.to_text(), self.0.io.durability);
        let config = TempFile::write(team.dir(), CONFIG_FILE, text.as_bytes(), 0o600, durability)?;
        if !config.create(CONFIG_FILE)? {
            return Err(Error::AlreadyExists { what: format!("team {}", team.name()) });
        }
        sync_dir(team.dir(), durability)?;
        sync_dir(&self.0.teams, durability)?;
        // Members of an earlier team with the same name may have used the same request ids, so the
        // old answers are deleted. If that fails, the old answers still do no harm: an answer never
        // counts for a request that was made after it.
        self.delete_records(team.name()).ok();
        Ok(team)
    }

    /// Marks a team as a mirror, which is a copy of a team whose true files are on another host.
    /// The text `mark` identifies the connection to that host and the copied team. Called before
    /// the mirror is created, see [`Team::is_mirror`].
    ///
    /// # Errors
    /// `Untrusted`, `Io`.
    pub fn mark_as_mirror(&self, team: &TeamName, mark: &str) -> Result<(), Error> {
        StateDir::open(&self.0.state_dir)?.replace(&mirror_marker(team), mark.as_bytes())
    }

    /// The text with which the team was marked as a mirror ([`Root::mark_as_mirror`]). `None` if
    /// the team's true files are on this host.
    ///
    /// # Errors
    /// `Untrusted`, `Io`.
    pub fn mirror_mark(&self, team: &TeamName) -> Result<Option<String>, Error> {
        let mark = StateDir::open(&self.0.state_dir)?.read(&mirror_marker(team))?;
        Ok(mark.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Removes the mark that [`Root::mark_as_mirror`] has made, after the mirror was deleted.
    ///
    /// # Errors
    /// `Untrusted`, `Io`.
    pub fn unmark_mirror(&self, team: &TeamName) -> Result<(), Error> {
        StateDir::open(&self.0.state_dir)?.remove(&mirror_marker(team))
    }

    /// Which machine is the team's home.
    ///
    /// # Errors
    /// `Untrusted`, `Malformed`, `Io`.
    pub fn team_home(&self, team: &TeamName) -> Result<TeamHome, Error> {
        read_team_home(&self.0.state_dir, team)
    }

    /// Records which machine is the team's home.
    ///
    /// # Errors
    /// `Untrusted`, `Io`.
    pub fn set_team_home(&self, team: &TeamName, home: &TeamHome) -> Result<(), Error> {
        let json = serde_json::to_vec(home).expect("a home has only numbers and a name");
        StateDir::open(&self.0.state_dir)?.replace(&team_home(team), &json)
    }

    /// Deletes a team's answer log, its journal and the record of its home. Callers do this when
    /// they create or delete a team.
    ///
    /// # Errors
    /// `Io`.
    pub fn delete_records(&self, team: &TeamName) -> Result<(), Error> {
        let home = StateDir::open(&self.0.state_dir)?.remove(&team_home(team));
        home.and(self.0.delete_records(team))
    }

    /// Deletes the answer logs of session teams that no longer exist. `existing` has the teams
    /// whose logs are kept.
    ///
    /// # Errors
    /// `Io`.
    pub fn delete_session_records(&self, existing: &[TeamName]) -> Result<(), Error> {
        self.0.answer_log.delete_ended_sessions(existing)
    }
}

pub(crate) fn read_team_home(state_dir: &Path, team: &TeamName) -> Result<TeamHome, Error> {
    let (dir, name) = (StateDir::open(state_dir)?, team_home(team));
    let Some(bytes) = dir.read(&name)? else { return Ok(TeamHome::default()) };
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::Malformed { path: state_dir.join(name), reason: error.to_string() })
}

/// Checks the owner and the permissions of the root at `path`, if it exists.
///
/// # Errors
/// [`Error::Untrusted`], or `Io`.
pub fn check_root_trusted(path: &Path) -> Result<(), Error> {
    if !path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    check_own_link(path)?;
    DirHandle::open(path)?.check_own_access()
}

/// Checks that the current user owns the file or directory at `path`, and that no other user can
/// write to it. A missing path, a symbolic link and a socket pass the check.
///
/// # Errors
/// [`Error::Untrusted`], or `Io`.
pub fn check_own_path(path: &Path) -> Result<(), Error> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match nix::fcntl::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::ENOENT | Errno::ELOOP | Errno::ENXIO) => return Ok(()),
        Err(errno) => return Err(Error::io("open", path, errno)),
    };
    let stat = fstat(&file).map_err(Error::from_errno("look at", path))?;
    check_own_access(&file, &stat, path)
}

/// Whether the root at `path` has a directory for teams. Also true if the check fails;
/// [`Root::open`] then returns the error.
pub fn has_teams_directory(path: &Path) -> bool {
    path.join(TEAMS_DIR).try_exists().unwrap_or(true)
}

impl Team {
    /// Opens the team again by its name. The team may have been deleted and created again. `None`
    /// if there is no team of this name now. Creates nothing.
    ///
    /// # Errors
    /// As [`Root::open`] and [`Root::team`].
    pub fn reopen(&self) -> Result<Option<Team>, Error> {
        let root = Root(self.root_handles().clone());
        if !root.has_directories() {
            return Ok(None);
        }
        let root = if root.is_current() { root } else { root.reopen()? };
        match root.team(self.name()) {
            Ok(team) => Ok(Some(team)),
            Err(Error::NoSuchTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
