//! Ends the processes that an agent leaves behind, even if they used nohup, a new process session
//! or a double fork. All of them remain descendants of the shim, because the shim is a subreaper:
//! the kernel makes it the parent of orphaned descendants. On systems without subreapers, orphans
//! are found by their process sessions and environments ([`orphans_without_subreaper`]).
//!
//! An agent can also start a daemon (`teamd`), possibly in a tmux server that the agent has started
//! too. The daemon, this tmux server and their descendants are exempt and keep running, because
//! other agents and users need them.

use crate::catch_signals::ShimSignals;
use crate::orphans_without_subreaper;
use crate::poll_timeout;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::wait::{WaitPidFlag, waitpid};
use platform::ProcessEntry;
use rustix::process::Signal;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long SIGKILL is repeated. A process in an uninterruptible wait can stay longer than that.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the shim looks for descendants that still run. It cannot only wait for SIGCHLD,
/// because the kernel does not send SIGCHLD when a grandchild exits.
const RESCAN_INTERVAL: Duration = Duration::from_millis(20);

/// The largest number of walks through the process tree. Walks are repeated until two in a row find
/// the same processes. If processes start and exit all the time, no two walks agree. After this
/// many walks, the shim reads the table of all processes instead.
const MAX_TREE_WALKS: usize = 4;

/// A callback for every child that was reaped, with the child's pid and exit status.
type OnReap<'a> = &'a mut dyn FnMut(u32, ExitStatus);

/// Whether a descendant still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remaining {
    Nothing,
    Descendants,
}

/// Ends all descendants of the shim, except the processes in `exempt` and their descendants. First
/// all get SIGTERM. Those that still run after `grace` get SIGSTOP and then SIGKILL, repeatedly
/// until none is left or [`KILL_TIMEOUT`] has passed. `on_scan` is called each time after the shim
/// has looked for descendants.
pub(crate) fn end_all(
    signals: &ShimSignals,
    grace: Duration,
    exempt: &[ProcessEntry],
    on_reap: OnReap<'_>,
    on_scan: &mut dyn FnMut(),
) -> Remaining {
    let term_deadline = Instant::now() + grace;
    let kill_deadline = term_deadline + KILL_TIMEOUT;
    // An error of a scan does not mean that all descendants have exited.
    let is_done = |scan: &io::Result<Vec<ProcessEntry>>| scan.as_ref().is_ok_and(Vec::is_empty);
    let mut remaining = live_descendants(exempt);
    signal_all(remaining.as_deref().unwrap_or_default(), Signal::TERM);
    // A stopped process handles SIGTERM only when it continues.
    signal_all(remaining.as_deref().unwrap_or_default(), Signal::CONT);
    while !is_done(&remaining) && Instant::now() < term_deadline {
        on_scan();
        wait(signals, term_deadline);
        remaining = reap_and_list(exempt, on_reap);
    }
    while !is_done(&reap_and_list(exempt, on_reap)) {
        if Instant::now() >= kill_deadline {
            return Remaining::Descendants;
        }
        stop_all(exempt, kill_deadline);
        signal_all(&live_descendants(exempt).unwrap_or_default(), Signal::KILL);
        on_scan();
        wait(signals, Instant::now() + RESCAN_INTERVAL);
    }
    Remaining::Nothing
}

/// The processes that the shim must not end: the daemon, whose process id is `pid`, and the tmux
/// server in which the daemon runs.
///
/// The tmux server is included only if the agent has started it. Then the server is an orphan,
/// because a tmux server detaches itself, so its parent is the shim. On systems without subreapers
/// its parent is process 1.
pub(crate) fn daemon_and_its_tmux(pid: u32) -> Vec<ProcessEntry> {
    let has_name = |process: &ProcessEntry, name: &str| {
        platform::system().program_name(process.pid).is_some_and(|program| program.starts_with(name))
    };
    let daemon = ProcessEntry::read(pid).filter(|daemon| has_name(daemon, "teamd"));
    let tmux = daemon.and_then(|daemon| ProcessEntry::read(daemon.parent));
    let parent_of_orphans = if orphans_without_subreaper::is_tracking() { 1 } else { std::process::id() };
    let tmux = tmux.filter(|tmux| tmux.parent == parent_of_orphans && has_name(tmux, "tmux"));
    daemon.into_iter().chain(tmux).collect()
}

/// Sends SIGKILL to a child that was not reaped yet, and to all its descendants.
pub(crate) fn kill_tree(child: u32) {
    descendants_except(child, &[])
        .unwrap_or_default()
        .into_iter()
        .chain(ProcessEntry::read(child))
        .for_each(|process| send_signal(process, Signal::KILL));
}

/// Whether a descendant of the shim is in the process session `session`. Zombies do not count. Also
/// true if the process table cannot be read.
pub(crate) fn has_process_in_session(session: u32) -> bool {
    let descendants = live_descendants(&[]);
    descendants.map_or(true, |processes| processes.iter().any(|process| process.session == session))
}

/// Sends a signal to all descendants of the shim in the process session `session`.
pub(crate) fn signal_session(session: u32, signal: Signal) {
    let processes = live_descendants(&[]).unwrap_or_default();
    let in_session = processes.into_iter().filter(|process| process.session == session);
    in_session.for_each(|process| send_signal(process, signal));
}

/// Reaps all children that have exited. Returns false if the shim has no child left. If the shim is
/// a subreaper, false also means that it has no other descendants.
pub(crate) fn reap(on_reap: OnReap<'_>) -> bool {
    loop {
        // `nix` returns a decoded wait status, but an `ExitStatus` can only be made from a raw one.
        // So the exit code or the signal is encoded again.
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(nix::sys::wait::WaitStatus::Exited(pid, code)) => {
                on_reap(pid.as_raw().unsigned_abs(), ExitStatus::from_raw((code & 0xff) << 8));
            }
            Ok(nix::sys::wait::WaitStatus::Signaled(pid, signal, _)) => {
                on_reap(pid.as_raw().unsigned_abs(), ExitStatus::from_raw(signal as i32));
            }
            Ok(nix::sys::wait::WaitStatus::StillAlive) => return true,
            Err(errno) => return errno != Errno::ECHILD,
            Ok(_) => {}
        }
    }
}

/// Reaps children that have exited, and returns the descendants that still run.
fn reap_and_list(exempt: &[ProcessEntry], on_reap: OnReap<'_>) -> io::Result<Vec<ProcessEntry>> {
    let has_children = reap(on_reap);
    let may_have_descendants = has_children || orphans_without_subreaper::is_tracking();
    if may_have_descendants { live_descendants(exempt) } else { Ok(Vec::new()) }
}

fn wait(signals: &ShimSignals, deadline: Instant) {
    let timeout = poll_timeout::from_deadline(deadline.min(Instant::now() + RESCAN_INTERVAL));
    poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout).ok();
    signals.drain();
}

/// Sends SIGSTOP to all descendants, and repeats this until there are no new ones. The caller kills
/// them only when all are stopped. If some still ran, they could start new processes while others
/// are killed.
fn stop_all(exempt: &[ProcessEntry], deadline: Instant) {
    let mut stopped = HashSet::new();
    while Instant::now() < deadline {
        let processes: Vec<ProcessEntry> = live_descendants(exempt)
            .unwrap_or_default()
            .into_iter()
            .filter(|process| stopped.insert((process.pid, process.start)))
            .collect();
        if processes.is_empty() {
            return;
        }
        processes.into_iter().for_each(|process| send_signal(process, Signal::STOP));
    }
}

fn signal_all(processes: &[ProcessEntry], signal: Signal) {
    processes.iter().for_each(|process| send_signal(*process, signal));
}

/// Sends a signal to a process. Does nothing if the process has exited.
fn send_signal(process: ProcessEntry, signal: Signal) {
    platform::system().send_signal(&process, signal).ok();
}

/// All descendants of the shim that are not zombies, except `exempt` and their descendants.
///
/// # Errors
///
/// If the process table cannot be read.
fn live_descendants(exempt: &[ProcessEntry]) -> io::Result<Vec<ProcessEntry>> {
    let mut processes = descendants_except(std::process::id(), exempt)?;
    processes.extend(orphans_without_subreaper::find_orphans(&processes, exempt)?);
    Ok(processes)
}

/// All descendants of the process `ancestor` that are not zombies, except the processes in `exempt`
/// and their descendants.
///
/// If a process exits during a walk, its children get another parent, and the walk may miss them.
/// So the result is used only if two successive walks agree.
fn descendants_except(ancestor: u32, exempt: &[ProcessEntry]) -> io::Result<Vec<ProcessEntry>> {
    let mut previous_walk = None;
    for _ in 0..MAX_TREE_WALKS {
        let processes = walk_tree(ancestor, exempt);
        if processes.is_some() && processes == previous_walk {
            return Ok(processes.into_iter().flatten().collect());
        }
        previous_walk = processes;
    }
    descendants_from_table(ancestor, exempt)
}

/// Walks the process tree from parent to child. If there are few descendants, this is faster than
/// reading the table of all processes. `None` if a process exited before it was read, or if the
/// kernel provides no lists of children.
fn walk_tree(ancestor: u32, exempt: &[ProcessEntry]) -> Option<Vec<ProcessEntry>> {
    let (mut processes, mut parents) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = parents.pop() {
        for child in platform::system().children(parent)? {
            let process = ProcessEntry::read(child).filter(|process| process.parent == parent)?;
            if !process.zombie && !exempt.iter().any(|exempt| exempt.is_same(&process)) {
                parents.push(child);
                processes.push(process);
            }
        }
    }
    Some(processes)
}

/// Finds the descendants in the table of all processes.
fn descendants_from_table(ancestor: u32, exempt: &[ProcessEntry]) -> io::Result<Vec<ProcessEntry>> {
    let table = platform::system().processes()?;
    let processes: HashMap<u32, ProcessEntry> =
        table.into_iter().map(|process| (process.pid, process)).collect();
    let is_descendant = |mut pid: u32| {
        // The loop is bounded, because a table that changes while it is read may contain a cycle.
        for _ in 0..processes.len() {
            match processes.get(&pid) {
                Some(process) if exempt.iter().any(|exempt| exempt.is_same(process)) => return false,
                Some(process) if process.parent == ancestor => return true,
                Some(process) if process.parent > 1 => pid = process.parent,
                _ => return false,
            }
        }
        false
    };
    let live = processes.values().filter(|process| !process.zombie && is_descendant(process.pid));
    Ok(live.copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A shell with two children: a sleep, and a shell with a sleep of its own.
    struct ProcessTree(Child);

    impl ProcessTree {
        fn start() -> ProcessTree {
            let script = "sleep 60 & sh -c 'sleep 60 & wait' & wait";
            let tree = ProcessTree(Command::new("sh").args(["-c", script]).spawn().unwrap());
            let deadline = Instant::now() + Duration::from_secs(20);
            while tree.sleep_processes().len() < 2 {
                assert!(Instant::now() < deadline, "both sleep processes have started");
                std::thread::yield_now();
            }
            tree
        }

        /// The `sleep` processes in the tree.
        fn sleep_processes(&self) -> Vec<ProcessEntry> {
            let all = descendants_from_table(self.0.id(), &[]).unwrap().into_iter();
            all.filter(|process| platform::system().program_name(process.pid).as_deref() == Some("sleep"))
                .collect()
        }
    }

    impl Drop for ProcessTree {
        fn drop(&mut self) {
            descendants_except(self.0.id(), &[])
                .unwrap()
                .into_iter()
                .for_each(|process| send_signal(process, Signal::KILL));
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn walk_of_the_tree_and_process_table_find_the_same_descendants() {
        let tree = ProcessTree::start();
        let sorted = |mut processes: Vec<ProcessEntry>| {
            processes.sort_by_key(|process| process.pid);
            processes
        };
        let find = |exempt: &[ProcessEntry]| {
            let processes = sorted(walk_tree(tree.0.id(), exempt).unwrap());
            assert_eq!(processes, sorted(descendants_from_table(tree.0.id(), exempt).unwrap()));
            processes
        };
        let all = find(&[]);
        assert_eq!(all.len(), 3);
        let shell = *all.iter().find(|process| all.iter().any(|other| other.parent == process.pid)).unwrap();
        assert_eq!(find(&[shell]).len(), 1, "neither the shell nor its child is found");
    }

    #[test]
    fn walk_of_an_ended_process_fails_and_a_zombie_is_not_a_descendant() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(walk_tree(child.id(), &[]), None);
        assert!(descendants_except(child.id(), &[]).unwrap().is_empty());
        let mut shell = Command::new("sh").args(["-c", "true & exec sleep 60"]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let is_zombie = |pid: &u32| ProcessEntry::read(*pid).is_some_and(|process| process.zombie);
        while !platform::system().children(shell.id()).unwrap().iter().any(is_zombie) {
            assert!(Instant::now() < deadline, "the child of the shell is a zombie");
            std::thread::yield_now();
        }
        assert_eq!(walk_tree(shell.id(), &[]), Some(vec![]));
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    /// When the first thread of a process has exited, Linux shows the process as a zombie, although
    /// other threads still run. Such a process must not be skipped, because the other threads may
    /// have children.
    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux shows this process as a zombie")]
    fn child_of_a_thread_is_found_after_the_first_thread_has_exited() {
        let script = "import ctypes, subprocess, threading\n\
            threading.Thread(target=lambda: subprocess.run(['sleep', '60'])).start()\n\
            ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3").args(["-c", script]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let has_zombie_state =
            |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
        while !(has_zombie_state(&stat()) && descendants_except(child.id(), &[]).unwrap().len() == 1) {
            assert!(Instant::now() < deadline, "{}", stat());
            std::thread::yield_now();
        }
        assert!(!ProcessEntry::read(child.id()).unwrap().zombie);
        kill_tree(child.id());
        child.wait().unwrap();
    }
}
