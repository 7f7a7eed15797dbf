//! Reads the definitions of agent types, which are kinds of work such as `reviewer`. People write a
//! definition as the file `ROOT/agents/TYPE.md`, for Claude Code and other programs. teamd never
//! writes these files.

use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{FILE_LIMIT, read_raw};
use std::path::Path;

/// Reads the definition of the agent type `agent_type`. `None` if there is no definition, or if
/// `agent_type` is not a valid file name.
///
/// # Errors
/// [`Error::UnexpectedFileType`] if the definition is not a regular file or `agents` is not a
/// directory, for example because one is a symbolic link; `Io`.
pub fn read_agent_type(root: &Path, agent_type: &str) -> Result<Option<String>, Error> {
    let invalid_name = agent_type.is_empty() || agent_type.starts_with('.') || agent_type.len() > 200;
    if invalid_name || agent_type.contains(['/', '\0']) || !root.is_dir() {
        return Ok(None);
    }
    let Some(directory) = DirHandle::open(root)?.open_own_dir("agents")? else { return Ok(None) };
    let snapshot = read_raw(&directory, &format!("{agent_type}.md"), FILE_LIMIT)?;
    Ok(snapshot.map(|snapshot| String::from_utf8_lossy(&snapshot.into_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_regular_file_in_the_agents_directory_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(read_agent_type(root, "tester").unwrap().is_none());
        std::fs::create_dir(root.join("agents")).unwrap();
        let create_file = |path: &Path| std::fs::File::create(path).unwrap().write_all(b"text").unwrap();
        create_file(&root.join("agents/tester.md"));
        create_file(&root.join("secret.md"));
        assert_eq!(read_agent_type(root, "tester").unwrap().as_deref(), Some("text"));
        for name in ["other", "../secret", "a/b", "", ".", "..", ".tester", "a\0b", &"x".repeat(300)] {
            assert!(read_agent_type(root, name).unwrap().is_none(), "{name}");
        }
        symlink(root.join("secret.md"), root.join("agents/link.md")).unwrap();
        assert!(matches!(read_agent_type(root, "link"), Err(Error::UnexpectedFileType { .. })));
        assert!(read_agent_type(&root.join("nowhere"), "tester").unwrap().is_none());
    }

    #[test]
    fn a_symlinked_agents_directory_is_rejected() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), dir.path().join("agents")).unwrap();
        assert!(read_agent_type(dir.path(), "tester").is_err());
    }
}
