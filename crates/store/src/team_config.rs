//! Reads and changes a team's `config.json`, which lists all members.
//!
//! The config that was read or written last is kept in a cache. The file is read again only if a
//! `stat` shows a change, and parsed again only if its text differs. This saves time when members
//! join or leave a large team.

use crate::error::Error;
use crate::file_io::{HALF_WRITTEN_TIMEOUT, JsonShape, KnownFile, modify_file, read_and_parse, read_raw};
use crate::team_config_cache::{BaseVersion, CachedConfig, parse_or_reuse};
use crate::team_file_names::CONFIG_FILE;
use crate::team_handle::{ConfigWait, Team};
use protocol::format_preserving_json;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{
    ConfigError, Member, TeamConfig, with_member_fields, with_members, with_team_fields,
    without_first_matches,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a reader waits while the config is invalid. The daemon repairs a config that has been
/// invalid for `HALF_WRITTEN_TIMEOUT` (two seconds), but it may have other work to do first.
const CONFIG_REPAIR_TIMEOUT: Duration = HALF_WRITTEN_TIMEOUT.saturating_add(Duration::from_secs(3));

/// What a change of the config changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfigChange {
    /// Whole members that teamd adds or removes.
    MembersOnly,
    AnyField,
}

/// Separates JSON syntax errors from other errors of a config. The outer error is a syntax error:
/// the file may be half-written, so the caller reads it again. The inner error is any other error.
fn split_syntax_error<T>(
    result: Result<T, ConfigError>,
) -> Result<Result<T, ConfigError>, format_preserving_json::JsonError> {
    match result {
        Err(ConfigError::Json(error)) => Err(error),
        result => Ok(result),
    }
}

impl Team {
    /// Reads the team's config. If the config is not valid JSON, waits long enough for the daemon
    /// to repair it. A handle from [`Team::as_repairer`] does not wait for a repair, but only for
    /// the end of a write that another program may have begun.
    ///
    /// # Errors
    /// `NoSuchTeam`, `Corrupt`, `Malformed`, `Io`.
    pub fn config(&self) -> Result<TeamConfig, Error> {
        Ok(self.cached_config()?.team.clone())
    }

    /// Reads the team's config like [`Team::config`], but returns the cached config without copying
    /// it.
    ///
    /// # Errors
    /// As [`Team::config`].
    pub fn cached_config(&self) -> Result<Arc<CachedConfig>, Error> {
        let timeout = match self.config_wait() {
            ConfigWait::UntilRepaired => CONFIG_REPAIR_TIMEOUT,
            ConfigWait::HalfWrittenOnly => HALF_WRITTEN_TIMEOUT,
        };
        let cached = self.config_cache().get();
        if let Some(cached) = &cached
            && cached.is_current(self.dir())?
        {
            return Ok(Arc::clone(&cached.config));
        }
        let parse = |text: &str| split_syntax_error(parse_or_reuse(cached.as_ref(), text));
        let snapshot_and_config =
            read_and_parse(self.io(), self.dir(), CONFIG_FILE, JsonShape::Object.limit(), timeout, parse)?;
        let (snapshot, config) = snapshot_and_config.ok_or_else(|| self.no_such_team())?;
        let config = config.map_err(|error| self.malformed_error(&error))?;
        self.config_cache().set(&config, snapshot.stable_version());
        Ok(config)
    }

    /// Reads the team's config without waiting. `None` if the file is missing or invalid now.
    pub fn config_if_valid(&self) -> Option<TeamConfig> {
        Some(self.cached_config_if_valid()?.team.clone())
    }

    /// Reads the team's config like [`Team::config_if_valid`], but returns the cached config
    /// without copying it.
    pub fn cached_config_if_valid(&self) -> Option<Arc<CachedConfig>> {
        let cached = self.config_cache().get();
        if let Some(cached) = &cached
            && cached.is_current(self.dir()).ok()?
        {
            return Some(Arc::clone(&cached.config));
        }
        let snapshot = read_raw(self.dir(), CONFIG_FILE, JsonShape::Object.limit()).ok()??;
        let version = snapshot.stable_version();
        let config =
            parse_or_reuse(cached.as_ref(), std::str::from_utf8(&snapshot.into_bytes()).ok()?).ok()?;
        self.config_cache().set(&config, version);
        Some(config)
    }

    /// Appends a member. The caller must be the only process that changes members.
    ///
    /// # Errors
    /// `AlreadyExists` if there is a member of this name; errors of the files.
    pub fn add_member(&self, member: &Member) -> Result<(), Error> {
        match self.add_missing_members(std::slice::from_ref(member))?.is_empty() {
            true => Err(Error::AlreadyExists { what: format!("member {}", member.name) }),
            false => Ok(()),
        }
    }

    /// Appends those of `members` that are missing from the config, in one change. Returns their
    /// names. If two of `members` have the same name, the first is used.
    ///
    /// All members are added in one change, because a program that writes the config without the
    /// lock may undo a change. The more changes teamd makes, the more likely this is.
    ///
    /// # Errors
    /// As [`Team::add_member`], but an existing member is not an error.
    pub fn add_missing_members(&self, members: &[Member]) -> Result<Vec<MemberName>, Error> {
        let mut added_names = Vec::new();
        let cached = self.config_cache().get();
        self.change_config(ConfigChange::MembersOnly, |text| {
            let config = parse_or_reuse(cached.as_ref(), text)?;
            let mut present_names: HashSet<&MemberName> =
                config.members.iter().map(|member| &member.name).collect();
            let added_members: Vec<&Member> =
                members.iter().filter(|member| present_names.insert(&member.name)).collect();
            added_names = added_members.iter().map(|member| member.name.clone()).collect();
            with_members(text, &added_members).map(Some)
        })?;
        Ok(added_names)
    }

    /// Removes a member. A missing member is not an error.
    pub fn remove_member(&self, name: &MemberName) -> Result<(), Error> {
        self.remove_members(std::slice::from_ref(name))
    }

    /// Removes members in one change. Missing members are not an error.
    pub fn remove_members(&self, names: &[MemberName]) -> Result<(), Error> {
        self.change_config(ConfigChange::MembersOnly, |text| without_first_matches(text, names).map(Some))?;
        Ok(())
    }

    /// Sets fields of a member. A null removes a field.
    pub fn set_member_fields(&self, name: &MemberName, fields: &[(&str, Value)]) -> Result<(), Error> {
        match self.change_config(ConfigChange::AnyField, |text| with_member_fields(text, name, fields))? {
            Some(()) => Ok(()),
            None => Err(self.no_such_member(name.as_str(), &self.config()?)),
        }
    }

    /// Sets fields of the team, such as `hiddenPaneIds`. A null removes a field.
    pub fn set_fields(&self, fields: &[(&str, Value)]) -> Result<(), Error> {
        self.change_config(ConfigChange::AnyField, |text| with_team_fields(text, fields).map(Some))?;
        Ok(())
    }

    /// Changes the text of the config by `edit`. Returns `None` if `edit` returned `None`, for
    /// example because the member is missing.
    fn change_config(
        &self,
        kind: ConfigChange,
        mut edit: impl FnMut(&str) -> Result<Option<String>, ConfigError>,
    ) -> Result<Option<()>, Error> {
        self.check_writable()?;
        let mut change = None;
        let cached = self.config_cache().get();
        let new_config = RefCell::new(None);
        let edit = |text: Option<&str>| {
            let Some(text) = text else { return Ok(Err(self.no_such_team())) };
            let new_text = split_syntax_error(edit(text))?.map_err(|error| self.malformed_error(&error));
            change = new_text.as_ref().ok().and_then(|new_text| new_text.is_some().then_some(()));
            let new_text = new_text.map(|new_text| new_text.filter(|new_text| new_text != text));
            let base_version = cached
                .as_ref()
                .filter(|cached| kind == ConfigChange::MembersOnly && cached.config.text == text);
            let base_version =
                base_version.map_or_else(BaseVersion::next, |cached| cached.config.base_version);
            new_config.replace(new_text.as_ref().ok().cloned().flatten().map(|text| (text, base_version)));
            Ok(new_text)
        };
        let snapshot = cached.as_ref().map(|cached| cached.snapshot(self.dir())).transpose()?.flatten();
        let on_placed = |file| {
            new_config
                .take()
                .iter()
                .for_each(|(text, base_version)| self.cache_written(text, *base_version, &file));
        };
        modify_file(self.io(), self.dir(), CONFIG_FILE, snapshot, JsonShape::Object, edit, on_placed)?;
        Ok(change)
    }

    /// Puts the config that was just written to the file into the cache. The file's version (inode,
    /// size and timestamps) is cached only if the file system gives each change a different
    /// timestamp. Without a cached version, the next call reads the file and compares the text.
    fn cache_written(&self, text: &str, base_version: BaseVersion, file: &KnownFile) {
        if let Ok(config) = CachedConfig::parse(text, base_version) {
            let is_reliable = self.dir().has_multigrain_timestamps() && file.version().has_subsecond_stamp();
            self.config_cache().set(&config, is_reliable.then(|| file.version()));
        }
    }

    fn malformed_error(&self, error: &ConfigError) -> Error {
        Error::Malformed { path: self.config_path(), reason: error.to_string() }
    }
}
