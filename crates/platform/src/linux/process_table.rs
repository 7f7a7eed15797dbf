//! Reads the process table from /proc.

use crate::{PidOrigin, ProcessEntry};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};

/// Size of the buffer for /proc/PID/stat, in bytes. The content is always shorter, so that the
/// kernel returns all of it in one read.
const STAT_BYTES: usize = 4096;

/// The entry of a process. `None` if there is no such process.
pub(super) fn read(pid: u32) -> io::Result<Option<ProcessEntry>> {
    match read_stat(pid) {
        Ok(stat) => parse(pid, &stat).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the error of a read below /proc/PID says that there is no such process. The kernel
/// returns ESRCH instead of ENOENT if the process exits after the file was opened.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

/// The entries of all processes, without those that exit meanwhile.
pub(super) fn read_all() -> io::Result<Vec<ProcessEntry>> {
    let names = std::fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    Ok(pids.filter_map(|pid| read(pid).ok().flatten()).collect())
}

/// Reads /proc/PID/stat as text. The name of the program in it can be invalid UTF-8, because the
/// kernel cuts long names after any byte.
fn read_stat(pid: u32) -> io::Result<String> {
    let mut buffer = [0; STAT_BYTES];
    let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Parses /proc/PID/stat (proc_pid_stat(5)). `pid` is the number in the path.
fn parse(pid: u32, stat: &str) -> Option<ProcessEntry> {
    let fields = Fields::parse(stat)?;
    let state = *fields.0.first()?;
    Some(ProcessEntry {
        pid,
        parent: fields.number(4)?,
        session: fields.number(6)?,
        // The kernel prints the device number as a signed integer.
        tty: fields.number::<i32>(7)?.cast_unsigned(),
        start: fields.number(22)?,
        // The state `Z` alone does not mean that the process has ended: it is also shown if only
        // the main thread has exited. So the number of threads is checked too.
        zombie: matches!(state, "Z" | "X") && fields.number::<u32>(20)? <= 1,
        stopped: matches!(state, "T" | "t"),
    })
}

/// The fields of /proc/PID/stat from the third on.
struct Fields<'s>(Vec<&'s str>);

impl Fields<'_> {
    /// The second field is the program's name in parentheses. The name can contain any character,
    /// also spaces and parentheses. So the fields are counted after the last parenthesis.
    fn parse(stat: &str) -> Option<Fields<'_>> {
        Some(Fields(stat.rsplit_once(')')?.1.split_whitespace().collect()))
    }

    /// The number in a field. Fields are counted from 1, as in proc_pid_stat(5).
    fn number<T: std::str::FromStr>(&self, field: usize) -> Option<T> {
        self.0.get(field - 3)?.parse().ok()
    }
}

/// The length of a process's environment in bytes, from the addresses of its start and end in
/// /proc/PID/stat (fields 50 and 51). `None` while the process calls `exec`, because the kernel has
/// not set the end yet.
pub(super) fn environment_length(pid: u32) -> Option<usize> {
    let stat = read_stat(pid).ok()?;
    let fields = Fields::parse(&stat)?;
    let (start, end): (usize, usize) = (fields.number(50)?, fields.number(51)?);
    if end == 0 { None } else { end.checked_sub(start) }
}

/// The children of all threads of a process. `None` if a thread exits meanwhile: its children then
/// belong to another thread, and the list may be incomplete.
pub(super) fn children(parent: u32) -> Option<Vec<u32>> {
    let mut pids = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{parent}/task")).ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        pids.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(pids)
}

pub(super) fn program_name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim().to_owned())
}

/// The boot and the pid namespace in which this process's pids are valid. The namespace is
/// identified by its number and the start time of its first process. The number alone is not
/// enough, because the kernel may use the number of an ended namespace again.
pub(super) fn pid_origin() -> PidOrigin {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let first_process = read(1).ok().flatten().map(|process| process.start);
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok().zip(first_process);
    PidOrigin {
        boot_id: boot_id.map(|id| id.trim().to_owned()),
        pid_namespace: namespace.map(|(link, start)| format!("{} {start}", link.display())),
    }
}

/// The signals that this process ignores. Bit N-1 of the mask in /proc/self/status stands for
/// signal N.
pub(super) fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn process_with_invalid_utf8_in_its_name_is_read() {
        let script = r"printf 'n\303' > /proc/self/comm; echo; read -r nothing";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(program_name(child.id()).unwrap(), "n\u{fffd}");
        let entry = read(child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(entry.unwrap().unwrap().parent, std::process::id());
    }
}
