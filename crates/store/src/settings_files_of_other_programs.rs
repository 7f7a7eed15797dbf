//! Reads and replaces settings files of other programs, outside any root. The whole file is
//! replaced; its permissions are kept. If the path is a symbolic link, the file that it leads to is
//! replaced. A copy of the old content is kept beside the file.

use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::file_io::{FILE_LIMIT, read_foreign, write_file_with_mode};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permission bits of a new settings file, which may contain keys.
const PRIVATE_MODE: u32 = 0o600;

/// One settings file and the content that was read from it.
#[derive(Debug)]
pub struct ForeignSettings {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl ForeignSettings {
    /// Reads the file at `path`, up to 8 MiB. A missing file is not an error.
    pub fn read(path: &Path) -> Result<ForeignSettings, Error> {
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(_) if path.is_symlink() => {
                return Err(Error::UnexpectedFileType {
                    path: path.to_owned(),
                    what: "not a file: a link that leads nowhere",
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(Error::io("find", path, error)),
        };
        let bytes = read_current(&path)?;
        Ok(ForeignSettings { path, bytes })
    }

    /// The content. `None` if the file does not exist.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// The path of the real file, after symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content of the settings file by `bytes`. The old content is copied to a file
    /// with the same name plus `suffix`. Returns the path of that copy, or `None` if there was no
    /// settings file before.
    ///
    /// # Errors
    /// `UnexpectedFileType`, despite its name, if the content has changed since
    /// [`ForeignSettings::read`]: the error's text says so. Also `Io`.
    pub fn replace(&self, bytes: &[u8], suffix: &str) -> Result<Option<PathBuf>, Error> {
        let (directory, name) = split_path(&self.path)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|cause| Error::io("create", directory, cause))?;
        if read_current(&self.path)? != self.bytes {
            return Err(Error::UnexpectedFileType {
                path: self.path.clone(),
                what: "no longer what was read: another program has changed it",
            });
        }
        let mode = std::fs::metadata(&self.path)
            .map_or(PRIVATE_MODE, |metadata| metadata.permissions().mode() & 0o7777);
        let dir = DirHandle::open(directory)?;
        let copy = self.bytes.as_ref().map(|bytes| (format!("{name}{suffix}"), bytes));
        if let Some((copy, bytes)) = &copy {
            write_file_with_mode(&dir, copy, bytes, mode, Durability::Ordered)?;
        }
        write_file_with_mode(&dir, name, bytes, mode, Durability::Ordered)?;
        Ok(copy.map(|(copy, _)| directory.join(copy)))
    }
}

fn read_current(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let (directory, name) = split_path(path)?;
    if !directory.exists() {
        return Ok(None);
    }
    Ok(read_foreign(&DirHandle::open(directory)?, name, FILE_LIMIT)?.map(|snapshot| snapshot.into_bytes()))
}

fn split_path(path: &Path) -> Result<(&Path, &str), Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    path.parent()
        .zip(name)
        .ok_or_else(|| Error::UnexpectedFileType { path: path.to_owned(), what: "no name of a file" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    fn create_file(path: &Path, text: &str, mode: u32) {
        std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn the_target_of_a_link_is_replaced_and_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.json"), dir.path().join("settings.json"));
        create_file(&real, "old", 0o640);
        symlink(&real, &link).unwrap();
        let copy = ForeignSettings::read(&link).unwrap().replace(b"new", ".before").unwrap().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "new");
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), "old");
        assert_eq!((mode(&real), mode(&copy)), (0o640, 0o640));
    }

    #[test]
    fn a_missing_file_is_created_with_private_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/settings.json");
        let settings = ForeignSettings::read(&path).unwrap();
        assert!(settings.bytes().is_none());
        assert_eq!(settings.replace(b"new", ".before").unwrap(), None);
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o600));
    }

    #[test]
    fn a_changed_file_is_not_replaced_and_only_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        create_file(&path, "old", 0o600);
        let settings = ForeignSettings::read(&path).unwrap();
        create_file(&path, "theirs", 0o600);
        assert!(settings.replace(b"new", ".before").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
        symlink(dir.path().join("nowhere"), dir.path().join("link")).unwrap();
        assert!(ForeignSettings::read(&dir.path().join("link")).is_err());
        assert!(ForeignSettings::read(dir.path()).is_err());
    }
}
