//! The directory that holds all teams, opened once and trusted only if nobody else can write there.

use crate::answer_log::AnswerLog;
use crate::dir_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::file::{CorruptBackups, IoContext, TempFile, sync_dir};
use crate::journal::storage::Journal;
use crate::layout::{CONFIG_FILE, INBOXES_DIR, TASKS_DIR, TEAMS_DIR};
use crate::private_dir::{check_trusted, create_private_dir};
use crate::root_handles::RootHandles;
use crate::stale_files::remove_temp_files;
use crate::team::Team;
use protocol::did_you_mean::nearest_names;
use protocol::name::TeamName;
use protocol::team_config::TeamConfig;
use std::fs::{File, TryLockError};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

/// Directories in the state directory: copies of files that do not parse, answered requests, the journal.
const BACKUPS_DIR: &str = "aside";
const ANSWERS_DIR: &str = "answers";
const JOURNAL_DIR: &str = "journal";

/// What a daemon writes to learn whether anybody tells it.
const PROBE_NAME: &str = "probe";

/// A root with its teams; a copy is another handle on the same.
#[derive(Debug, Clone)]
pub struct Root(Arc<RootHandles>);

impl Root {
    /// Opens the root at `path`, and makes it (0700) with its two directories if it is missing.
    ///
    /// `state_dir` is the root's state directory, outside of it: copies of files that do not parse, the answered requests
    /// and the journal are in directories there. A root of another user, or one that everybody may write to, is
    /// [`Error::Untrusted`].
    pub fn open(path: &Path, state_dir: &Path, durability: Durability) -> Result<Root, Error> {
        create_private_dir(path)?;
        let path = path.canonicalize().map_err(|cause| Error::io("resolve", path, cause))?;
        let dir = DirHandle::open(&path)?;
        check_trusted(&dir, 0o002, "chmod o-w")?;
        let (teams, tasks) = (dir.create_dir(TEAMS_DIR)?, dir.create_dir(TASKS_DIR)?);
        check_trusted(&teams, 0o002, "chmod o-w")?;
        check_trusted(&tasks, 0o002, "chmod o-w")?;
        let way = IoContext { durability, backups: CorruptBackups::open(&state_dir.join(BACKUPS_DIR))? };
        let foreign = IoContext { durability, backups: CorruptBackups::new_disabled() };
        let answers = AnswerLog::new(state_dir.join(ANSWERS_DIR));
        let journal = Journal::new(state_dir.join(JOURNAL_DIR));
        Ok(Root(Arc::new(RootHandles {
            dir,
            teams,
            tasks,
            io: way,
            foreign_io: foreign,
            answer_log: answers,
            journal,
            state_dir: state_dir.to_owned(),
        })))
    }

    /// Whether its path still leads to the directories that this handle holds: not where one of them was removed or
    /// moved, and not where others lie in their place.
    pub fn is_current(&self) -> bool {
        self.0.is_current()
    }

    /// Whether there is anything at its path that `Root::anew` would not have to make.
    pub fn has_directories(&self) -> bool {
        [TEAMS_DIR, TASKS_DIR].iter().all(|directory| self.path().join(directory).exists())
    }

    /// The one that is at its path now, made if it is missing: [`Root::open`], with the same places and durability.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn reopen(&self) -> Result<Root, Error> {
        Root::open(self.path(), &self.0.state_dir, self.0.io.durability)
    }

    /// Takes the kernel's lock on the directory of its teams, for as long as this handle or a copy is kept. Nothing is
    /// written for it. False where another handle has it. For the daemon alone.
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

    /// Lets go of that lock: another handle on the same directory can have it.
    ///
    /// # Errors
    /// `Io`.
    pub fn unlock(&self) -> Result<(), Error> {
        self.lock_file()?.unlock().map_err(|cause| Error::io("unlock", self.0.teams.path(), cause))
    }

    /// A lock is of what was opened, and goes with the last of its descriptors.
    fn lock_file(&self) -> Result<File, Error> {
        let copy = self.0.teams.as_fd().try_clone_to_owned();
        copy.map(File::from).map_err(|cause| Error::io("lock", self.0.teams.path(), cause))
    }

    /// Where it is, without links in the path.
    pub fn path(&self) -> &Path {
        self.0.dir.path()
    }

    /// Makes and removes a temporary file named `.probe.tmp.…` among the teams: whoever watches that directory
    /// learns whether changes are told on this file system. For the daemon alone.
    ///
    /// # Errors
    /// `Io`.
    pub fn create_probe(&self) -> Result<(), Error> {
        self.remove_probes()?;
        TempFile::write(&self.0.teams, PROBE_NAME, b"", 0o600, Durability::Process).map(drop)
    }

    /// What a daemon left that was killed in the middle of that, or could not remove it.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove_probes(&self) -> Result<(), Error> {
        remove_temp_files(&self.0.teams, PROBE_NAME)
    }

    /// All teams by name: the directories that hold a config.json and have a name for a team.
    pub fn teams(&self) -> Result<Vec<TeamName>, Error> {
        let names = self.0.teams.file_names()?;
        let names = names.iter().filter_map(|name| TeamName::parse(name).ok());
        Ok(names.filter(|name| matches!(self.find_team_dir(name), Ok(Some(_)))).collect())
    }

    /// The team of that name.
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
        self.0.teams.open_dir(name.as_str())
    }

    pub(crate) fn new_team(&self, name: &TeamName, dir: DirHandle) -> Team {
        Team::new(self.0.clone(), name.clone(), dir)
    }

    fn find_team_dir(&self, name: &TeamName) -> Result<Option<DirHandle>, Error> {
        let Some(dir) = self.open_team_dir(name)? else { return Ok(None) };
        Ok(dir.stat(CONFIG_FILE)?.map(|_| dir))
    }

    /// Makes a team of `config`, whose name must be one. The config comes last and decides: of several
    /// callers one makes the team, and what a crash left without a config is completed.
    pub fn create_team(&self, config: &TeamConfig) -> Result<Team, Error> {
        let name = TeamName::parse(&config.name)?;
        if name.is_claude_session() {
            return Err(Error::ReadOnly(name));
        }
        let dir = self.0.teams.create_dir(name.as_str())?;
        dir.create_dir(INBOXES_DIR)?;
        let team = Team::new(self.0.clone(), name, dir);
        team.tasks().create_list()?;
        let (text, durability) = (config.to_text(), self.0.io.durability);
        let config = TempFile::write(team.dir(), CONFIG_FILE, text.as_bytes(), 0o600, durability)?;
        if !config.create(CONFIG_FILE)? {
            return Err(Error::AlreadyExists { what: format!("team {}", team.name()) });
        }
        sync_dir(team.dir(), durability)?;
        sync_dir(&self.0.teams, durability)?;
        // An earlier team of that name may have asked under the same ids; a record that stays is older than what is asked.
        self.delete_records(team.name()).ok();
        Ok(team)
    }

    /// Forgets what was answered, and what was sent, on a team that is gone or begins.
    ///
    /// # Errors
    /// `Io`.
    pub fn delete_records(&self, team: &TeamName) -> Result<(), Error> {
        self.0.delete_records(team)
    }

    /// Forgets what sessions were answered that are not `there` any more.
    ///
    /// # Errors
    /// `Io`.
    pub fn delete_session_records(&self, there: &[TeamName]) -> Result<(), Error> {
        self.0.answer_log.delete_ended_sessions(there)
    }
}

impl Team {
    /// The team of that name that is at its place now; none where there is none. Nothing is made.
    ///
    /// # Errors
    /// Those of opening a root and a team.
    pub fn anew(&self) -> Result<Option<Team>, Error> {
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
