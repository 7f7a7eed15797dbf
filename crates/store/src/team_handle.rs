//! The handle of one team: its config, inboxes and tasks. The handle keeps the team's directories
//! open. So if the team is deleted and a new team gets the same name, a write through the old
//! handle never reaches the new team.

use crate::answer_log::AnswerLog;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::IoOptions;
use crate::message_journal::journal_and_tail_index_files::Journal;
use crate::state_directory_handle::StateDir;
use crate::state_shared_by_root_handles::SharedRootState;
use crate::task_list::cache::TaskCache;
use crate::team_config_cache::ConfigCache;
use crate::team_file_names::{CONFIG_FILE, INBOXES_DIR};
use protocol::check_program_supports_answer::Capabilities;
use protocol::did_you_mean::nearest_names;
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::Policy;
use protocol::state_file_names;
use protocol::state_file_names::agent_log_path;
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use protocol::team_config::{Member, TeamConfig};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A handle of a team. All handles of a team share the cached config. A clone also shares the
/// cached task list with the original.
#[derive(Debug, Clone)]
pub struct Team(Arc<TeamHandles>, ConfigWait);

/// How long a read of `config.json` waits while the file is not valid JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigWait {
    /// Until the daemon has had enough time to repair the config.
    UntilRepaired,
    /// Until another program has had enough time to finish a write.
    HalfWrittenOnly,
}

#[derive(Debug)]
struct TeamHandles {
    root: Arc<SharedRootState>,
    name: TeamName,
    dir: DirHandle,
    inboxes: OnceLock<DirHandle>,
    tasks: OnceLock<DirHandle>,
    /// Shared by all handles of teams of this name: each link to another host has a handle.
    config_cache: Arc<ConfigCache>,
    task_cache: TaskCache,
}

impl Team {
    pub(crate) fn new(root: Arc<SharedRootState>, name: TeamName, dir: DirHandle) -> Team {
        let (inboxes, tasks) = (OnceLock::new(), OnceLock::new());
        let (config_cache, task_cache) = (root.config_caches.cache_of(&name), TaskCache::default());
        Team(
            Arc::new(TeamHandles { root, name, dir, inboxes, tasks, config_cache, task_cache }),
            ConfigWait::UntilRepaired,
        )
    }

    /// A handle of the same team for the daemon, which repairs invalid configs itself. With this
    /// handle, reading an invalid config fails without waiting for a repair.
    pub fn as_repairer(&self) -> Team {
        Team(Arc::clone(&self.0), ConfigWait::HalfWrittenOnly)
    }

    pub(crate) fn config_wait(&self) -> ConfigWait {
        self.1
    }

    pub fn name(&self) -> &TeamName {
        &self.0.name
    }

    /// Whether the paths of the team's directories still lead to the directories that this handle
    /// has open. False if the team was deleted or its directories were replaced. The root's
    /// directories are not checked.
    pub fn is_current(&self) -> bool {
        let name = self.0.name.as_str();
        let SharedRootState { teams, tasks: lists, .. } = &*self.0.root;
        teams.has_same_dir(name, &self.0.dir)
            && self.0.inboxes.get().is_none_or(|inboxes| self.0.dir.has_same_dir(INBOXES_DIR, inboxes))
            && self.0.tasks.get().is_none_or(|tasks| lists.has_same_dir(name, tasks))
    }

    /// Whether this handle is current ([`Team::is_current`]) and the root's path still leads to the
    /// directories of the root that this handle has open.
    pub fn is_current_in_root(&self) -> bool {
        self.0.root.is_current() && self.is_current()
    }

    /// The path of the team's directory.
    pub fn path(&self) -> PathBuf {
        self.0.dir.path().to_owned()
    }

    /// The output log of a member. It exists only if teamd runs, or ran, the member.
    pub fn agent_log_path(&self, name: &MemberName) -> PathBuf {
        agent_log_path(&self.0.root.state_dir, self.name(), name)
    }

    /// The state directory of teamd for the root of this team.
    pub(crate) fn state_dir(&self) -> &Path {
        &self.0.root.state_dir
    }

    /// Whether the team's config and the directory of its tasks exist. False while the team is
    /// being deleted.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_complete(&self) -> Result<bool, Error> {
        let tasks = self.0.root.tasks.stat(self.0.name.as_str())?;
        Ok(tasks.is_some() && self.0.dir.stat(CONFIG_FILE)?.is_some())
    }

    /// Whether the team's home is another machine, so that the files here are a mirror.
    pub fn is_mirror(&self) -> bool {
        self.state_dir().join(state_file_names::mirror_marker(self.name())).exists()
    }

    /// The team's policy, which the daemon writes into its state directory. See
    /// [`Policy::parse_file`] for a missing or invalid file.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if another user owns the state directory; `Io`.
    pub fn policy(&self) -> Result<Policy, Error> {
        let bytes = StateDir::open(self.state_dir())?.read(&state_file_names::policy(self.name()))?;
        Ok(Policy::parse_file(bytes.as_deref()))
    }

    /// The path of the team's config.
    pub fn config_path(&self) -> PathBuf {
        self.0.dir.join(CONFIG_FILE)
    }

    /// The member `name`, which is a name in any case or `NAME@TEAM`.
    pub fn member(&self, name: &str) -> Result<Member, Error> {
        self.find_member(&self.config()?, name)
    }

    /// The member `name` in a config that was read before.
    pub(crate) fn find_member(&self, config: &TeamConfig, name: &str) -> Result<Member, Error> {
        let member = [name, strip_team(name, &self.0.name)].into_iter().find_map(|name| {
            let name = MemberName::new_unchecked(name);
            config.member(&name).cloned()
        });
        member.ok_or_else(|| self.no_such_member(name, config))
    }

    pub(crate) fn no_such_member(&self, name: &str, config: &TeamConfig) -> Error {
        let nearest = nearest_names(name, config.members.iter().map(|member| &member.name));
        let is_suspended = self
            .0
            .root
            .is_suspended(&self.0.name, &MemberName::new_unchecked(strip_team(name, &self.0.name)));
        Error::NoSuchMember { name: name.to_owned(), team: self.0.name.clone(), nearest, is_suspended }
    }

    /// The plans that members submit again when they are resumed, from the daemon's roster.
    pub(crate) fn plans_to_resubmit(&self) -> BTreeSet<RequestId> {
        self.0.root.plans_to_resubmit(&self.0.name)
    }

    pub(crate) fn dir(&self) -> &DirHandle {
        &self.0.dir
    }

    /// The directory of the inboxes. `None` if it does not exist yet.
    pub(crate) fn inboxes_dir(&self) -> Result<Option<&DirHandle>, Error> {
        open_once(&self.0.inboxes, || self.0.dir.open_own_dir(INBOXES_DIR))
    }

    /// The directory of the inboxes; creates it if it is missing.
    pub(crate) fn create_inboxes_dir(&self) -> Result<&DirHandle, Error> {
        open_once(&self.0.inboxes, || self.0.dir.create_own_dir(INBOXES_DIR).map(Some))?
            .ok_or_else(|| self.no_such_team())
    }

    /// The directory of the tasks. `None` if it does not exist yet.
    pub(crate) fn tasks_dir(&self) -> Result<Option<&DirHandle>, Error> {
        open_once(&self.0.tasks, || self.0.root.tasks.open_own_dir(self.0.name.as_str()))
    }

    /// The directory of the team's tasks; creates it if it is missing. Fails if the team was
    /// deleted, since the name may belong to another team now.
    pub(crate) fn create_tasks_dir(&self) -> Result<&DirHandle, Error> {
        let is_current = || self.0.root.teams.has_same_dir(self.0.name.as_str(), &self.0.dir);
        let create = || {
            if !is_current() {
                return Ok(None);
            }
            let tasks = self.0.root.tasks.create_own_dir(self.0.name.as_str())?;
            Ok(is_current().then_some(tasks))
        };
        open_once(&self.0.tasks, create)?.ok_or_else(|| self.no_such_team())
    }

    /// The cached config of this handle and its clones.
    pub(crate) fn config_cache(&self) -> &ConfigCache {
        &self.0.config_cache
    }

    /// The cached task list of this handle and its clones.
    pub(crate) fn task_cache(&self) -> &TaskCache {
        &self.0.task_cache
    }

    /// The directory with the task lists of all teams.
    pub(crate) fn all_tasks_dir(&self) -> &DirHandle {
        &self.0.root.tasks
    }

    /// The directory with the directories of all teams.
    pub(crate) fn all_teams_dir(&self) -> &DirHandle {
        &self.0.root.teams
    }

    pub(crate) fn root_dir(&self) -> &DirHandle {
        &self.0.root.dir
    }

    /// The capabilities of a member's program, from the daemon's roster.
    pub(crate) fn member_capabilities(&self, name: &MemberName) -> Capabilities {
        self.0.root.member_capabilities(&self.0.name, name)
    }

    /// Whether teamd lets the member `name` begin a claimed task only after the team's home has
    /// confirmed the claim. False if no member of this name runs. Used in the mirror of a team.
    pub fn confirms_claims(&self, name: &MemberName) -> bool {
        self.0.root.confirms_claims(&self.0.name, name)
    }

    pub(crate) fn root_handles(&self) -> &Arc<SharedRootState> {
        &self.0.root
    }

    pub(crate) fn answer_log(&self) -> &AnswerLog {
        &self.0.root.answer_log
    }

    /// Deletes the team's records outside the root: answers and journal.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        self.0.root.delete_records(&self.0.name)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.root.journal
    }

    pub(crate) fn io(&self) -> &IoOptions {
        if self.0.name.is_claude_session() { &self.0.root.foreign_io } else { &self.0.root.io }
    }

    /// Fails with `ReadOnly` if this is a session team of Claude Code.
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

/// The directory in `cell`. If the cell is empty, calls `open` and keeps a directory that it finds.
fn open_once(
    cell: &OnceLock<DirHandle>,
    open: impl FnOnce() -> Result<Option<DirHandle>, Error>,
) -> Result<Option<&DirHandle>, Error> {
    if cell.get().is_none()
        && let Some(dir) = open()?
    {
        // If another thread was faster, it has stored the same directory.
        drop(cell.set(dir));
    }
    Ok(cell.get())
}
