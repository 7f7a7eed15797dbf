//! The config.json as a handle on the team saw it last: parsed, with its text.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::{FileSnapshot, FileVersion};
use crate::layout::CONFIG_FILE;
use protocol::team_config::{ConfigError, TeamConfig};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a config.json said, with the text that says so.
#[derive(Debug)]
pub struct CachedConfig {
    pub(crate) team: TeamConfig,
    pub(crate) text: String,
    pub(crate) origin: BaseVersion,
}

/// What a config has in common with all that came of it by members that we have put there or taken out: the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseVersion(u64);

impl BaseVersion {
    pub(crate) fn next() -> BaseVersion {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BaseVersion(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl CachedConfig {
    pub(crate) fn parse(text: &str, origin: BaseVersion) -> Result<Arc<CachedConfig>, ConfigError> {
        Ok(Arc::new(CachedConfig { team: TeamConfig::parse(text)?, text: text.to_owned(), origin }))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same for two that differ in nothing but members that `Team::add_missing_members` and `Team::remove_members` have put
    /// there or taken out, one after the other.
    pub fn origin(&self) -> BaseVersion {
        self.origin
    }
}

impl Deref for CachedConfig {
    type Target = TeamConfig;

    fn deref(&self) -> &TeamConfig {
        &self.team
    }
}

/// The config as one handle on the team, or a copy of it, saw it last; none before the first look.
#[derive(Debug, Default)]
pub(crate) struct ConfigCache(Mutex<Option<CachedRead>>);

#[derive(Debug, Clone)]
pub(crate) struct CachedRead {
    pub(crate) config: Arc<CachedConfig>,
    /// What the file was when it said that; none where that can't tell whether it still does.
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
    /// Whether the file is known to say this still.
    pub(crate) fn is_current(&self, dir: &DirHandle) -> Result<bool, Error> {
        let Some(file) = self.version else { return Ok(false) };
        Ok(FileVersion::stat_file(dir, CONFIG_FILE)? == Some(file))
    }

    /// The file, where it is known to say this still.
    pub(crate) fn snapshot(&self, dir: &DirHandle) -> Result<Option<FileSnapshot>, Error> {
        let Some(file) = self.version else { return Ok(None) };
        FileSnapshot::from_cache(dir, CONFIG_FILE, file, &self.config.text)
    }
}

/// What a text says, by what was kept where that has the same.
pub(crate) fn parse_or_reuse(
    last: Option<&CachedRead>,
    text: &str,
) -> Result<Arc<CachedConfig>, ConfigError> {
    match last.filter(|last| last.config.text == text) {
        Some(last) => Ok(Arc::clone(&last.config)),
        None => CachedConfig::parse(text, BaseVersion::next()),
    }
}
