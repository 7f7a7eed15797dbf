//! The file `hosts.json`: the identity of this home, and how it connects to other hosts.

use protocol::control_socket::{FIRST_LINK_GENERATION, HomeId};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::state_file_names::HOSTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::StateDir;

/// The contents of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ConnectCommandsFile {
    /// Identity of this home, by which the annexes know its links.
    pub(super) home: HomeId,
    /// The connect command of each host.
    pub(super) commands: BTreeMap<HostName, Vec<String>>,
    /// The generations of the links to hosts that were forgotten before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    generations: BTreeMap<HostName, u32>,
}

impl ConnectCommandsFile {
    /// Reads the file. If it does not exist, returns a new identity and no hosts.
    ///
    /// # Errors
    ///
    /// If the file can't be read or is damaged.
    pub(super) fn read(dir: &StateDir) -> Result<ConnectCommandsFile, ErrorReport> {
        match dir.read(HOSTS)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let path = dir.path().join(HOSTS);
                let message = format!("cannot read {}: {error}", path.display());
                ErrorReport::new(ErrorKind::InvalidData, message)
            }),
            None => {
                let id = uuid::Uuid::new_v4().to_string();
                let home = HomeId::parse(&id).expect("a uuid has digits, letters and hyphens");
                Ok(ConnectCommandsFile { home, commands: BTreeMap::new(), generations: BTreeMap::new() })
            }
        }
    }

    /// Records the connect command of a host. Does nothing if it is recorded already.
    ///
    /// # Errors
    ///
    /// If the file can't be written. The command is not recorded then.
    pub(super) fn set_command(
        &mut self,
        dir: &StateDir,
        host: &HostName,
        command: &[String],
    ) -> Result<(), ErrorReport> {
        if self.commands.get(host).is_some_and(|known| known == command) {
            return Ok(());
        }
        let mut changed = self.clone();
        changed.commands.insert(host.clone(), command.to_vec());
        self.store(dir, changed)
    }

    /// The generation of the link to a host.
    pub(super) fn generation(&self, host: &HostName) -> u32 {
        self.generations.get(host).copied().unwrap_or(FIRST_LINK_GENERATION)
    }

    /// Forgets a host. The next link to it has the next generation. Does nothing if the file has no
    /// command for it.
    ///
    /// # Errors
    ///
    /// If the file can't be written. The host is not forgotten then.
    pub(super) fn forget(&mut self, dir: &StateDir, host: &HostName) -> Result<(), ErrorReport> {
        let mut changed = self.clone();
        if changed.commands.remove(host).is_none() {
            return Ok(());
        }
        changed.generations.insert(host.clone(), self.generation(host) + 1);
        self.store(dir, changed)
    }

    fn store(&mut self, dir: &StateDir, changed: ConnectCommandsFile) -> Result<(), ErrorReport> {
        let json = serde_json::to_vec_pretty(&changed).expect("names and commands are valid JSON");
        dir.replace(HOSTS, &json)?;
        *self = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_and_commands_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let mut file = ConnectCommandsFile::read(&state).unwrap();
        let host = HostName::parse("devbox").unwrap();
        file.set_command(&state, &host, &["ssh".to_owned(), "devbox".to_owned()]).unwrap();
        let read = ConnectCommandsFile::read(&state).unwrap();
        assert_eq!((read.home, read.commands), (file.home.clone(), file.commands.clone()));
        let forget = |file: &mut ConnectCommandsFile| file.forget(&state, &host).unwrap();
        forget(&mut file);
        forget(&mut file);
        let read = ConnectCommandsFile::read(&state).unwrap();
        assert_eq!((read.generation(&host), read.commands.len()), (2, 0), "a repeated command has no effect");
        state.replace(HOSTS, b"{").unwrap();
        assert!(ConnectCommandsFile::read(&state).unwrap_err().message.contains("cannot read"));
    }
}
