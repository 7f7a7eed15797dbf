//! A team's config.json: read, remembered, changed.
//!
//! It is one file that all members are in, so each of many who come or go would cost what all of them do. What a handle has
//! read or written is kept, parsed: the same text is not parsed again, and where a look at the file alone tells that it is
//! what it was, it is not even opened. Nothing that is kept is believed without that look.

use crate::config_cache::{BaseVersion, CachedConfig, parse_or_reuse};
use crate::error::Error;
use crate::file::{
    HALF_WRITTEN_TIMEOUT, JsonShape, KnownFile, has_multigrain_timestamps, modify_file, read_and_parse,
};
use crate::layout::CONFIG_FILE;
use crate::team::{ConfigWait, Team};
use protocol::json;
use protocol::name::AgentName;
use protocol::team_config::{
    ConfigError, Member, TeamConfig, with_member_fields, with_members, with_team_fields,
    without_first_matches,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a config that does not parse is waited for. Whoever mends it begins after `PATIENCE`, and may have other
/// things to do first.
const CONFIG_REPAIR_TIMEOUT: Duration = HALF_WRITTEN_TIMEOUT.saturating_add(Duration::from_secs(3));

/// What of a config is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfigChange {
    /// Members of ours, whole.
    MembersOnly,
    AnyField,
}

/// A text that can't be parsed at all may be one that is being written: the outer error.
fn split_syntax_error<T>(parsed: Result<T, ConfigError>) -> Result<Result<T, ConfigError>, json::JsonError> {
    match parsed {
        Err(ConfigError::Json(error)) => Err(error),
        parsed => Ok(parsed),
    }
}

impl Team {
    /// The team's config now. A config.json that does not parse is waited for longer than [`Team::repair_config`] does, so
    /// that the daemon can repair it; by a handle of [`Team::as_repairer`] no longer than another program writes it.
    ///
    /// # Errors
    /// `NoSuchTeam`, `Malformed`, `Io`.
    pub fn config(&self) -> Result<TeamConfig, Error> {
        Ok(self.cached_config()?.team.clone())
    }

    /// The same, as the handle keeps it.
    ///
    /// # Errors
    /// As those of [`Team::config`].
    pub fn cached_config(&self) -> Result<Arc<CachedConfig>, Error> {
        let timeout = match self.config_wait() {
            ConfigWait::UntilRepaired => CONFIG_REPAIR_TIMEOUT,
            ConfigWait::HalfWrittenOnly => HALF_WRITTEN_TIMEOUT,
        };
        let last = self.config_cache().get();
        if let Some(last) = &last
            && last.is_current(self.dir())?
        {
            return Ok(Arc::clone(&last.config));
        }
        let parse = |text: &str| split_syntax_error(parse_or_reuse(last.as_ref(), text));
        let found =
            read_and_parse(self.io(), self.dir(), CONFIG_FILE, JsonShape::Object.limit(), timeout, parse)?;
        let (snapshot, config) = found.ok_or_else(|| self.no_such_team())?;
        let config = config.map_err(|error| self.malformed_error(&error))?;
        self.config_cache().set(&config, snapshot.stable_version());
        Ok(config)
    }

    /// Adds a member at the end. For the one writer of the config alone, as are those below.
    pub fn add_member(&self, member: &Member) -> Result<(), Error> {
        match self.add_missing_members(std::slice::from_ref(member))?.is_empty() {
            true => Err(Error::AlreadyExists { what: format!("member {}", member.name) }),
            false => Ok(()),
        }
    }

    /// Adds those who are missing, all in one change: beside somebody who writes without the lock what it read a moment
    /// ago, those who came one after the other would be lost again one after the other. Who they were; of two of one name
    /// it is the first.
    ///
    /// # Errors
    /// As those of [`Team::add_member`], but for that of one who is there.
    pub fn add_missing_members(&self, members: &[Member]) -> Result<Vec<AgentName>, Error> {
        let mut missing = Vec::new();
        let last = self.config_cache().get();
        self.change_config(ConfigChange::MembersOnly, |text| {
            let config = parse_or_reuse(last.as_ref(), text)?;
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
        self.change_config(ConfigChange::MembersOnly, |text| without_first_matches(text, names).map(Some))?;
        Ok(())
    }

    /// Sets fields of a member; null takes a field out.
    pub fn set_member_fields(&self, name: &AgentName, fields: &[(&str, Value)]) -> Result<(), Error> {
        match self.change_config(ConfigChange::AnyField, |text| with_member_fields(text, name, fields))? {
            Some(()) => Ok(()),
            None => Err(self.no_such_member(name.as_str(), &self.config()?)),
        }
    }

    /// Sets fields of the team itself, `hiddenPaneIds` for one; null takes a field out.
    pub fn set_fields(&self, fields: &[(&str, Value)]) -> Result<(), Error> {
        self.change_config(ConfigChange::AnyField, |text| with_team_fields(text, fields).map(Some))?;
        Ok(())
    }

    /// None if `edit` found nothing to work on.
    fn change_config(
        &self,
        what: ConfigChange,
        mut edit: impl FnMut(&str) -> Result<Option<String>, ConfigError>,
    ) -> Result<Option<()>, Error> {
        self.check_writable()?;
        let mut found = None;
        let last = self.config_cache().get();
        let written = RefCell::new(None);
        let edit = |text: Option<&str>| {
            let Some(text) = text else { return Ok(Err(self.no_such_team())) };
            let edited = split_syntax_error(edit(text))?.map_err(|error| self.malformed_error(&error));
            found = edited.as_ref().ok().and_then(|edited| edited.is_some().then_some(()));
            let edited = edited.map(|edited| edited.filter(|edited| edited != text));
            let origin =
                last.as_ref().filter(|last| what == ConfigChange::MembersOnly && last.config.text == text);
            let origin = origin.map_or_else(BaseVersion::next, |last| last.config.origin);
            written.replace(edited.as_ref().ok().cloned().flatten().map(|text| (text, origin)));
            Ok(edited)
        };
        let before = last.as_ref().map(|last| last.snapshot(self.dir())).transpose()?.flatten();
        let placed = |known| {
            written.take().iter().for_each(|(text, origin)| self.cache_written(text, *origin, &known));
        };
        modify_file(self.io(), self.dir(), CONFIG_FILE, before, JsonShape::Object, edit, placed)?;
        Ok(found)
    }

    /// Keeps what was just put in place. Whoever writes it from now on leaves another stamp, where stamps tell all changes
    /// apart; elsewhere the text is compared.
    fn cache_written(&self, text: &str, origin: BaseVersion, known: &KnownFile) {
        if let Ok(config) = CachedConfig::parse(text, origin) {
            let is_sure = has_multigrain_timestamps(self.dir()) && known.version().has_subsecond_stamp();
            self.config_cache().set(&config, is_sure.then(|| known.version()));
        }
    }

    fn malformed_error(&self, error: &ConfigError) -> Error {
        Error::Malformed { path: self.config_path(), reason: error.to_string() }
    }
}
