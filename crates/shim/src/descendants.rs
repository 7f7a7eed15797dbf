//! What an agent leaves behind, ended: children in the background, with nohup, in sessions of their own,
//! forked twice. join is the subreaper, so all of them are its descendants for as long as they live.
//!
//! So is a daemon that the agent has started, with the tmux server that was started for it and all that runs there by
//! now. That is everybody's, and goes on.

use crate::poll_timeout;
use crate::signals::ShimSignals;
use client::process_table::ProcessStat;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::wait::{WaitPidFlag, waitpid};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// KILL is repeated for at most this long; a process in an uninterruptible wait can outlast it.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);
/// Between two looks while nothing is reported: a grandchild's death is told to its parent, not to us.
const RESCAN_INTERVAL: Duration = Duration::from_millis(20);

/// So often the way from parent to child is tried while others come and go, before the table is looked through.
const MAX_TREE_WALKS: usize = 4;

/// Called for every child that is reaped.
type OnReap<'a> = &'a mut dyn FnMut(u32, ExitStatus);

/// Whether any descendant is there still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remaining {
    Nothing,
    Descendants,
}

/// TERM to all but `everybodys` and what is below that, after the grace STOP and KILL, until none is left. `meanwhile`
/// is done at each look.
pub(crate) fn end_all(
    signals: &ShimSignals,
    grace: Duration,
    everybodys: &[ProcessStat],
    reaped: OnReap<'_>,
    meanwhile: &mut dyn FnMut(),
) -> Remaining {
    let term_until = Instant::now() + grace;
    let kill_until = term_until + KILL_TIMEOUT;
    let mut left = live_descendants(everybodys);
    signal_all(&left, Signal::TERM);
    // A stopped process takes TERM only once it goes on.
    signal_all(&left, Signal::CONT);
    while !left.is_empty() && Instant::now() < term_until {
        meanwhile();
        wait(signals, term_until);
        left = reap_and_list(everybodys, reaped);
    }
    while !reap_and_list(everybodys, reaped).is_empty() {
        if Instant::now() >= kill_until {
            return Remaining::Descendants;
        }
        stop_all(everybodys, kill_until);
        signal_all(&live_descendants(everybodys), Signal::KILL);
        meanwhile();
        wait(signals, Instant::now() + RESCAN_INTERVAL);
    }
    Remaining::Nothing
}

/// The daemon with this number, and the tmux server that it was started in where that is a child of ours: one that runs
/// in the background is reparented to us.
pub(crate) fn daemon_and_its_tmux(pid: u32) -> Vec<ProcessStat> {
    let called = |process: &ProcessStat, name: &str| {
        client::process_table::program_name(process.pid).is_some_and(|called| called.starts_with(name))
    };
    let daemon = ProcessStat::read(pid).filter(|daemon| called(daemon, "teamd"));
    let around = daemon.and_then(|daemon| ProcessStat::read(daemon.parent));
    let around = around.filter(|around| around.parent == std::process::id() && called(around, "tmux"));
    daemon.into_iter().chain(around).collect()
}

/// KILL to a child of ours that was not reaped yet, and to all its descendants.
pub(crate) fn kill_tree(child: u32) {
    descendants_except(child, &[])
        .into_iter()
        .chain(ProcessStat::read(child))
        .for_each(|process| send_signal(process, Signal::KILL));
}

/// Whether a descendant of ours is in the session, zombies aside.
pub(crate) fn has_process_in_session(session: u32) -> bool {
    live_descendants(&[]).iter().any(|process| process.session == session)
}

/// To all descendants of ours in the session.
pub(crate) fn signal_session(session: u32, signal: Signal) {
    let inside = live_descendants(&[]).into_iter().filter(|process| process.session == session);
    inside.for_each(|process| send_signal(process, signal));
}

/// Collects whoever has ended. False where no child is left, and so, with us as the subreaper, nobody at all.
pub(crate) fn reap(reaped: OnReap<'_>) -> bool {
    loop {
        // nix's own decoding drops what ExitStatus keeps, so the status is put together again.
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(nix::sys::wait::WaitStatus::Exited(pid, code)) => {
                reaped(pid.as_raw().unsigned_abs(), ExitStatus::from_raw((code & 0xff) << 8));
            }
            Ok(nix::sys::wait::WaitStatus::Signaled(pid, signal, _)) => {
                reaped(pid.as_raw().unsigned_abs(), ExitStatus::from_raw(signal as i32));
            }
            Ok(nix::sys::wait::WaitStatus::StillAlive) => return true,
            Err(errno) => return errno != Errno::ECHILD,
            Ok(_) => {}
        }
    }
}

/// Who lives once all that have ended are collected.
fn reap_and_list(everybodys: &[ProcessStat], reaped: OnReap<'_>) -> Vec<ProcessStat> {
    if reap(reaped) { live_descendants(everybodys) } else { Vec::new() }
}

fn wait(signals: &ShimSignals, deadline: Instant) {
    let timeout = poll_timeout::until(deadline.min(Instant::now() + RESCAN_INTERVAL));
    poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout).ok();
    signals.drain();
}

/// Until a look finds nobody who is not stopped. Who is killed while others fork makes room for their children; who is
/// stopped starts none, and takes up its place under whatever limit there is.
fn stop_all(everybodys: &[ProcessStat], until: Instant) {
    let mut stopped = HashSet::new();
    while Instant::now() < until {
        let fresh: Vec<ProcessStat> = live_descendants(everybodys)
            .into_iter()
            .filter(|one| stopped.insert((one.pid, one.start)))
            .collect();
        if fresh.is_empty() {
            return;
        }
        fresh.into_iter().for_each(|process| send_signal(process, Signal::STOP));
    }
}

fn signal_all(processes: &[ProcessStat], signal: Signal) {
    processes.iter().for_each(|process| send_signal(*process, signal));
}

/// By pidfd, opened before the start time is compared: a number that was reused meanwhile is left alone.
fn send_signal(process: ProcessStat, signal: Signal) {
    let Some(pidfd) = i32::try_from(process.pid)
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return;
    };
    if process.exists() {
        pidfd_send_signal(&pidfd, signal).ok();
    }
}

/// All our descendants that are not zombies, but for these and theirs.
fn live_descendants(but: &[ProcessStat]) -> Vec<ProcessStat> {
    descendants_except(std::process::id(), but)
}

/// All descendants of a process that are not zombies, but for these and theirs. Whose parent ended amid a walk is somebody
/// else's child by then, and may have been missed: so what two walks in a row have found is believed.
fn descendants_except(ancestor: u32, but: &[ProcessStat]) -> Vec<ProcessStat> {
    let mut last = None;
    for _ in 0..MAX_TREE_WALKS {
        let found = walk_tree(ancestor, but);
        if found.is_some() && found == last {
            return found.into_iter().flatten().collect();
        }
        last = found;
    }
    descendants_from_table(ancestor, but)
}

/// From parent to child, which takes as long as there are descendants, where the table takes as long as there are
/// processes. None where somebody was gone before it was looked at, and where the kernel lists no children.
fn walk_tree(ancestor: u32, but: &[ProcessStat]) -> Option<Vec<ProcessStat>> {
    let (mut found, mut parents) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = parents.pop() {
        for child in child_pids(parent)? {
            let process = ProcessStat::read(child).filter(|process| process.parent == parent)?;
            if !process.zombie && !but.iter().any(|but| but.is_same(&process)) {
                parents.push(child);
                found.push(process);
            }
        }
    }
    Some(found)
}

/// Of all its threads.
fn child_pids(parent: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{parent}/task")).ok()? {
        match std::fs::read_to_string(thread.ok()?.path().join("children")) {
            Ok(text) => all.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            // The thread alone has ended, and what it had started is another thread's.
            Err(_) => return None,
        }
    }
    Some(all)
}

/// The same, out of the table of all processes.
fn descendants_from_table(ancestor: u32, but: &[ProcessStat]) -> Vec<ProcessStat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: HashMap<u32, ProcessStat> =
        pids.filter_map(|pid| Some((pid, ProcessStat::read(pid)?))).collect();
    let descends = |mut pid: u32| {
        // Bounded: a table read while it changes could hold a circle.
        for _ in 0..all.len() {
            match all.get(&pid) {
                Some(process) if but.iter().any(|but| but.is_same(process)) => return false,
                Some(process) if process.parent == ancestor => return true,
                Some(process) if process.parent > 1 => pid = process.parent,
                _ => return false,
            }
        }
        false
    };
    all.values().filter(|process| !process.zombie && descends(process.pid)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// With a child, and a shell with a child of its own.
    struct Family(Child);

    impl Family {
        fn begin() -> Family {
            let script = "sleep 60 & sh -c 'sleep 60 & wait' & wait";
            let family = Family(Command::new("sh").args(["-c", script]).spawn().unwrap());
            let until = Instant::now() + Duration::from_secs(20);
            while family.sleepers().len() < 2 {
                assert!(Instant::now() < until, "they begin");
                std::thread::yield_now();
            }
            family
        }

        fn sleepers(&self) -> Vec<ProcessStat> {
            let all = descendants_from_table(self.0.id(), &[]).into_iter();
            all.filter(|process| client::process_table::program_name(process.pid).as_deref() == Some("sleep"))
                .collect()
        }
    }

    impl Drop for Family {
        fn drop(&mut self) {
            descendants_except(self.0.id(), &[])
                .into_iter()
                .for_each(|process| send_signal(process, Signal::KILL));
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn the_way_from_parent_to_child_finds_whom_the_table_has() {
        let family = Family::begin();
        let sorted = |mut found: Vec<ProcessStat>| {
            found.sort_by_key(|process| process.pid);
            found
        };
        let of = |but: &[ProcessStat]| {
            let found = sorted(walk_tree(family.0.id(), but).unwrap());
            assert_eq!(found, sorted(descendants_from_table(family.0.id(), but)));
            found
        };
        let all = of(&[]);
        assert_eq!(all.len(), 3);
        let shell = *all.iter().find(|one| all.iter().any(|other| other.parent == one.pid)).unwrap();
        assert_eq!(of(&[shell]).len(), 1, "neither the shell nor what is below it");
    }

    #[test]
    fn whoever_has_ended_leaves_the_way_without_an_answer_and_a_zombie_is_none() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(walk_tree(child.id(), &[]), None);
        assert!(descendants_except(child.id(), &[]).is_empty());
        let mut shell = Command::new("sh").args(["-c", "true & exec sleep 60"]).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let is_zombie = |pid: &u32| ProcessStat::read(*pid).is_some_and(|process| process.zombie);
        while !child_pids(shell.id()).unwrap().iter().any(is_zombie) {
            assert!(Instant::now() < until, "it ends, and sleep does not look");
            std::thread::yield_now();
        }
        assert_eq!(walk_tree(shell.id(), &[]), Some(vec![]));
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    /// One whose first thread has ended, and the other has a child: it lives, though its letter is that of a zombie.
    #[test]
    fn what_lives_below_a_thread_of_one_that_looks_dead_is_found() {
        let script = "import ctypes, subprocess, threading\n\
            threading.Thread(target=lambda: subprocess.run(['sleep', '60'])).start()\n\
            ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3").args(["-c", script]).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let looks_dead = |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
        while !(looks_dead(&stat()) && descendants_except(child.id(), &[]).len() == 1) {
            assert!(Instant::now() < until, "{}", stat());
            std::thread::yield_now();
        }
        assert!(!ProcessStat::read(child.id()).unwrap().zombie);
        kill_tree(child.id());
        child.wait().unwrap();
    }
}
