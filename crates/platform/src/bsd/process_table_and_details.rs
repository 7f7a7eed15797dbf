//! Reads the process table. Start times are in seconds since the epoch.

use crate::{ProcessEntry, ProcessEnvironment};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, UpdateKind};

pub(super) fn read(pid: u32) -> Option<ProcessEntry> {
    with_process(pid, ProcessRefreshKind::nothing(), to_entry)
}

pub(super) fn read_all() -> Vec<ProcessEntry> {
    let mut table = sysinfo::System::new();
    table.refresh_processes_specifics(ProcessesToUpdate::All, true, ProcessRefreshKind::nothing());
    table.processes().values().map(to_entry).collect()
}

pub(super) fn program_name(pid: u32) -> Option<String> {
    let name = |process: &Process| process.name().to_string_lossy().into_owned();
    with_process(pid, ProcessRefreshKind::nothing(), name)
}

/// The environment as entries that end with a NUL. Empty if it cannot be read.
pub(super) fn environment(pid: u32) -> Vec<u8> {
    let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    with_process(pid, kind, |process| end_with_nul(process.environ())).unwrap_or_default()
}

/// All processes with their environments.
pub(super) fn read_environments() -> Vec<ProcessEnvironment> {
    let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    let mut table = sysinfo::System::new();
    table.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    let with_environment = |process: &Process| ProcessEnvironment {
        process: to_entry(process),
        entries: Ok(end_with_nul(process.environ())),
    };
    table.processes().values().map(with_environment).collect()
}

/// The arguments, each with a NUL at its end. Empty if they cannot be read.
pub(super) fn command_line(pid: u32) -> Vec<u8> {
    let kind = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    with_process(pid, kind, |process| end_with_nul(process.cmd())).unwrap_or_default()
}

pub(super) fn executable(pid: u32) -> Option<PathBuf> {
    let kind = ProcessRefreshKind::nothing().with_exe(UpdateKind::Always);
    with_process(pid, kind, |process| Some(process.exe()?.to_owned()))?
}

pub(super) fn directories_in_use(pid: u32) -> Vec<PathBuf> {
    let kind = ProcessRefreshKind::nothing()
        .with_cwd(UpdateKind::Always)
        .with_root(UpdateKind::Always)
        .with_exe(UpdateKind::Always);
    let paths = |process: &Process| {
        let paths = [process.cwd(), process.root(), process.exe()];
        paths.into_iter().flatten().map(|path| path.to_owned()).collect()
    };
    with_process(pid, kind, paths).unwrap_or_default()
}

/// Reads one process and returns what `convert` makes of it. `None` if there is no such process.
fn with_process<T>(pid: u32, kind: ProcessRefreshKind, convert: impl FnOnce(&Process) -> T) -> Option<T> {
    let pid = Pid::from_u32(pid);
    let mut table = sysinfo::System::new();
    table.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, kind);
    table.process(pid).map(convert)
}

fn to_entry(process: &Process) -> ProcessEntry {
    ProcessEntry {
        pid: process.pid().as_u32(),
        parent: process.parent().map_or(0, Pid::as_u32),
        session: process.session_id().map_or(0, Pid::as_u32),
        tty: 0,
        start: process.start_time(),
        zombie: matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead),
        stopped: process.status() == ProcessStatus::Stop,
    }
}

fn end_with_nul(entries: &[OsString]) -> Vec<u8> {
    let entries = entries.iter().map(OsString::as_os_str).map(OsStr::as_bytes);
    entries.flat_map(|entry| entry.iter().copied().chain([0])).collect()
}
