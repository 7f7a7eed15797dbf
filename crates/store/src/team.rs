//! One team: its config, its inboxes, its tasks. The handle keeps the team's directories open, so that what is
//! done through it can't end up in a later team of the same name.

use crate::answers::Answers;
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{PATIENCE, Shape, Way, change, read_as};
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::root::{Opened, Root};
use crate::tasks::{Seen, Tasks};
use protocol::config::{ConfigError, Member, TeamConfig, member_set, team_set, with_member, without_member};
use protocol::name::{AgentName, TeamName, bare, nearest};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const INBOXES: &str = "inboxes";

/// How long a config that does not parse is waited for. Whoever mends it begins after [`PATIENCE`], and may have other
/// things to do first.
const CONFIG_PATIENCE: Duration = PATIENCE.saturating_add(Duration::from_secs(3));

/// A team; a copy is another handle on the same, and shares what is known of its task list.
#[derive(Debug, Clone)]
pub struct Team(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: Arc<Opened>,
    name: TeamName,
    dir: Directory,
    inboxes: OnceLock<Directory>,
    tasks: OnceLock<Directory>,
    seen: Seen,
}

impl Team {
    pub(crate) fn new(root: Arc<Opened>, name: TeamName, dir: Directory) -> Team {
        let (inboxes, tasks) = (OnceLock::new(), OnceLock::new());
        Team(Arc::new(Inner { root, name, dir, inboxes, tasks, seen: Seen::default() }))
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

    /// Who is on the team now. Waits for a damaged config.json longer than [`Team::mend`] does, so that whoever reads one
    /// of ours finds it mended.
    pub fn config(&self) -> Result<TeamConfig, Error> {
        TeamConfig::parse(&self.config_within(CONFIG_PATIENCE)?).map_err(|error| self.malformed(&error))
    }

    /// As [`Team::config`], for whoever mends it, and would wait for itself: with no more patience than
    /// [`Team::mend`] has.
    ///
    /// # Errors
    /// As those of [`Team::config`].
    pub fn config_of_ours(&self) -> Result<TeamConfig, Error> {
        Ok(self.config_and_text_of_ours()?.0)
    }

    /// The same, with the text that says so.
    ///
    /// # Errors
    /// As those of [`Team::config`].
    pub fn config_and_text_of_ours(&self) -> Result<(TeamConfig, String), Error> {
        let text = self.config_within(PATIENCE)?;
        let config = TeamConfig::parse(&text).map_err(|error| self.malformed(&error))?;
        Ok((config, text))
    }

    fn config_within(&self, patience: Duration) -> Result<String, Error> {
        let limit = Shape::Object.limit();
        let found =
            read_as(self.way(), &self.0.dir, CONFIG, limit, patience, |text| Shape::Object.check(text));
        let (snapshot, ()) = found?.ok_or_else(|| self.gone())?;
        Ok(snapshot.text().to_owned())
    }

    /// The member called `name`, in any case, or `NAME@TEAM`.
    pub fn member(&self, name: &str) -> Result<Member, Error> {
        self.member_in(&self.config()?, name)
    }

    /// The same, of a config that was read.
    pub(crate) fn member_in(&self, config: &TeamConfig, name: &str) -> Result<Member, Error> {
        let found = [name, bare(name, &self.0.name)].into_iter().find_map(|name| {
            let name = AgentName::foreign(name);
            config.member(&name).cloned()
        });
        found.ok_or_else(|| self.no_member(name, config))
    }

    pub(crate) fn no_member(&self, name: &str, config: &TeamConfig) -> Error {
        let nearest = nearest(name, config.members.iter().map(|member| &member.name));
        Error::NoSuchMember { name: name.to_owned(), team: self.0.name.clone(), nearest }
    }

    /// Adds a member at the end. For the one writer of the config alone, as are the next four.
    pub fn add_member(&self, member: &Member) -> Result<(), Error> {
        self.change_config(|text| {
            let config = TeamConfig::parse(text)?;
            if config.member(&member.name).is_some() {
                return Ok(None);
            }
            with_member(text, member).map(Some)
        })?
        .ok_or_else(|| Error::Exists { what: format!("member {}", member.name) })
    }

    /// Adds those who are missing, all in one change: beside somebody who writes without the lock what it read a moment
    /// ago, those who came one after the other would be lost again one after the other. Who they were.
    ///
    /// # Errors
    /// As those of [`Team::add_member`], but for that of one who is there.
    pub fn add_missing(&self, members: &[Member]) -> Result<Vec<AgentName>, Error> {
        let mut missing = Vec::new();
        self.change_config(|text| {
            let config = TeamConfig::parse(text)?;
            let is_missing = |member: &&Member| config.member(&member.name).is_none();
            let added: Vec<&Member> = members.iter().filter(is_missing).collect();
            missing = added.iter().map(|member| member.name.clone()).collect();
            added.into_iter().try_fold(text.to_owned(), |text, member| with_member(&text, member)).map(Some)
        })?;
        Ok(missing)
    }

    /// Takes a member out; one that is not there is fine.
    pub fn remove_member(&self, name: &AgentName) -> Result<(), Error> {
        self.change_config(|text| without_member(text, name).map(Some))?;
        Ok(())
    }

    /// Sets fields of a member; null takes a field out.
    pub fn set_member(&self, name: &AgentName, fields: &[(&str, Value)]) -> Result<(), Error> {
        match self.change_config(|text| member_set(text, name, fields))? {
            Some(()) => Ok(()),
            None => Err(self.no_member(name.as_str(), &self.config()?)),
        }
    }

    /// Sets fields of the team itself, `hiddenPaneIds` for one; null takes a field out.
    pub fn set(&self, fields: &[(&str, Value)]) -> Result<(), Error> {
        self.change_config(|text| team_set(text, fields).map(Some))?;
        Ok(())
    }

    /// None if `edit` found nothing to work on.
    fn change_config(
        &self,
        mut edit: impl FnMut(&str) -> Result<Option<String>, ConfigError>,
    ) -> Result<Option<()>, Error> {
        self.writable()?;
        let mut found = None;
        let edit = |text: Option<&str>| {
            let Some(text) = text else { return Ok(Err(self.gone())) };
            Shape::Object.check(text)?;
            let edited = edit(text).map_err(|error| self.malformed(&error));
            found = edited.as_ref().ok().and_then(|edited| edited.is_some().then_some(()));
            Ok(edited.map(|edited| edited.filter(|edited| edited != text)))
        };
        change(self.way(), &self.0.dir, CONFIG, Shape::Object, edit, |_| {})?;
        Ok(found)
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
        if self.0.name.is_foreign() { &self.0.root.foreign } else { &self.0.root.way }
    }

    /// Refuses changes of a team that belongs to Claude Code.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        if self.0.name.is_foreign() {
            return Err(Error::ReadOnly(self.0.name.clone()));
        }
        Ok(())
    }

    pub(crate) fn gone(&self) -> Error {
        Error::NoSuchTeam { name: self.0.name.clone(), nearest: Vec::new() }
    }

    fn malformed(&self, error: &ConfigError) -> Error {
        Error::Malformed { path: self.config_path(), why: error.to_string() }
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
