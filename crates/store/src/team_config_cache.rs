//! Cache of the last `config.json` that a [`crate::Team`] read: its text and the parsed config.
//! The handles of a team share it.

use crate::config_difference::{MemberDifference, compare_members};
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{FileSnapshot, FileVersion};
use crate::team_file_names::CONFIG_FILE;
use protocol::annex_link::MemberEntry;
use protocol::team_and_member_names::TeamName;
use protocol::team_config::{ConfigError, TeamConfig};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A parsed `config.json` and its text.
#[derive(Debug)]
pub struct CachedConfig {
    pub(crate) team: TeamConfig,
    pub(crate) text: String,
    pub(crate) base_version: BaseVersion,
    pub(crate) last_difference: LastDifference,
    /// The entries of the members. Empty until a caller needs them.
    entries: OnceLock<Vec<MemberEntry>>,
}

/// Identifies the content of a team's config apart from its members. If two configs have the same
/// `BaseVersion`, they differ only in members that teamd added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseVersion(u64);

impl BaseVersion {
    pub(crate) fn next() -> BaseVersion {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BaseVersion(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl CachedConfig {
    pub(crate) fn parse(text: &str, base_version: BaseVersion) -> Result<Arc<CachedConfig>, ConfigError> {
        let (team, text) = (TeamConfig::parse(text)?, text.to_owned());
        let (last_difference, entries) = (LastDifference::default(), OnceLock::new());
        Ok(Arc::new(CachedConfig { team, text, base_version, last_difference, entries }))
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The entries of the members, in their order. All callers share the texts.
    pub fn member_entries(&self) -> &[MemberEntry] {
        self.entries.get_or_init(|| self.team.members.iter().map(MemberEntry::from).collect())
    }

    /// The base version of this config. Two configs with the same base version differ only in
    /// members that `Team::add_missing_members` and `Team::remove_members` added or removed.
    pub fn base_version(&self) -> BaseVersion {
        self.base_version
    }
}

/// The last result of [`CachedConfig::members_since`]. It is kept because after a change of the
/// config, each link to another host asks for the same difference: that between the new config and
/// the previous one.
#[derive(Debug, Default)]
pub(crate) struct LastDifference(Mutex<Option<ComparedConfig>>);

/// An earlier config, and the difference to it. No difference if a name is used twice.
type ComparedConfig = (Weak<CachedConfig>, Option<Arc<MemberDifference>>);

impl CachedConfig {
    /// How the members differ from those of an earlier config. `None` if one of the configs has two
    /// members of the same name.
    pub fn members_since(&self, earlier: &Arc<CachedConfig>) -> Option<Arc<MemberDifference>> {
        // Other callers wait for the difference that the first one makes.
        let mut last = self.last_difference.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((config, difference)) = &*last
            && std::ptr::eq(config.as_ptr(), Arc::as_ptr(earlier))
        {
            return difference.clone();
        }
        let difference = compare_members(earlier, self).map(Arc::new);
        *last = Some((Arc::downgrade(earlier), difference.clone()));
        difference
    }
}

impl Deref for CachedConfig {
    type Target = TeamConfig;

    fn deref(&self) -> &TeamConfig {
        &self.team
    }
}

/// The caches of all teams that have a handle, by team name. If a team was deleted and created
/// again, the new team may get the cache of the old one. The inode in the cached version shows that
/// `config.json` is another file, so the file is read again.
#[derive(Debug, Default)]
pub(crate) struct ConfigCaches(Mutex<HashMap<TeamName, Weak<ConfigCache>>>);

impl ConfigCaches {
    /// The cache that all handles of the team share.
    pub(crate) fn cache_of(&self, team: &TeamName) -> Arc<ConfigCache> {
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = caches.get(team).and_then(Weak::upgrade).unwrap_or_default();
        caches.insert(team.clone(), Arc::downgrade(&cache));
        cache
    }
}

/// The config that the handles of a team read last. `None` before the first read.
#[derive(Debug, Default)]
pub(crate) struct ConfigCache(Mutex<Option<CachedRead>>);

#[derive(Debug, Clone)]
pub(crate) struct CachedRead {
    pub(crate) config: Arc<CachedConfig>,
    /// The version of `config.json` (inode, size and timestamps) when the config was read. A
    /// different version means that the file was changed. `None` if the file must be read again in
    /// any case: its last change was so recent that a further change might get the same timestamps.
    version: Option<FileVersion>,
}

impl ConfigCache {
    pub(crate) fn get(&self) -> Option<CachedRead> {
        self.lock().clone()
    }

    pub(crate) fn set(&self, config: &Arc<CachedConfig>, file: Option<FileVersion>) {
        *self.lock() = Some(CachedRead { config: Arc::clone(config), version: file });
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedRead>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedRead {
    /// Whether the file is known to be unchanged since it was read.
    pub(crate) fn is_current(&self, dir: &DirHandle) -> Result<bool, Error> {
        let Some(file) = self.version else { return Ok(false) };
        Ok(FileVersion::stat_file(dir, CONFIG_FILE)? == Some(file))
    }

    /// The cached text as a snapshot of the file. `None` if the file is not known to be unchanged.
    pub(crate) fn snapshot(&self, dir: &DirHandle) -> Result<Option<FileSnapshot>, Error> {
        let Some(file) = self.version else { return Ok(None) };
        FileSnapshot::from_cache(dir, CONFIG_FILE, file, &self.config.text)
    }
}

/// Parses `text`. If the cached text is the same, returns the cached config instead.
pub(crate) fn parse_or_reuse(
    cached: Option<&CachedRead>,
    text: &str,
) -> Result<Arc<CachedConfig>, ConfigError> {
    match cached.filter(|cached| cached.config.text == text) {
        Some(cached) => Ok(Arc::clone(&cached.config)),
        None => CachedConfig::parse(text, BaseVersion::next()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_question_gets_the_kept_difference() {
        let config = |members: &[&str]| {
            let members: Vec<String> = members.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
            let text = format!(r#"{{"name":"t","members":[{}]}}"#, members.join(","));
            CachedConfig::parse(&text, BaseVersion::next()).unwrap()
        };
        let (first, second, third) = (config(&["a"]), config(&["a", "b"]), config(&["a", "c"]));
        let difference = third.members_since(&first).unwrap();
        assert!(Arc::ptr_eq(&difference, &third.members_since(&first).unwrap()));
        assert_eq!(third.members_since(&second).unwrap().removed.len(), 1);
    }
}
