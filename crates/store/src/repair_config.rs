//! A config.json that stayed damaged, or stayed away, made whole again. Old clients truncate the file, write it
//! later, and now and then end in between: then it is empty for good. The one kind of file that is rewritten although
//! it does not parse, and for teams of ours alone; what it said is set aside first.

use crate::backoff::Backoff;
use crate::error::Error;
use crate::file::{
    FILE_LIMIT, FileSnapshot, HALF_WRITTEN_TIMEOUT, JsonShape, PreparedChange, UNLOCKED_ATTEMPTS, read,
    read_raw, sync_dir,
};
use crate::layout::CONFIG_FILE;
use crate::lock::Lock;
use crate::root::Root;
use crate::team::Team;
use protocol::name::TeamName;
use std::path::PathBuf;
use std::time::Duration;

/// What was wrong with a config that has been made whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDamage {
    /// In words, without the file's name.
    pub reason: String,
    /// What it said; none where that was nothing.
    pub backup: Option<PathBuf>,
}

/// What is there.
enum ConfigFileState {
    Valid,
    Missing,
    /// It does not parse, and is kept.
    Corrupt(Box<FileSnapshot>, ConfigDamage),
}

impl Root {
    /// The team of that name, also where its directory has no config.json; none where there is no directory.
    pub fn open_team_without_config(&self, name: &TeamName) -> Result<Option<Team>, Error> {
        Ok(self.open_team_dir(name)?.map(|dir| self.new_team(name, dir)))
    }
}

impl Team {
    /// Puts `text` in the place of a config.json that has not parsed for two seconds, or that was missing for as
    /// long. None where it is whole: then nothing was changed. For the one writer of the config alone.
    ///
    /// # Errors
    /// `ReadOnly` for a team of Claude Code's own; `Corrupt` with no copy where there are copies enough already,
    /// since what can't be kept is not replaced.
    pub fn repair_config(&self, text: impl Fn() -> String) -> Result<Option<ConfigDamage>, Error> {
        self.check_writable()?;
        let (way, dir) = (self.io(), self.dir());
        for _ in 0..=UNLOCKED_ATTEMPTS {
            let (before, damage) = match self.inspect_config()? {
                ConfigFileState::Valid => return Ok(None),
                ConfigFileState::Missing => {
                    (None, ConfigDamage { reason: "it was missing".to_owned(), backup: None })
                }
                ConfigFileState::Corrupt(snapshot, damage) => (Some(*snapshot), damage),
            };
            let change = PreparedChange::prepare(way, dir, CONFIG_FILE, before, &text(), JsonShape::Object)?;
            let lock = Lock::acquire(dir, CONFIG_FILE)?;
            if change.commit(&lock)? {
                drop(lock);
                sync_dir(dir, way.durability)?;
                return Ok(Some(damage));
            }
        }
        Err(Error::Contended(self.config_path()))
    }

    /// After a wait, unless it is whole.
    fn inspect_config(&self) -> Result<ConfigFileState, Error> {
        let (first, longest) = (Duration::from_millis(10), Duration::from_millis(300));
        let mut pause = Backoff::new(HALF_WRITTEN_TIMEOUT, first, longest);
        loop {
            match read(self.io(), self.dir(), CONFIG_FILE, JsonShape::Object) {
                Ok(Some(_)) => return Ok(ConfigFileState::Valid),
                // An editor, say, that saves by two renames.
                Ok(None) if pause.wait() => {}
                Ok(None) => return Ok(ConfigFileState::Missing),
                Err(Error::Corrupt { .. }) => return self.back_up_config(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Of just the bytes that are to be replaced: it may have changed since it was read.
    fn back_up_config(&self) -> Result<ConfigFileState, Error> {
        let Some(snapshot) = read_raw(self.dir(), CONFIG_FILE, FILE_LIMIT)? else {
            return Ok(ConfigFileState::Missing);
        };
        let Some(why) = syntax_error(snapshot.bytes()) else { return Ok(ConfigFileState::Valid) };
        if snapshot.bytes().is_empty() {
            return Ok(ConfigFileState::Corrupt(
                Box::new(snapshot),
                ConfigDamage { reason: why, backup: None },
            ));
        }
        let path = self.config_path();
        match self.io().backups.save(&path, snapshot.bytes())? {
            None => Err(Error::Corrupt { path, reason: why, backup: None }),
            copy => {
                Ok(ConfigFileState::Corrupt(Box::new(snapshot), ConfigDamage { reason: why, backup: copy }))
            }
        }
    }
}

/// Why these bytes are no config; none where they are one, as far as their shape goes.
fn syntax_error(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some("it was empty".to_owned());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => JsonShape::Object.check(text).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}
