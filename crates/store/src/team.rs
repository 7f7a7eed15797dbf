//! One team: its config, its inboxes, its tasks. The handle keeps the team's directories open, so that what is
//! done through it can't end up in a later team of the same name.

use crate::answer_log::AnswerLog;
use crate::config_cache::ConfigCache;
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::IoContext;
use crate::journal::storage::Journal;
use crate::layout::{CONFIG_FILE, INBOXES_DIR};
use crate::root_handles::RootHandles;
use crate::tasks::cache::TaskCache;
use protocol::capabilities::Capabilities;
use protocol::did_you_mean::nearest_names;
use protocol::name::{AgentName, TeamName, strip_team};
use protocol::team_config::{Member, TeamConfig};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A team; a copy is another handle on the same, and shares what is known of its config and its task list.
#[derive(Debug, Clone)]
pub struct Team(Arc<TeamHandles>, ConfigWait);

/// How long a read of config.json waits while the file does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigWait {
    /// Until the daemon has had the time to repair it.
    UntilRepaired,
    /// Only as long as another program may be in the middle of writing it.
    HalfWrittenOnly,
}

#[derive(Debug)]
struct TeamHandles {
    root: Arc<RootHandles>,
    name: TeamName,
    dir: DirHandle,
    inboxes: OnceLock<DirHandle>,
    tasks: OnceLock<DirHandle>,
    config_cache: ConfigCache,
    task_cache: TaskCache,
}

impl Team {
    pub(crate) fn new(root: Arc<RootHandles>, name: TeamName, dir: DirHandle) -> Team {
        let (inboxes, tasks) = (OnceLock::new(), OnceLock::new());
        let (config, seen) = (ConfigCache::default(), TaskCache::default());
        Team(
            Arc::new(TeamHandles { root, name, dir, inboxes, tasks, config_cache: config, task_cache: seen }),
            ConfigWait::UntilRepaired,
        )
    }

    /// The same team for the daemon, which repairs a config.json that does not parse, and would wait for itself.
    pub fn as_repairer(&self) -> Team {
        Team(Arc::clone(&self.0), ConfigWait::HalfWrittenOnly)
    }

    pub(crate) fn config_wait(&self) -> ConfigWait {
        self.1
    }

    /// Its name.
    pub fn name(&self) -> &TeamName {
        &self.0.name
    }

    /// Whether its name still leads to the directories that this handle holds: not where the team was deleted, and
    /// not where others were made in their place. For whoever sees himself whether the root's are still there.
    pub fn is_current(&self) -> bool {
        let name = self.0.name.as_str();
        let RootHandles { teams, tasks: lists, .. } = &*self.0.root;
        teams.has_same_dir(name, &self.0.dir)
            && self.0.inboxes.get().is_none_or(|inboxes| self.0.dir.has_same_dir(INBOXES_DIR, inboxes))
            && self.0.tasks.get().is_none_or(|tasks| lists.has_same_dir(name, tasks))
    }

    /// The same, and its root's directories are those at the root's path.
    pub fn is_current_in_root(&self) -> bool {
        self.0.root.is_current() && self.is_current()
    }

    /// Its directory.
    pub fn path(&self) -> PathBuf {
        self.0.dir.path().to_owned()
    }

    /// Where its config.json is.
    pub fn config_path(&self) -> PathBuf {
        self.0.dir.join(CONFIG_FILE)
    }

    /// The member called `name`, in any case, or `NAME@TEAM`.
    pub fn member(&self, name: &str) -> Result<Member, Error> {
        self.find_member(&self.config()?, name)
    }

    /// The same, of a config that was read.
    pub(crate) fn find_member(&self, config: &TeamConfig, name: &str) -> Result<Member, Error> {
        let found = [name, strip_team(name, &self.0.name)].into_iter().find_map(|name| {
            let name = AgentName::new_unchecked(name);
            config.member(&name).cloned()
        });
        found.ok_or_else(|| self.no_such_member(name, config))
    }

    pub(crate) fn no_such_member(&self, name: &str, config: &TeamConfig) -> Error {
        let nearest = nearest_names(name, config.members.iter().map(|member| &member.name));
        let is_suspended =
            self.0.root.is_suspended(&self.0.name, &AgentName::new_unchecked(strip_team(name, &self.0.name)));
        Error::NoSuchMember { name: name.to_owned(), team: self.0.name.clone(), nearest, is_suspended }
    }

    /// The team's directory itself.
    pub(crate) fn dir(&self) -> &DirHandle {
        &self.0.dir
    }

    /// The inboxes; none while nobody made the directory.
    pub(crate) fn inboxes_dir(&self) -> Result<Option<&DirHandle>, Error> {
        open_once(&self.0.inboxes, || self.0.dir.open_dir(INBOXES_DIR))
    }

    /// The inboxes, made if missing.
    pub(crate) fn create_inboxes_dir(&self) -> Result<&DirHandle, Error> {
        open_once(&self.0.inboxes, || self.0.dir.create_dir(INBOXES_DIR).map(Some))?
            .ok_or_else(|| self.no_such_team())
    }

    /// The tasks; none while nobody made the directory.
    pub(crate) fn tasks_dir(&self) -> Result<Option<&DirHandle>, Error> {
        open_once(&self.0.tasks, || self.0.root.tasks.open_dir(self.0.name.as_str()))
    }

    /// The tasks, made if missing; not for a team that was deleted, and whose name another one may have by now.
    pub(crate) fn create_tasks_dir(&self) -> Result<&DirHandle, Error> {
        let is_there = || self.0.root.teams.has_same_dir(self.0.name.as_str(), &self.0.dir);
        let make = || {
            if !is_there() {
                return Ok(None);
            }
            let made = self.0.root.tasks.create_dir(self.0.name.as_str())?;
            Ok(is_there().then_some(made))
        };
        open_once(&self.0.tasks, make)?.ok_or_else(|| self.no_such_team())
    }

    /// The config as this handle and its copies saw it last.
    pub(crate) fn config_cache(&self) -> &ConfigCache {
        &self.0.config_cache
    }

    /// The task list as this handle and its copies saw it last.
    pub(crate) fn task_cache(&self) -> &TaskCache {
        &self.0.task_cache
    }

    /// Where all teams' directories of tasks are.
    pub(crate) fn all_tasks_dir(&self) -> &DirHandle {
        &self.0.root.tasks
    }

    /// Where all teams' directories are.
    pub(crate) fn all_teams_dir(&self) -> &DirHandle {
        &self.0.root.teams
    }

    /// The root's directory itself.
    pub(crate) fn root_dir(&self) -> &DirHandle {
        &self.0.root.dir
    }

    /// What the program of that member can follow.
    pub(crate) fn member_capabilities(&self, name: &AgentName) -> Capabilities {
        self.0.root.member_capabilities(&self.0.name, name)
    }

    pub(crate) fn root_handles(&self) -> &Arc<RootHandles> {
        &self.0.root
    }

    pub(crate) fn answer_log(&self) -> &AnswerLog {
        &self.0.root.answer_log
    }

    /// What lies outside of the root of it.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        self.0.root.delete_records(&self.0.name)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.root.journal
    }

    pub(crate) fn io(&self) -> &IoContext {
        if self.0.name.is_claude_session() { &self.0.root.foreign_io } else { &self.0.root.io }
    }

    /// Refuses changes of a team that belongs to Claude Code.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.0.name.is_claude_session() {
            return Err(Error::ReadOnly(self.0.name.clone()));
        }
        Ok(())
    }

    pub(crate) fn no_such_team(&self) -> Error {
        Error::NoSuchTeam { name: self.0.name.clone(), nearest: Vec::new() }
    }
}

/// The directory in `cell`, opened at the first call that finds it.
fn open_once(
    cell: &OnceLock<DirHandle>,
    open: impl FnOnce() -> Result<Option<DirHandle>, Error>,
) -> Result<Option<&DirHandle>, Error> {
    if cell.get().is_none()
        && let Some(dir) = open()?
    {
        // Another thread may have been faster, with the same directory.
        drop(cell.set(dir));
    }
    Ok(cell.get())
}
