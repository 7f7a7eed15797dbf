//! The process of git: its files for input and output, and its end at a deadline.

use crate::error::{Error, io_error};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// Waits until git exits. After `timeout`, ends git and all processes of its process group.
///
/// SIGTERM is sent first, so that git can remove unfinished files. SIGKILL follows after
/// [`TERM_GRACE`].
pub(crate) fn wait_or_kill(mut child: Child, action: &str, timeout: Duration) -> Result<ExitStatus, Error> {
    let program = Path::new("git");
    let pid = Pid::from_child(&child);
    let handle = platform::system().open_process(child.id()).map_err(io_error("watch", program))?;
    // A process that has exited already has no handle.
    let exits_within = |timeout| handle.as_ref().map_or(Ok(true), |handle| handle.exits_within(timeout));
    if exits_within(timeout).map_err(io_error("wait for", program))? {
        return child.wait().map_err(io_error("wait for", program));
    }
    kill_process_group(pid, Signal::TERM).ok();
    exits_within(TERM_GRACE).map_err(io_error("wait for", program))?;
    kill_process_group(pid, Signal::KILL).ok();
    child.wait().map_err(io_error("wait for", program))?;
    Err(Error::Timeout { action: action.to_owned(), timeout })
}

/// Creates a file without a name.
pub(crate) fn memory_file() -> Result<File, Error> {
    platform::system().unnamed_file().map_err(io_error("create a file in", Path::new("memory")))
}

/// Returns a standard input from which git reads `input`.
pub(crate) fn stdin(input: &[u8]) -> Result<Stdio, Error> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = memory_file()?;
    let memory = Path::new("memory");
    file.write_all(input).and_then(|()| file.rewind()).map_err(io_error("write into", memory))?;
    Ok(file.into())
}

/// Returns a second descriptor of `file` for a child process.
pub(crate) fn clone_as_stdio(file: &File) -> Result<Stdio, Error> {
    Ok(file.try_clone().map_err(io_error("share a file in", Path::new("memory")))?.into())
}

/// Reads a file from its beginning to its end.
pub(crate) fn read_all(file: &mut File) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let result = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    result.map_err(io_error("read from", Path::new("memory")))?;
    Ok(bytes)
}
