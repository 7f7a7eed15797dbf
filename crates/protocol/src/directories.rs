//! Where things of ours lie: the control socket in the runtime directory, everything that outlives a
//! daemon in the state directory, both by a short hash of the root's path, so that two roots never meet.
//! Pure: the caller brings the environment and makes the directories.

use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The environment that decides the places.
#[derive(Debug, Clone, Default)]
pub struct DirectoryEnvironment {
    /// `$XDG_RUNTIME_DIR`
    pub runtime_dir: Option<PathBuf>,
    /// `$XDG_STATE_HOME`
    pub state_home: Option<PathBuf>,
    /// `$HOME`
    pub home: Option<PathBuf>,
    /// The effective user id, for the fallback below `/tmp`.
    pub uid: u32,
}

/// The directories that belong to one root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    /// Holds the socket; gone after a reboot.
    pub runtime_dir: PathBuf,
    /// Holds lock, roster, event log, agents' output and copies of damaged files.
    pub state_dir: PathBuf,
}

impl Directories {
    /// The places for `root`, which must be canonical: two spellings would be two places.
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

    /// The control socket, unless the user names another.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime_dir.join("control.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_roots_have_two_places_and_one_root_has_one() {
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
