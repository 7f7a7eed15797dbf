//! Text files that the program reads and writes through us: below the working directory, unless its mode lets it
//! go anywhere. A guard rail: the program could open files by itself.

use crate::args::Reach;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The most that is read or written, bytes.
const LARGEST: u64 = 16 << 20;

/// The text, or the lines that were asked for, counted from 1.
pub(crate) fn read(request: &ReadTextFileRequest, reach: Reach) -> Result<String, String> {
    let path = reached(&request.path, reach)?;
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut text = String::new();
    File::open(&path).map_err(failed)?.take(LARGEST).read_to_string(&mut text).map_err(failed)?;
    let (from, lines) = (request.line.unwrap_or(1).max(1) as usize - 1, request.limit);
    if request.line.is_none() && lines.is_none() {
        return Ok(text);
    }
    let lines = lines.map_or(usize::MAX, |lines| lines as usize);
    Ok(text.split_inclusive('\n').skip(from).take(lines).collect())
}

/// The whole file, made if there is none.
pub(crate) fn write(request: &WriteTextFileRequest, reach: Reach) -> Result<(), String> {
    let path = reached(&request.path, reach)?;
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if request.content.len() as u64 > LARGEST {
        return Err(format!("cannot write {}: it would have more than 16 MiB", path.display()));
    }
    let mut file = File::create(&path).map_err(failed)?;
    file.write_all(request.content.as_bytes()).map_err(failed)
}

/// The file behind all links. One that is not there yet is where its directory is.
fn reached(path: &Path, reach: Reach) -> Result<PathBuf, String> {
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
        Reach::Below if !whole.starts_with(&own) => {
            Err(format!("cannot reach {}: it lies outside of {}", path.display(), own.display()))
        }
        _ => Ok(whole),
    }
}
