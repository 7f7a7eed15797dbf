//! A team's config.json: read, remembered, changed.
//!
//! It is one file that all members are in, so each of many who come or go would cost what all of them do. What a handle has
//! read or written is kept, parsed: the same text is not parsed again, and where a look at the file alone tells that it is
//! what it was, it is not even opened. Nothing that is kept is believed without that look.

use crate::error::Error;
use crate::file::{Identity, Known, PATIENCE, Shape, Snapshot, change, read_as, stamps_are_fine};
use crate::team::{CONFIG, Team};
use protocol::json;
use protocol::name::AgentName;
use protocol::team_config::{
    ConfigError, Member, TeamConfig, with_member_fields, with_members, with_team_fields,
    without_first_matches,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a config that does not parse is waited for. Whoever mends it begins after [`PATIENCE`], and may have other
/// things to do first.
const CONFIG_PATIENCE: Duration = PATIENCE.saturating_add(Duration::from_secs(3));

/// What a config.json said, with the text that says so.
#[derive(Debug)]
pub struct Config {
    team: TeamConfig,
    text: String,
    origin: Origin,
}

/// What a config has in common with all that came of it by members that we have put there or taken out: the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    fn fresh() -> Origin {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Origin(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Config {
    fn of(text: &str, origin: Origin) -> Result<Arc<Config>, ConfigError> {
        Ok(Arc::new(Config { team: TeamConfig::parse(text)?, text: text.to_owned(), origin }))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same for two that differ in nothing but members that [`Team::add_missing`] and [`Team::remove_members`] have put
    /// there or taken out, one after the other.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl Deref for Config {
    type Target = TeamConfig;

    fn deref(&self) -> &TeamConfig {
        &self.team
    }
}

/// The config as one handle on the team, or a copy of it, saw it last; none before the first look.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<Last>>);

#[derive(Debug, Clone)]
struct Last {
    config: Arc<Config>,
    /// What the file was when it said that; none where that can't tell whether it still does.
    file: Option<Identity>,
}

impl Kept {
    fn last(&self) -> Option<Last> {
        self.held().clone()
    }

    fn keep(&self, config: &Arc<Config>, file: Option<Identity>) {
        *self.held() = Some(Last { config: Arc::clone(config), file });
    }

    fn held(&self) -> MutexGuard<'_, Option<Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    /// Whether the file is known to say this still.
    fn stands(&self, team: &Team) -> Result<bool, Error> {
        let Some(file) = self.file else { return Ok(false) };
        Ok(Identity::at(team.dir(), CONFIG)? == Some(file))
    }

    /// The file, where it is known to say this still.
    fn snapshot(&self, team: &Team) -> Result<Option<Snapshot>, Error> {
        let Some(file) = self.file else { return Ok(None) };
        Snapshot::known(team.dir(), CONFIG, file, &self.config.text)
    }
}

/// What of a config is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changed {
    /// Members of ours, whole.
    Members,
    Anything,
}

/// What a text says, by what was kept where that has the same.
fn parsed(last: Option<&Last>, text: &str) -> Result<Arc<Config>, ConfigError> {
    match last.filter(|last| last.config.text == text) {
        Some(last) => Ok(Arc::clone(&last.config)),
        None => Config::of(text, Origin::fresh()),
    }
}

/// A text that can't be parsed at all may be one that is being written: the outer error.
fn whole<T>(parsed: Result<T, ConfigError>) -> Result<Result<T, ConfigError>, json::JsonError> {
    match parsed {
        Err(ConfigError::Json(error)) => Err(error),
        parsed => Ok(parsed),
    }
}

impl Team {
    /// Who is on the team now. Waits for a damaged config.json longer than [`Team::mend`] does, so that whoever reads one
    /// of ours finds it mended.
    pub fn config(&self) -> Result<TeamConfig, Error> {
        Ok(self.config_mended()?.team.clone())
    }

    /// The same, as it is kept.
    pub(crate) fn config_mended(&self) -> Result<Arc<Config>, Error> {
        self.config_within(CONFIG_PATIENCE)
    }

    /// As [`Team::config`], for whoever mends it, and would wait for itself: with no more patience than
    /// [`Team::mend`] has.
    ///
    /// # Errors
    /// As those of [`Team::config`].
    pub fn config_of_ours(&self) -> Result<Arc<Config>, Error> {
        self.config_within(PATIENCE)
    }

    fn config_within(&self, patience: Duration) -> Result<Arc<Config>, Error> {
        let last = self.kept().last();
        if let Some(last) = &last
            && last.stands(self)?
        {
            return Ok(Arc::clone(&last.config));
        }
        let parse = |text: &str| whole(parsed(last.as_ref(), text));
        let found = read_as(self.way(), self.dir(), CONFIG, Shape::Object.limit(), patience, parse)?;
        let (snapshot, config) = found.ok_or_else(|| self.gone())?;
        let config = config.map_err(|error| self.malformed(&error))?;
        self.kept().keep(&config, snapshot.settled());
        Ok(config)
    }

    /// Adds a member at the end. For the one writer of the config alone, as are those below.
    pub fn add_member(&self, member: &Member) -> Result<(), Error> {
        match self.add_missing(std::slice::from_ref(member))?.is_empty() {
            true => Err(Error::Exists { what: format!("member {}", member.name) }),
            false => Ok(()),
        }
    }

    /// Adds those who are missing, all in one change: beside somebody who writes without the lock what it read a moment
    /// ago, those who came one after the other would be lost again one after the other. Who they were; of two of one name
    /// it is the first.
    ///
    /// # Errors
    /// As those of [`Team::add_member`], but for that of one who is there.
    pub fn add_missing(&self, members: &[Member]) -> Result<Vec<AgentName>, Error> {
        let mut missing = Vec::new();
        let last = self.kept().last();
        self.change_config(Changed::Members, |text| {
            let config = parsed(last.as_ref(), text)?;
            let mut there: HashSet<&AgentName> = config.members.iter().map(|member| &member.name).collect();
            let added: Vec<&Member> = members.iter().filter(|member| there.insert(&member.name)).collect();
            missing = added.iter().map(|member| member.name.clone()).collect();
            with_members(text, &added).map(Some)
        })?;
        Ok(missing)
    }

    /// Takes a member out; one that is not there is fine.
    pub fn remove_member(&self, name: &AgentName) -> Result<(), Error> {
        self.remove_members(std::slice::from_ref(name))
    }

    /// Takes members out, all in one change; those that are not there are fine.
    pub fn remove_members(&self, names: &[AgentName]) -> Result<(), Error> {
        self.change_config(Changed::Members, |text| without_first_matches(text, names).map(Some))?;
        Ok(())
    }

    /// Sets fields of a member; null takes a field out.
    pub fn set_member(&self, name: &AgentName, fields: &[(&str, Value)]) -> Result<(), Error> {
        match self.change_config(Changed::Anything, |text| with_member_fields(text, name, fields))? {
            Some(()) => Ok(()),
            None => Err(self.no_member(name.as_str(), &self.config()?)),
        }
    }

    /// Sets fields of the team itself, `hiddenPaneIds` for one; null takes a field out.
    pub fn set(&self, fields: &[(&str, Value)]) -> Result<(), Error> {
        self.change_config(Changed::Anything, |text| with_team_fields(text, fields).map(Some))?;
        Ok(())
    }

    /// None if `edit` found nothing to work on.
    fn change_config(
        &self,
        what: Changed,
        mut edit: impl FnMut(&str) -> Result<Option<String>, ConfigError>,
    ) -> Result<Option<()>, Error> {
        self.writable()?;
        let mut found = None;
        let last = self.kept().last();
        let written = RefCell::new(None);
        let edit = |text: Option<&str>| {
            let Some(text) = text else { return Ok(Err(self.gone())) };
            let edited = whole(edit(text))?.map_err(|error| self.malformed(&error));
            found = edited.as_ref().ok().and_then(|edited| edited.is_some().then_some(()));
            let edited = edited.map(|edited| edited.filter(|edited| edited != text));
            let origin = last.as_ref().filter(|last| what == Changed::Members && last.config.text == text);
            let origin = origin.map_or_else(Origin::fresh, |last| last.config.origin);
            written.replace(edited.as_ref().ok().cloned().flatten().map(|text| (text, origin)));
            Ok(edited)
        };
        let before = last.as_ref().map(|last| last.snapshot(self)).transpose()?.flatten();
        let placed =
            |known| written.take().iter().for_each(|(text, origin)| self.left(text, *origin, &known));
        change(self.way(), self.dir(), CONFIG, before, Shape::Object, edit, placed)?;
        Ok(found)
    }

    /// Keeps what was just put in place. Whoever writes it from now on leaves another stamp, where stamps tell all changes
    /// apart; elsewhere the text is compared.
    fn left(&self, text: &str, origin: Origin, known: &Known) {
        if let Ok(config) = Config::of(text, origin) {
            let is_sure = stamps_are_fine(self.dir()) && known.file().has_fraction();
            self.kept().keep(&config, is_sure.then(|| known.file()));
        }
    }

    fn malformed(&self, error: &ConfigError) -> Error {
        Error::Malformed { path: self.config_path(), why: error.to_string() }
    }
}
