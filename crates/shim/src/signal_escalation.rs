//! Ends processes by signals that escalate: if a signal does not end them within 2 s, a stronger
//! one follows.
//!
//! To interrupt a turn, the process group of the turn gets SIGINT, as after Ctrl-C, and then
//! SIGTERM. Then the turn's process and all its descendants get SIGKILL. Once the process has
//! exited, the processes that are left in its process session get SIGTERM, and then SIGKILL. The
//! same happens to the process session of a driver that has exited.

use crate::end_descendants::{has_process_in_session, kill_tree, signal_session};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

const STAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// The last signal that was sent to interrupt a turn or to end a process session. The time in a
/// variant says when the next stage begins.
#[derive(Debug)]
pub(crate) enum SignalStage {
    /// The process group got SIGINT.
    IntSent(Instant),
    /// The process group got SIGTERM.
    TermSent(Instant),
    /// The process and its descendants got SIGKILL. The signal is repeated until the process has
    /// exited.
    KillSent(Instant),
    /// The process has exited, and its descendants got SIGTERM.
    DescendantsTermSent(Instant),
    /// The descendants got SIGKILL.
    DescendantsKillSent(Instant),
    /// No process is left that the shim can end.
    Done,
}

impl SignalStage {
    /// Sends SIGINT. `group` is the process group of a child that was not reaped yet.
    pub(crate) fn start(group: u32) -> SignalStage {
        signal_group(group, Signal::SIGINT);
        SignalStage::IntSent(Instant::now() + STAGE_TIMEOUT)
    }

    /// When the next stage begins. `None` if there is no next stage.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        use SignalStage::{DescendantsKillSent, DescendantsTermSent, Done, IntSent, KillSent, TermSent};
        match self {
            IntSent(deadline)
            | TermSent(deadline)
            | KillSent(deadline)
            | DescendantsTermSent(deadline)
            | DescendantsKillSent(deadline) => Some(*deadline),
            Done => None,
        }
    }

    /// Sends the next, stronger signal if the deadline has passed. `group` is the process group of
    /// a child that was not reaped yet, so the kernel cannot have given the group's id to another
    /// process.
    pub(crate) fn escalate(self, group: u32) -> SignalStage {
        let now = Instant::now();
        match self {
            SignalStage::IntSent(deadline) if deadline <= now => {
                signal_group(group, Signal::SIGTERM);
                // A stopped process handles SIGTERM only when it continues.
                signal_group(group, Signal::SIGCONT);
                SignalStage::TermSent(now + STAGE_TIMEOUT)
            }
            SignalStage::TermSent(deadline) | SignalStage::KillSent(deadline) if deadline <= now => {
                kill_tree(group);
                SignalStage::KillSent(now + STAGE_TIMEOUT)
            }
            stage => stage,
        }
    }

    /// Sends the next, stronger signal to the descendants of a process that has exited. `session`
    /// is the process session of these descendants. The kernel does not reuse this id while a
    /// process is in the session.
    pub(crate) fn end_descendants(self, session: u32) -> SignalStage {
        let now = Instant::now();
        match self {
            SignalStage::Done => SignalStage::Done,
            _ if !has_process_in_session(session) => SignalStage::Done,
            SignalStage::IntSent(_) | SignalStage::TermSent(_) | SignalStage::KillSent(_) => {
                signal_session(session, rustix::process::Signal::TERM);
                signal_session(session, rustix::process::Signal::CONT);
                SignalStage::DescendantsTermSent(now + STAGE_TIMEOUT)
            }
            SignalStage::DescendantsTermSent(deadline) if deadline <= now => {
                signal_session(session, rustix::process::Signal::KILL);
                SignalStage::DescendantsKillSent(now + STAGE_TIMEOUT)
            }
            SignalStage::DescendantsKillSent(deadline) if deadline <= now => SignalStage::Done,
            stage => stage,
        }
    }
}

/// Sends a signal to a process group. Nothing happens if the group is gone.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    if let Ok(group) = i32::try_from(group) {
        killpg(Pid::from_raw(group), signal).ok();
    }
}
