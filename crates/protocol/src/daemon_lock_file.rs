//! The content of `teamd.lock` in the state directory: which daemon holds the lock, and where that
//! daemon listens. A client reads the file if no daemon listens at the usual path of the control
//! socket.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The daemon that holds the lock, or that held it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The daemon's process id.
    pub pid: u32,
    /// The path of the control socket.
    pub socket: PathBuf,
}

impl LockHolder {
    /// The content of the file: the pid and the path, each as one line.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.pid.to_string().as_bytes(), b"\n", self.socket.as_os_str().as_bytes(), b"\n"].concat()
    }

    /// Parses the content of the file. `None` if the file has no pid. If the file has no second
    /// line, the socket's path is empty.
    ///
    /// Ignores NUL bytes at the end. To shorten the content, a daemon first overwrites the rest of
    /// the old content with NUL bytes, and then truncates the file.
    pub fn parse(bytes: &[u8]) -> Option<LockHolder> {
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
        let pid = std::str::from_utf8(parts.next()?).ok()?.trim().parse().ok()?;
        let path = parts.next().unwrap_or_default();
        let path = path.strip_suffix(b"\n").unwrap_or(path);
        Some(LockHolder { pid, socket: PathBuf::from(OsStr::from_bytes(path)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_parsed_as_it_was_written() {
        let holder = LockHolder { pid: 7, socket: "/run/a b\nc/control.sock".into() };
        assert_eq!(LockHolder::parse(&holder.to_bytes()), Some(holder.clone()));
        assert_eq!(LockHolder::parse(b"7"), Some(LockHolder { pid: 7, socket: PathBuf::new() }));
        let padded = [&holder.to_bytes()[..], b"\0\0"].concat();
        assert_eq!(LockHolder::parse(&padded), Some(holder));
        for invalid in [&b""[..], b"\n", b"x\n/run/s\n"] {
            assert_eq!(LockHolder::parse(invalid), None);
        }
    }
}
