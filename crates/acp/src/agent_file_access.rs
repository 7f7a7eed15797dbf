//! Reads and writes text files for the agent program, which asks the driver to do so. The files
//! must be below the working directory, unless the session's mode allows all paths. This limit
//! prevents mistakes, not attacks: the program can also open files itself. In plan mode,
//! `AcpDriver::check_write_allowed` refuses every write before the driver calls this module.

use crate::args::FileAccess;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The largest file that is read or written, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Reads a text file for the agent program. If the request names lines, only these are returned;
/// lines are counted from 1. A file above [`MAX_FILE_BYTES`] is an error. It is not shortened,
/// because the program could write the shortened text back as the whole file.
pub(crate) fn read_file(request: &ReadTextFileRequest, access: FileAccess) -> Result<String, String> {
    let path = resolve_path(&request.path, access)?;
    let failed = |error: Error| format!("cannot read {}: {error}", path.display());
    let mut text = String::new();
    open_regular(&path)
        .map_err(failed)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("cannot read {}: it has more than 16 MiB", path.display()));
    }
    let (from, lines) = (request.line.unwrap_or(1).max(1) as usize - 1, request.limit);
    if request.line.is_none() && lines.is_none() {
        return Ok(text);
    }
    let lines = lines.map_or(usize::MAX, |lines| lines as usize);
    Ok(text.split_inclusive('\n').skip(from).take(lines).collect())
}

/// Writes a whole file. Creates it if it does not exist.
pub(crate) fn write_file(request: &WriteTextFileRequest, access: FileAccess) -> Result<(), String> {
    let path = resolve_path(&request.path, access)?;
    if request.content.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("cannot write {}: it would have more than 16 MiB", path.display()));
    }
    let written = match open_regular(&path).and_then(|file| file.metadata()) {
        Ok(metadata) => replace(&path, &metadata, request.content.as_bytes()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            replace_by_rename(&path, None, request.content.as_bytes())
        }
        Err(error) => Err(error),
    };
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Opens a regular file without blocking. Opening a FIFO would block the driver's only thread.
fn open_regular(path: &Path) -> IoResult<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    }
}

fn replace(path: &Path, metadata: &Metadata, bytes: &[u8]) -> IoResult<()> {
    if metadata.nlink() > 1 {
        // A rename would leave the other hard links with the old content.
        return OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes);
    }
    replace_by_rename(path, Some(metadata.permissions()), bytes)
}

/// Writes the new content to a temporary file in the same directory and renames that file to
/// `path`. So after a crash the file has either the old content or the new content. `permissions`
/// are those of the file that is replaced, `None` if there was no file.
fn replace_by_rename(path: &Path, permissions: Option<Permissions>, bytes: &[u8]) -> IoResult<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut builder = tempfile::Builder::new();
    // The process's umask reduces these permissions, as for any new file.
    let mut temp_file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(directory)?;
    temp_file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        temp_file.as_file().set_permissions(permissions)?;
    }
    temp_file.persist(path).map(drop).map_err(|error| error.error)
}

/// Resolves symbolic links in `path`. If the file does not exist, only the links in its directory's
/// path are resolved. Returns an error if `access` does not allow the resolved path.
fn resolve_path(path: &Path, access: FileAccess) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("cannot reach {}: {error}", path.display());
    let resolved = match path.canonicalize() {
        Ok(resolved) => resolved,
        Err(_) => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(format!("cannot reach {}: it is no file", path.display()));
            };
            // A link without a target could lead outside the working directory.
            if path.is_symlink() {
                return Err(format!("cannot reach {}: it is a link to nothing", path.display()));
            }
            parent.canonicalize().map_err(failed)?.join(name)
        }
    };
    let working_dir =
        std::env::current_dir().and_then(|working_dir| working_dir.canonicalize()).map_err(failed)?;
    match access {
        FileAccess::WorkingDirectory if !resolved.starts_with(&working_dir) => {
            Err(format!("cannot reach {}: it lies outside of {}", path.display(), working_dir.display()))
        }
        _ => Ok(resolved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn create_file(path: &Path, text: &str) {
        File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn read_path(path: &Path) -> Result<String, String> {
        read_file(&ReadTextFileRequest::new("s", path), FileAccess::Anywhere)
    }

    fn write_path(path: &Path, text: &str) -> Result<(), String> {
        write_file(&WriteTextFileRequest::new("s", path, text), FileAccess::Anywhere)
    }

    #[test]
    fn too_large_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        create_file(&path, &"x".repeat(16 << 20));
        assert_eq!(read_path(&path).unwrap().len(), 16 << 20);
        File::options().append(true).open(&path).unwrap().write_all(b"y").unwrap();
        assert!(read_path(&path).unwrap_err().contains("more than 16 MiB"));
        assert!(write_path(&path, &"x".repeat((16 << 20) + 1)).is_err());
        assert_eq!(path.metadata().unwrap().len(), (16 << 20) + 1);
    }

    #[test]
    fn write_replaces_the_file_and_keeps_permissions_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("script"), dir.path().join("link"));
        create_file(&path, "old");
        std::fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        // A program that has the file open still reads the old content.
        let before = File::open(&path).unwrap();
        write_path(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            (read_path(&path).unwrap().as_str(), std::io::read_to_string(before).unwrap().as_str()),
            ("new", "old")
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
        let second_link = dir.path().join("second");
        std::fs::hard_link(&path, &second_link).unwrap();
        write_path(&path, "both").unwrap();
        assert_eq!(read_path(&second_link).unwrap(), "both");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file is left");
    }

    #[test]
    fn non_regular_files_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send((read_path(&pipe), write_path(&pipe, "x"))));
        let (read, written) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(read.unwrap_err().contains("no regular file"));
        assert!(written.unwrap_err().contains("no regular file"));
        assert!(read_path(dir.path()).is_err() && write_path(dir.path(), "x").is_err());
    }
}
