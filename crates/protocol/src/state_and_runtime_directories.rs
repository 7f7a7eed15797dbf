//! Computes the paths of the directories for teamd's own files. Each root has its own directories.
//!
//! The control socket is in the runtime directory. Everything that must remain after a daemon ends
//! is in the state directory. Both paths contain a hash of the root's path, so that two roots never
//! share files. The module does no I/O: the caller reads the environment and creates the
//! directories.

use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The environment from which [`Directories`] are computed.
#[derive(Debug, Clone, Default)]
pub struct DirectoryEnvironment {
    /// Value of `$XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// Value of `$XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// Value of `$HOME`.
    pub home: Option<PathBuf>,
    /// The effective user id, for the fallback directory in `/tmp`.
    pub uid: u32,
}

/// The directories that belong to one root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    /// Holds the control socket. Lost at a reboot.
    pub runtime_dir: PathBuf,
    /// Holds the lock, the roster, the event log, agents' output and copies of damaged files.
    pub state_dir: PathBuf,
}

impl Directories {
    /// Returns the directories for `root`. The path `root` must be canonical, because different
    /// spellings of a path give different directories.
    pub fn for_root(root: &Path, environment: &DirectoryEnvironment) -> Directories {
        let hash = Uuid::new_v5(&Uuid::NAMESPACE_URL, root.as_os_str().as_encoded_bytes());
        let short = &hash.simple().to_string()[..12];
        let runtime = match &environment.runtime_dir {
            Some(dir) => dir.join("teamd"),
            None => PathBuf::from(format!("/tmp/teamd-{}", environment.uid)),
        };
        let state = match (&environment.state_home, &environment.home) {
            (Some(dir), _) => dir.join("teamd"),
            (None, Some(home)) => home.join(".local/state/teamd"),
            (None, None) => runtime.join("state"),
        };
        Directories { runtime_dir: runtime.join(short), state_dir: state.join(short) }
    }

    /// Path of the control socket. A user can choose another one.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime_dir.join("control.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_root_has_its_own_directories() {
        let environment = DirectoryEnvironment {
            home: Some("/home/u".into()),
            uid: 1000,
            ..DirectoryEnvironment::default()
        };
        let a = Directories::for_root(Path::new("/home/u/.claude"), &environment);
        let b = Directories::for_root(Path::new("/home/u/other"), &environment);
        assert_ne!(a.control_socket(), b.control_socket());
        assert_eq!(a, Directories::for_root(Path::new("/home/u/.claude"), &environment));
        assert!(a.runtime_dir.starts_with("/tmp/teamd-1000"), "{a:?}");
        assert!(a.state_dir.starts_with("/home/u/.local/state/teamd"), "{a:?}");
    }
}
