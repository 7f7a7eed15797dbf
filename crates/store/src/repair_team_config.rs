//! Repairs a `config.json` that stays invalid or missing. Older versions of Claude Code first
//! truncate the file and then write it. If Claude Code exits between these steps, the file stays
//! empty.
//!
//! teamd rewrites no other file whose content is invalid. teamd first copies the old content to the
//! state directory. Configs of Claude Code's session teams are never repaired.

use crate::backoff::Backoff;
use crate::error::Error;
use crate::file_io::{
    FILE_LIMIT, FileSnapshot, HALF_WRITTEN_TIMEOUT, JsonShape, PreparedChange, UNLOCKED_ATTEMPTS, read,
    read_raw, sync_dir,
};
use crate::mkdir_lock::Lock;
use crate::root_directory_handle::Root;
use crate::team_file_names::CONFIG_FILE;
use crate::team_handle::Team;
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;
use std::time::Duration;

/// The damage of a config that was repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDamage {
    /// A description without the file's name.
    pub reason: String,
    /// The copy of the old content. `None` if the file was missing or empty.
    pub backup: Option<PathBuf>,
}

/// The state of the config file.
enum ConfigFileState {
    Valid,
    Missing,
    /// The file is not valid JSON. Unless it is empty, a copy is in the state directory.
    Corrupt(Box<FileSnapshot>, ConfigDamage),
}

impl Root {
    /// Opens the team of this name, even if its directory has no `config.json`. `None` if the
    /// team's directory does not exist.
    pub fn open_team_without_config(&self, name: &TeamName) -> Result<Option<Team>, Error> {
        Ok(self.open_team_dir(name)?.map(|dir| self.new_team(name, dir)))
    }
}

impl Team {
    /// Writes `text` as the new `config.json` if the file has been invalid or missing for two
    /// seconds. Returns `None` and changes nothing if the file is valid. The caller must be the
    /// only writer of the config.
    ///
    /// # Errors
    /// `ReadOnly` for a session team of Claude Code. `Corrupt` if the invalid content can't be
    /// copied first, because there are already five copies of this file. The file then stays as it
    /// is.
    pub fn repair_config(&self, text: impl Fn() -> String) -> Result<Option<ConfigDamage>, Error> {
        self.check_writable()?;
        let (io, dir) = (self.io(), self.dir());
        for _ in 0..=UNLOCKED_ATTEMPTS {
            let (before, damage) = match self.inspect_config()? {
                ConfigFileState::Valid => return Ok(None),
                ConfigFileState::Missing => {
                    (None, ConfigDamage { reason: "it was missing".to_owned(), backup: None })
                }
                ConfigFileState::Corrupt(snapshot, damage) => (Some(*snapshot), damage),
            };
            let change = PreparedChange::prepare(io, dir, CONFIG_FILE, before, &text(), JsonShape::Object)?;
            let lock = Lock::acquire(dir, CONFIG_FILE)?;
            if change.commit(&lock)? {
                drop(lock);
                sync_dir(dir, io.durability)?;
                return Ok(Some(damage));
            }
        }
        Err(Error::Contended(self.config_path()))
    }

    /// Determines the state of the config. Waits before it reports an invalid or missing file.
    fn inspect_config(&self) -> Result<ConfigFileState, Error> {
        let (first, longest) = (Duration::from_millis(10), Duration::from_millis(300));
        let mut backoff = Backoff::new(HALF_WRITTEN_TIMEOUT, first, longest);
        loop {
            match read(self.io(), self.dir(), CONFIG_FILE, JsonShape::Object) {
                Ok(Some(_)) => return Ok(ConfigFileState::Valid),
                // An editor may be saving the file by two renames.
                Ok(None) if backoff.wait() => {}
                Ok(None) => return Ok(ConfigFileState::Missing),
                Err(Error::Corrupt { .. }) => return self.back_up_config(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the config again and copies it to the state directory. The file may have changed since
    /// the last read, and the copy must have exactly the bytes that will be replaced.
    fn back_up_config(&self) -> Result<ConfigFileState, Error> {
        let Some(snapshot) = read_raw(self.dir(), CONFIG_FILE, FILE_LIMIT)? else {
            return Ok(ConfigFileState::Missing);
        };
        let Some(reason) = syntax_error(snapshot.bytes()) else { return Ok(ConfigFileState::Valid) };
        if snapshot.bytes().is_empty() {
            return Ok(ConfigFileState::Corrupt(Box::new(snapshot), ConfigDamage { reason, backup: None }));
        }
        let path = self.config_path();
        match self.io().backups.save(&path, snapshot.bytes())? {
            None => Err(Error::Corrupt { path, reason, backup: None }),
            backup => Ok(ConfigFileState::Corrupt(Box::new(snapshot), ConfigDamage { reason, backup })),
        }
    }
}

/// Why the bytes are not a JSON object. `None` if they are one.
fn syntax_error(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some("it was empty".to_owned());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => JsonShape::Object.check(text).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}
