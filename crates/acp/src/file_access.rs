//! Text files that the program reads and writes through us: below the working directory, unless its mode lets it
//! go anywhere. A guard rail: the program could open files by itself.

use crate::args::FileAccess;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Read, Result as Io, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most that is read or written, bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The text, or the lines that were asked for, counted from 1. What is too large is not read in part: the program would
/// take that for the whole, and write it back.
pub(crate) fn read_file(request: &ReadTextFileRequest, reach: FileAccess) -> Result<String, String> {
    let path = resolve_path(&request.path, reach)?;
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

/// The whole file, made if there is none.
pub(crate) fn write_file(request: &WriteTextFileRequest, reach: FileAccess) -> Result<(), String> {
    let path = resolve_path(&request.path, reach)?;
    if request.content.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("cannot write {}: it would have more than 16 MiB", path.display()));
    }
    let written = match open_regular(&path).and_then(|file| file.metadata()) {
        Ok(held) => replace(&path, &held, request.content.as_bytes()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            replace_by_rename(&path, None, request.content.as_bytes())
        }
        Err(error) => Err(error),
    };
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Opened without waiting for anybody, as a pipe would, and for the only thread there is.
fn open_regular(path: &Path) -> Io<File> {
    let wait_for_none = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(wait_for_none).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    }
}

fn replace(path: &Path, held: &Metadata, bytes: &[u8]) -> Io<()> {
    if held.nlink() > 1 {
        // Its other names are to hold it too.
        return OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes);
    }
    replace_by_rename(path, Some(held.permissions()), bytes)
}

/// Whole or not at all, whatever ends us meanwhile.
fn replace_by_rename(path: &Path, held: Option<Permissions>, bytes: &[u8]) -> Io<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut builder = tempfile::Builder::new();
    // Less what the umask takes away, as with any new file.
    let mut beside = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(directory)?;
    beside.write_all(bytes)?;
    if let Some(held) = held {
        beside.as_file().set_permissions(held)?;
    }
    beside.persist(path).map(drop).map_err(|error| error.error)
}

/// The file behind all links. One that is not there yet is where its directory is.
fn resolve_path(path: &Path, reach: FileAccess) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("cannot reach {}: {error}", path.display());
    let whole = match path.canonicalize() {
        Ok(whole) => whole,
        Err(_) => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(format!("cannot reach {}: it is no file", path.display()));
            };
            // A link that leads nowhere yet could lead anywhere.
            if path.is_symlink() {
                return Err(format!("cannot reach {}: it is a link to nothing", path.display()));
            }
            parent.canonicalize().map_err(failed)?.join(name)
        }
    };
    let own = std::env::current_dir().and_then(|own| own.canonicalize()).map_err(failed)?;
    match reach {
        FileAccess::WorkingDirectory if !whole.starts_with(&own) => {
            Err(format!("cannot reach {}: it lies outside of {}", path.display(), own.display()))
        }
        _ => Ok(whole),
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
        // Whoever reads it meanwhile reads the old one to its end.
        let before = File::open(&path).unwrap();
        write_path(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            (read_path(&path).unwrap().as_str(), std::io::read_to_string(before).unwrap().as_str()),
            ("new", "old")
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
        let twin = dir.path().join("twin");
        std::fs::hard_link(&path, &twin).unwrap();
        write_path(&path, "both").unwrap();
        assert_eq!(read_path(&twin).unwrap(), "both");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left beside");
    }

    #[test]
    fn non_regular_files_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send((read_path(&pipe), write_path(&pipe, "x"))));
        let (read, written) = told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(read.unwrap_err().contains("no regular file"));
        assert!(written.unwrap_err().contains("no regular file"));
        assert!(read_path(dir.path()).is_err() && write_path(dir.path(), "x").is_err());
    }
}
