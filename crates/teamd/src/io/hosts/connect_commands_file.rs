//! The file `hosts.json`: the identity of this home, and how it connects to other hosts.

use protocol::control_socket::HomeId;
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
                Ok(ConnectCommandsFile { home, commands: BTreeMap::new() })
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
        assert_eq!((read.home, read.commands), (file.home, file.commands));
        state.replace(HOSTS, b"{").unwrap();
        assert!(ConnectCommandsFile::read(&state).unwrap_err().message.contains("cannot read"));
    }
}
