//! All of teamd's programs use this module to find two things from their environment: the root,
//! which has all team files (usually `~/.claude`), and the directories of teamd's own files.

use nix::unistd::geteuid;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_and_runtime_directories::{Directories, DirectoryEnvironment};
use std::path::{Path, PathBuf};

/// The path of the root: `explicit_root` if set, otherwise `$CLAUDE_CONFIG_DIR`, otherwise
/// `~/.claude`. Symbolic links in the path are not resolved.
///
/// # Errors
/// `Config` if `explicit_root` is `None` and neither `$CLAUDE_CONFIG_DIR` nor `$HOME` is set.
pub fn resolve_root_path(explicit_root: Option<&Path>) -> Result<PathBuf, ErrorReport> {
    let root_or_config_dir = explicit_root.map(Path::to_owned).or_else(|| env_path("CLAUDE_CONFIG_DIR"));
    root_or_config_dir.or_else(|| env_path("HOME").map(|home| home.join(".claude"))).ok_or_else(|| {
        ErrorReport::new(ErrorKind::Config, "cannot find a root: $HOME is not set")
            .with_help("name one with --root DIR")
    })
}

/// The directories of teamd for a root. `root` must be canonical.
pub fn directories_for_root(root: &Path) -> Directories {
    let environment = DirectoryEnvironment {
        runtime_dir: xdg_path("XDG_RUNTIME_DIR"),
        state_home: xdg_path("XDG_STATE_HOME"),
        home: env_path("HOME"),
        uid: geteuid().as_raw(),
    };
    Directories::for_root(root, &environment)
}

fn env_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The path in the variable `name`. `None` for a relative path: the XDG specification says to
/// ignore it.
fn xdg_path(name: &str) -> Option<PathBuf> {
    env_path(name).filter(|path| path.is_absolute())
}
