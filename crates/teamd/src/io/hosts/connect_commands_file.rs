//! The file `hosts.json`: the identity of this home, and how it connects to other hosts.

use protocol::control_socket::{FIRST_LINK_GENERATION, HomeId};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::state_file_names::HOSTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    /// Reads `hosts.json`. If the file does not exist, returns contents without hosts and with a
    /// new random id for this home.
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
                let machine = rustix::system::uname();
                let (machine, id) = (machine.nodename().to_string_lossy(), uuid::Uuid::new_v4().to_string());
                let home = HomeId::with_machine(&machine, &id).expect("all characters are allowed");
                Ok(ConnectCommandsFile { home, commands: BTreeMap::new(), generations: BTreeMap::new() })
            }
        }
    }

    /// The generation of the link to a host.
    fn generation(&self, host: &HostName) -> u32 {
        self.generations.get(host).copied().unwrap_or(FIRST_LINK_GENERATION)
    }

    /// With this connect command of a host. `None` if nothing changes.
    fn with_command(&self, host: &HostName, command: &[String]) -> Option<ConnectCommandsFile> {
        let mut changed = self.clone();
        let known = changed.commands.insert(host.clone(), command.to_vec());
        (known.as_deref() != Some(command)).then_some(changed)
    }

    /// Without a host. `None` if it has no command.
    fn without_host(&self, host: &HostName) -> Option<ConnectCommandsFile> {
        let mut changed = self.clone();
        changed.commands.remove(host)?;
        changed.generations.insert(host.clone(), self.generation(host) + 1);
        Some(changed)
    }

    fn write(&self, dir: &StateDir) -> Result<(), ErrorReport> {
        let json = serde_json::to_vec_pretty(self).expect("names and commands are valid JSON");
        Ok(dir.replace(HOSTS, &json)?)
    }
}

/// The contents of `hosts.json`, for all links. The contents are not locked while the file is
/// written, so the event loop can read them at any time.
#[derive(Debug)]
pub(super) struct SharedConnectCommands {
    contents: Mutex<ConnectCommandsFile>,
    /// Locked while the file is written.
    write: Mutex<()>,
}

impl SharedConnectCommands {
    pub(super) fn new(contents: ConnectCommandsFile) -> SharedConnectCommands {
        SharedConnectCommands { contents: Mutex::new(contents), write: Mutex::default() }
    }

    /// The generation of the link to a host.
    pub(super) fn generation(&self, host: &HostName) -> u32 {
        lock(&self.contents).generation(host)
    }

    /// Whether the file has a command for the host.
    pub(super) fn has_command(&self, host: &HostName) -> bool {
        lock(&self.contents).commands.contains_key(host)
    }

    /// Saves the command that connects to a host. Does nothing if it is saved already.
    ///
    /// # Errors
    ///
    /// If the file can't be written. The command is not changed then.
    pub(super) fn set_command(
        &self,
        dir: &StateDir,
        host: &HostName,
        command: &[String],
    ) -> Result<(), ErrorReport> {
        self.change(dir, |contents| contents.with_command(host, command))
    }

    /// Forgets a host. The next link to this host has the next generation. Does nothing if the file
    /// has no such host.
    ///
    /// # Errors
    ///
    /// If the file can't be written. The host is not forgotten then.
    pub(super) fn forget(&self, dir: &StateDir, host: &HostName) -> Result<(), ErrorReport> {
        self.change(dir, |contents| contents.without_host(host))
    }

    fn change(
        &self,
        dir: &StateDir,
        change: impl FnOnce(&ConnectCommandsFile) -> Option<ConnectCommandsFile>,
    ) -> Result<(), ErrorReport> {
        let _write = lock(&self.write);
        let before = lock(&self.contents).clone();
        let Some(after) = change(&before) else { return Ok(()) };
        after.write(dir)?;
        *lock(&self.contents) = after;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_and_commands_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let file = SharedConnectCommands::new(ConnectCommandsFile::read(&state).unwrap());
        let host = HostName::parse("devbox").unwrap();
        file.set_command(&state, &host, &["ssh".to_owned(), "devbox".to_owned()]).unwrap();
        let (read, shared) = (ConnectCommandsFile::read(&state).unwrap(), lock(&file.contents).clone());
        assert_eq!((read.home, read.commands), (shared.home, shared.commands));
        file.forget(&state, &host).unwrap();
        file.forget(&state, &host).unwrap();
        let read = ConnectCommandsFile::read(&state).unwrap();
        assert_eq!((read.generation(&host), read.commands.len()), (2, 0), "a repeated command has no effect");
        state.replace(HOSTS, b"{").unwrap();
        assert!(ConnectCommandsFile::read(&state).unwrap_err().message.contains("cannot read"));
    }

    #[test]
    fn contents_can_be_read_while_the_file_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let file = SharedConnectCommands::new(ConnectCommandsFile::read(&state).unwrap());
        let host = HostName::parse("devbox").unwrap();
        // The change runs as the write does: with the lock of writers.
        file.change(&state, |contents| {
            assert!(!file.has_command(&host));
            contents.with_command(&host, &["ssh".to_owned()])
        })
        .unwrap();
        assert!(file.has_command(&host));
    }
}
