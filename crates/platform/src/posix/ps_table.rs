//! The process table as `ps` prints it. This module uses the columns `lstart` and `state`, which
//! are not in POSIX. The `ps` of macOS, of the BSDs and of procps (Linux) has these columns. The
//! `ps` of BusyBox lacks them. With the option `e` (without a dash), `ps` prints the environment
//! after the command line.

use crate::signal_by_pid::confirm_absence;
use crate::{EnvironmentError, ProcessEntry, ProcessEnvironment};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The months as `ps` prints them in the C locale.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Which processes `ps` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    All,
    Process(u32),
}

impl Selection {
    fn options(self) -> Vec<String> {
        match self {
            Selection::All => vec!["-A".to_owned()],
            Selection::Process(pid) => vec!["-p".to_owned(), pid.to_string()],
        }
    }
}

/// The columns that [`parse`] reads.
const COLUMNS: [&str; 4] = ["pid=", "ppid=", "state=", "lstart="];

/// Reads the table, without the process of `ps` itself. The start time is in seconds since the
/// epoch.
///
/// # Errors
///
/// If `ps` cannot be run, or prints a line in another format.
pub(super) fn read(selection: Selection) -> io::Result<Vec<ProcessEntry>> {
    let (text, ps_pid) = run_ps(selection.options(), &COLUMNS)?;
    let entries = text.lines().map(|line| parse(line).ok_or_else(|| invalid_line(line)));
    let entries: Vec<ProcessEntry> = entries.collect::<io::Result<_>>()?;
    if entries.is_empty() && selection == Selection::All {
        return Err(io::Error::other("ps printed no process"));
    }
    Ok(entries.into_iter().filter(|entry| entry.pid != ps_pid).collect())
}

/// The entry of a process. `None` if there is no such process.
///
/// # Errors
///
/// As [`read`], and if `ps` does not show the process, although it exists.
pub(super) fn find(pid: u32) -> io::Result<Option<ProcessEntry>> {
    let entries = read(Selection::Process(pid))?;
    confirm_absence(pid, entries.into_iter().find(|entry| entry.pid == pid))
}

/// Reads the table with the environment of each process.
///
/// # Errors
///
/// As [`read`].
pub(super) fn read_environments() -> io::Result<Vec<ProcessEnvironment>> {
    let (text, ps_pid) = run_ps(vec!["axeww".to_owned()], &[&COLUMNS[..], &["command="]].concat())?;
    let read = |line: &str| {
        let process = parse(line).ok_or_else(|| invalid_line(line))?;
        Ok(ProcessEnvironment { process, entries: Ok(words_with_nul(line)) })
    };
    let processes: Vec<ProcessEnvironment> = text.lines().map(read).collect::<io::Result<_>>()?;
    Ok(processes.into_iter().filter(|found| found.process.pid != ps_pid).collect())
}

/// The words of the environment of one process. Empty if there is no such process.
pub(super) fn environment(pid: u32) -> Result<Vec<u8>, EnvironmentError> {
    let options = vec!["eww".to_owned(), "-p".to_owned(), pid.to_string()];
    let (text, _) = run_ps(options, &["command="]).map_err(|_| EnvironmentError::Temporary)?;
    Ok(words_with_nul(&text))
}

/// The words of a line of `ps`, each with a NUL at its end, like the entries of an environment. The
/// words of the command line are included, because `ps` does not mark where the environment begins.
fn words_with_nul(line: &str) -> Vec<u8> {
    line.split_whitespace().flat_map(|word| word.bytes().chain([0])).collect()
}

/// The name of a process's program. `None` if there is no such process.
pub(super) fn program_name(pid: u32) -> Option<String> {
    let (text, _) = run_ps(Selection::Process(pid).options(), &["comm="]).ok()?;
    let path = text.lines().next()?.trim();
    Some(path.rsplit('/').next().unwrap_or(path).to_owned())
}

/// Runs `ps`. Returns its output and its pid. If no process matches the options, `ps` prints
/// nothing and exits with 1, which is no error here.
fn run_ps(options: Vec<String>, columns: &[&str]) -> io::Result<(String, u32)> {
    let mut command = Command::new(ps_program());
    command
        .args(options)
        .args(columns.iter().flat_map(|column| ["-o", column]))
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let pid = child.id();
    let output = child.wait_with_output()?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), pid))
}

/// The path of `ps`. The caller's `PATH` may lack its directory.
fn ps_program() -> &'static str {
    let paths = ["/bin/ps", "/usr/bin/ps"];
    paths.into_iter().find(|path| Path::new(path).exists()).unwrap_or("ps")
}

fn invalid_line(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("ps printed an unknown line: {line}"))
}

/// Parses a line such as ` 70  1 Ss Sat Nov 28 01:58:37 2026`, which may be followed by a command
/// line.
fn parse(line: &str) -> Option<ProcessEntry> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [pid, parent, state, _weekday, month, day, time, year, ..] = *fields else { return None };
    let pid: u32 = pid.parse().ok()?;
    Some(ProcessEntry {
        pid,
        parent: parent.parse().ok()?,
        session: session_of(pid),
        // `ps` prints the name of the terminal, which differs between systems.
        tty: 0,
        start: epoch_seconds(year.parse().ok()?, month, day.parse().ok()?, time)?,
        zombie: state.starts_with('Z'),
        stopped: state.starts_with(['T', 't']),
    })
}

/// The session of a process. 0 if the process has exited.
fn session_of(pid: u32) -> u32 {
    let pid = i32::try_from(pid).ok().map(nix::unistd::Pid::from_raw);
    nix::unistd::getsid(pid).map_or(0, |session| session.as_raw().unsigned_abs())
}

/// The seconds since the epoch of a date in UTC. `time` is `HH:MM:SS`.
fn epoch_seconds(year: u64, month: &str, day: u64, time: &str) -> Option<u64> {
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as u64;
    // The year begins in March here, so that the leap day is its last day.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // Days from 0000-03-01 to 1970-01-01: 719,468.
    let days = (365 * year + leap_days + (153 * month + 2) / 5 + day - 1).checked_sub(719_468)?;
    let seconds = time.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    Some(days * 86_400 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_ps_is_parsed() {
        let entry = parse(" 70  1 Ss Sat Nov 28 01:58:37 2026").unwrap();
        assert_eq!((entry.pid, entry.parent, entry.start), (70, 1, 1_795_831_117));
        assert!(!entry.zombie && !entry.stopped);
        assert!(parse("71 1 Z Thu Feb 29 00:00:00 2024").is_some_and(|entry| entry.zombie));
        assert_eq!(parse("PID PPID"), None);
    }

    #[test]
    fn dates_are_converted() {
        let at_midnight = |year, month, day| epoch_seconds(year, month, day, "00:00:00");
        assert_eq!(at_midnight(1970, "Jan", 1), Some(0));
        assert_eq!(at_midnight(2024, "Feb", 29), Some(1_709_164_800));
        assert_eq!(at_midnight(2000, "Mar", 1), Some(951_868_800));
        assert_eq!(at_midnight(2026, "Foo", 1), None);
    }

    #[test]
    fn own_process_is_in_the_table() {
        let own_pid = std::process::id();
        let table = read(Selection::All).unwrap();
        let own = table.iter().find(|entry| entry.pid == own_pid).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert_eq!(read(Selection::Process(own_pid)).unwrap().first().map(|entry| entry.pid), Some(own_pid));
    }
}
