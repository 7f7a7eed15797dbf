//! The messages that this end must not send or store again: both ends have them, or they are on
//! their way. A file records them, so that this also holds after a restart.

use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::HashSet;
use store::{AppendOnlyFile, Durability, Error, StateDir};

/// The messages of one team that both ends have, by inbox and id.
#[derive(Debug)]
pub(crate) struct KnownMessages {
    file: AppendOnlyFile,
    keys: HashSet<String>,
}

impl KnownMessages {
    /// Reads the record of a team.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn open(state: &StateDir, team: &TeamName) -> Result<KnownMessages, Error> {
        let dir = StateDir::open(state.path())?;
        let (file, lines) = AppendOnlyFile::open(dir, &messages_file(team), Durability::Process)?;
        let keys = String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect();
        Ok(KnownMessages { file, keys })
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Notes a message in memory only, until the link keeps it.
    pub(crate) fn note(&mut self, key: &str) {
        self.keys.insert(key.to_owned());
    }

    /// Records messages in memory and in the file.
    ///
    /// # Errors
    ///
    /// `Io`. After this error, nothing is recorded.
    pub(crate) fn record(&mut self, keys: &[String]) -> Result<(), Error> {
        let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
        self.file.append(lines.as_bytes())?;
        self.keys.extend(keys.iter().cloned());
        Ok(())
    }
}

/// The key of a message in the inbox of `owner`.
pub(crate) fn message_key(owner: &MemberName, id: &str) -> String {
    format!("{}/{id}", owner.file_stem().to_ascii_lowercase())
}

/// The name of the file with the messages of a team.
pub(crate) fn messages_file(team: &TeamName) -> String {
    format!("{team}.messages")
}
