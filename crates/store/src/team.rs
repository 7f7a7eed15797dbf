//! One team: its config, its inboxes, its tasks. The handle keeps the team's directories open, so that what is
//! done through it can't end up in a later team of the same name.

use crate::answers::Answers;
use crate::config::Kept;
use crate::directory::Directory;
use crate::error::Error;
use crate::file::Way;
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::root::{Opened, Root};
use crate::tasks::{Seen, Tasks};
use protocol::name::{AgentName, TeamName, nearest_names, strip_team};
use protocol::team_config::{Member, TeamConfig};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const INBOXES: &str = "inboxes";

/// A team; a copy is another handle on the same, and shares what is known of its config and its task list.
#[derive(Debug, Clone)]
pub struct Team(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Arc<Opened>,
    name: TeamName,
    dir: Directory,
    inboxes: OnceLock<Directory>,
    tasks: OnceLock<Directory>,
    config: Kept,
    seen: Seen,
}

impl Team {
    pub(crate) fn new(root: Arc<Opened>, name: TeamName, dir: Directory) -> Team {
        let (inboxes, tasks) = (OnceLock::new(), OnceLock::new());
        let (config, seen) = (Kept::default(), Seen::default());
        Team(Arc::new(Inner { root, name, dir, inboxes, tasks, config, seen }))
    }

    /// Its name.
    pub fn name(&self) -> &TeamName {
        &self.0.name
    }

    /// Whether its name still leads to the directories that this handle holds: not where the team was deleted, and
    /// not where others were made in their place. For whoever sees himself whether the root's are still there.
    pub fn is_current(&self) -> bool {
        let name = self.0.name.as_str();
        let Opened { teams, tasks: lists, .. } = &*self.0.root;
        teams.still_has(name, &self.0.dir)
            && self.0.inboxes.get().is_none_or(|inboxes| self.0.dir.still_has(INBOXES, inboxes))
            && self.0.tasks.get().is_none_or(|tasks| lists.still_has(name, tasks))
    }

    /// The same, and its root's directories are those at the root's path.
    pub fn is_at_its_place(&self) -> bool {
        self.0.root.is_current() && self.is_current()
    }

    /// The team of that name that is at its place now; none where there is none. Nothing is made.
    ///
    /// # Errors
    /// Those of opening a root and a team.
    pub fn anew(&self) -> Result<Option<Team>, Error> {
        let root = Root::of(&self.0.root);
        if !root.is_there() {
            return Ok(None);
        }
        let root = if root.is_current() { root } else { root.anew()? };
        match root.team(&self.0.name) {
            Ok(team) => Ok(Some(team)),
            Err(Error::NoSuchTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its directory.
    pub fn path(&self) -> PathBuf {
        self.0.dir.path().to_owned()
    }

    /// Where its config.json is.
    pub fn config_path(&self) -> PathBuf {
        self.0.dir.join(CONFIG)
    }

    /// The member called `name`, in any case, or `NAME@TEAM`.
    pub fn member(&self, name: &str) -> Result<Member, Error> {
        self.member_in(&self.config()?, name)
    }

    /// The same, of a config that was read.
    pub(crate) fn member_in(&self, config: &TeamConfig, name: &str) -> Result<Member, Error> {
        let found = [name, strip_team(name, &self.0.name)].into_iter().find_map(|name| {
            let name = AgentName::new_unchecked(name);
            config.member(&name).cloned()
        });
        found.ok_or_else(|| self.no_member(name, config))
    }

    pub(crate) fn no_member(&self, name: &str, config: &TeamConfig) -> Error {
        let nearest = nearest_names(name, config.members.iter().map(|member| &member.name));
        let rests =
            self.answers().rests(&self.0.name, &AgentName::new_unchecked(strip_team(name, &self.0.name)));
        Error::NoSuchMember { name: name.to_owned(), team: self.0.name.clone(), nearest, rests }
    }

    /// The inbox of an agent, whether it is a member or not; the file may not be there yet.
    pub fn inbox(&self, name: &AgentName) -> Inbox {
        Inbox::new(self.clone(), name)
    }

    /// The task list.
    pub fn tasks(&self) -> Tasks {
        Tasks::new(self.clone())
    }

    /// The team's directory itself.
    pub(crate) fn dir(&self) -> &Directory {
        &self.0.dir
    }

    /// The inboxes; none while nobody made the directory.
    pub(crate) fn inboxes(&self) -> Result<Option<&Directory>, Error> {
        opened(&self.0.inboxes, || self.0.dir.sub(INBOXES))
    }

    /// The inboxes, made if missing.
    pub(crate) fn inboxes_made(&self) -> Result<&Directory, Error> {
        opened(&self.0.inboxes, || self.0.dir.sub_made(INBOXES).map(Some))?.ok_or_else(|| self.gone())
    }

    /// The tasks; none while nobody made the directory.
    pub(crate) fn task_dir(&self) -> Result<Option<&Directory>, Error> {
        opened(&self.0.tasks, || self.0.root.tasks.sub(self.0.name.as_str()))
    }

    /// The tasks, made if missing; not for a team that was deleted, and whose name another one may have by now.
    pub(crate) fn task_dir_made(&self) -> Result<&Directory, Error> {
        let is_there = || self.0.root.teams.still_has(self.0.name.as_str(), &self.0.dir);
        let make = || {
            if !is_there() {
                return Ok(None);
            }
            let made = self.0.root.tasks.sub_made(self.0.name.as_str())?;
            Ok(is_there().then_some(made))
        };
        opened(&self.0.tasks, make)?.ok_or_else(|| self.gone())
    }

    /// The config as this handle and its copies saw it last.
    pub(crate) fn kept(&self) -> &Kept {
        &self.0.config
    }

    /// The task list as this handle and its copies saw it last.
    pub(crate) fn seen(&self) -> &Seen {
        &self.0.seen
    }

    /// Where all teams' directories of tasks are.
    pub(crate) fn all_tasks(&self) -> &Directory {
        &self.0.root.tasks
    }

    /// Where all teams' directories are.
    pub(crate) fn all_teams(&self) -> &Directory {
        &self.0.root.teams
    }

    /// The root's directory itself.
    pub(crate) fn root_dir(&self) -> &Directory {
        &self.0.root.dir
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.0.root.answers
    }

    /// What lies outside of the root of it.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        self.0.root.forget(&self.0.name)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.root.journal
    }

    pub(crate) fn way(&self) -> &Way {
        if self.0.name.is_claude_session() { &self.0.root.foreign } else { &self.0.root.way }
    }

    /// Refuses changes of a team that belongs to Claude Code.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        if self.0.name.is_claude_session() {
            return Err(Error::ReadOnly(self.0.name.clone()));
        }
        Ok(())
    }

    pub(crate) fn gone(&self) -> Error {
        Error::NoSuchTeam { name: self.0.name.clone(), nearest: Vec::new() }
    }
}

/// The directory in `cell`, opened at the first call that finds it.
fn opened(
    cell: &OnceLock<Directory>,
    open: impl FnOnce() -> Result<Option<Directory>, Error>,
) -> Result<Option<&Directory>, Error> {
    if cell.get().is_none()
        && let Some(dir) = open()?
    {
        // Another thread may have been faster, with the same directory.
        drop(cell.set(dir));
    }
    Ok(cell.get())
}
