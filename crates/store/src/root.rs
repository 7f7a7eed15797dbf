//! The directory that holds all teams, opened once and trusted only if nobody else can write there.

use crate::answers::Answers;
use crate::aside::Aside;
use crate::directory::Directory;
use crate::durability::Durability;
use crate::error::Error;
use crate::file::{Temporary, Way, settle};
use crate::journal::Journal;
use crate::leftover::remove_halves;
use crate::state::{made, trusted};
use crate::team::{CONFIG, INBOXES, Team};
use protocol::name::{TeamName, nearest_names};
use protocol::team_config::TeamConfig;
use std::fs::{File, TryLockError};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TEAMS: &str = "teams";
const TASKS: &str = "tasks";

/// What a daemon writes to learn whether anybody tells it.
const PROBE: &str = "probe";

/// A root with its teams; a copy is another handle on the same.
#[derive(Debug, Clone)]
pub struct Root(Arc<Opened>);

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) dir: Directory,
    pub(crate) teams: Directory,
    pub(crate) tasks: Directory,
    pub(crate) way: Way,
    /// Into the teams of Claude Code's sessions.
    pub(crate) foreign: Way,
    /// To what members ask.
    pub(crate) answers: Answers,
    /// Of what was sent.
    pub(crate) journal: Journal,
    aside: PathBuf,
}

impl Opened {
    pub(crate) fn is_current(&self) -> bool {
        self.dir.is_at_its_path()
            && self.dir.still_has(TEAMS, &self.teams)
            && self.dir.still_has(TASKS, &self.tasks)
    }

    pub(crate) fn forget(&self, team: &TeamName) -> Result<(), Error> {
        self.answers.forget(team).and(self.journal.forget(team))
    }
}

impl Root {
    /// Opens the root at `path`, and makes it (0700) with its two directories if it is missing.
    ///
    /// Copies of files that do not parse go to `aside`, which lies outside of it; which requests were answered, and
    /// what was sent, is noted in the directories `answers` and `journal` beside that. A root of another user, or
    /// one that everybody may write to, is [`Error::Untrusted`].
    pub fn open(path: &Path, aside: &Path, durability: Durability) -> Result<Root, Error> {
        made(path)?;
        let path = path.canonicalize().map_err(|cause| Error::io("resolve", path, cause))?;
        let dir = Directory::open(&path)?;
        trusted(&dir, 0o002, "chmod o-w")?;
        let (teams, tasks) = (dir.sub_made(TEAMS)?, dir.sub_made(TASKS)?);
        trusted(&teams, 0o002, "chmod o-w")?;
        trusted(&tasks, 0o002, "chmod o-w")?;
        let way = Way { durability, aside: Aside::open(aside)? };
        let foreign = Way { durability, aside: Aside::nowhere() };
        let (answers, journal) = (Answers::beside(aside), Journal::beside(aside));
        let aside = aside.to_owned();
        Ok(Root(Arc::new(Opened { dir, teams, tasks, way, foreign, answers, journal, aside })))
    }

    /// Whether its path still leads to the directories that this handle holds: not where one of them was removed or
    /// moved, and not where others lie in their place.
    pub fn is_current(&self) -> bool {
        self.0.is_current()
    }

    /// Whether there is anything at its path that [`Root::anew`] would not have to make.
    pub fn is_there(&self) -> bool {
        [TEAMS, TASKS].iter().all(|directory| self.path().join(directory).exists())
    }

    /// The one that is at its path now, made if it is missing: [`Root::open`], with the same places and durability.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn anew(&self) -> Result<Root, Error> {
        Root::open(self.path(), &self.0.aside, self.0.way.durability)
    }

    /// The root of a team's handle.
    pub(crate) fn of(opened: &Arc<Opened>) -> Root {
        Root(opened.clone())
    }

    /// Takes the kernel's lock on the directory of its teams, for as long as this handle or a copy is kept. Nothing is
    /// written for it. False where another handle has it. For the daemon alone.
    ///
    /// # Errors
    /// `Io`.
    pub fn hold(&self) -> Result<bool, Error> {
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
    pub fn release(&self) -> Result<(), Error> {
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
    pub fn probe(&self) -> Result<(), Error> {
        self.remove_probes()?;
        Temporary::write(&self.0.teams, PROBE, b"", 0o600, Durability::Process).map(drop)
    }

    /// What a daemon left that was killed in the middle of that, or could not remove it.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove_probes(&self) -> Result<(), Error> {
        remove_halves(&self.0.teams, PROBE)
    }

    /// All teams by name: the directories that hold a config.json and have a name for a team.
    pub fn teams(&self) -> Result<Vec<TeamName>, Error> {
        let names = self.0.teams.names()?;
        let names = names.iter().filter_map(|name| TeamName::parse(name).ok());
        Ok(names.filter(|name| matches!(self.find(name), Ok(Some(_)))).collect())
    }

    /// The team of that name.
    pub fn team(&self, name: &TeamName) -> Result<Team, Error> {
        match self.find(name)? {
            Some(dir) => Ok(self.team_at(name, dir)),
            None => Err(Error::NoSuchTeam {
                name: name.clone(),
                nearest: nearest_names(name.as_str(), self.teams()?),
            }),
        }
    }

    pub(crate) fn directory_of(&self, name: &TeamName) -> Result<Option<Directory>, Error> {
        self.0.teams.sub(name.as_str())
    }

    pub(crate) fn team_at(&self, name: &TeamName, dir: Directory) -> Team {
        Team::new(self.0.clone(), name.clone(), dir)
    }

    fn find(&self, name: &TeamName) -> Result<Option<Directory>, Error> {
        let Some(dir) = self.directory_of(name)? else { return Ok(None) };
        Ok(dir.stat(CONFIG)?.map(|_| dir))
    }

    /// Makes a team of `config`, whose name must be one. The config comes last and decides: of several
    /// callers one makes the team, and what a crash left without a config is completed.
    pub fn create_team(&self, config: &TeamConfig) -> Result<Team, Error> {
        let name = TeamName::parse(&config.name)?;
        if name.is_claude_session() {
            return Err(Error::ReadOnly(name));
        }
        let dir = self.0.teams.sub_made(name.as_str())?;
        dir.sub_made(INBOXES)?;
        let team = Team::new(self.0.clone(), name, dir);
        team.tasks().prepare()?;
        let (text, durability) = (config.to_text(), self.0.way.durability);
        let config = Temporary::write(team.dir(), CONFIG, text.as_bytes(), 0o600, durability)?;
        if !config.create(CONFIG)? {
            return Err(Error::Exists { what: format!("team {}", team.name()) });
        }
        settle(team.dir(), durability)?;
        settle(&self.0.teams, durability)?;
        // An earlier team of that name may have asked under the same ids; a record that stays is older than what is asked.
        self.forget(team.name()).ok();
        Ok(team)
    }

    /// Forgets what was answered, and what was sent, on a team that is gone or begins.
    ///
    /// # Errors
    /// `Io`.
    pub fn forget(&self, team: &TeamName) -> Result<(), Error> {
        self.0.forget(team)
    }

    /// Forgets what sessions were answered that are not `there` any more.
    ///
    /// # Errors
    /// `Io`.
    pub fn forget_sessions(&self, there: &[TeamName]) -> Result<(), Error> {
        self.0.answers.forget_sessions(there)
    }
}
