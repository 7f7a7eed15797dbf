//! Ending a turn that is not to go on: INT to its process group, as Ctrl-C would, after 2 s TERM, after 2 s more
//! KILL to it and all its descendants. What it leaves in its session ends too: TERM, after 2 s KILL.

use crate::descendants::{has_process_in_session, kill_tree, signal_session};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

const STAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// How far it is.
#[derive(Debug)]
pub(crate) enum InterruptStage {
    /// It was asked; until then.
    IntSent(Instant),
    /// It was told; until then.
    TermSent(Instant),
    /// It was killed, and what is left of it too, until it is gone.
    KillSent(Instant),
    /// It has ended; what it left was told to, until then.
    DescendantsTermSent(Instant),
    /// That was killed; it is waited for until then.
    DescendantsKillSent(Instant),
    /// Nothing is left, or nothing that can be ended.
    Done,
}

impl InterruptStage {
    /// Asks. `group` is led by a child of ours that was not reaped yet.
    pub(crate) fn start(group: u32) -> InterruptStage {
        signal_group(group, Signal::SIGINT);
        InterruptStage::IntSent(Instant::now() + STAGE_TIMEOUT)
    }

    /// When to press on.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        use InterruptStage::{DescendantsKillSent, DescendantsTermSent, Done, IntSent, KillSent, TermSent};
        match self {
            IntSent(until)
            | TermSent(until)
            | KillSent(until)
            | DescendantsTermSent(until)
            | DescendantsKillSent(until) => Some(*until),
            Done => None,
        }
    }

    /// The next step, where its time has come. `group` as above.
    pub(crate) fn escalate(self, group: u32) -> InterruptStage {
        let now = Instant::now();
        match self {
            InterruptStage::IntSent(until) if until <= now => {
                signal_group(group, Signal::SIGTERM);
                // A stopped process takes TERM only once it goes on.
                signal_group(group, Signal::SIGCONT);
                InterruptStage::TermSent(now + STAGE_TIMEOUT)
            }
            InterruptStage::TermSent(until) | InterruptStage::KillSent(until) if until <= now => {
                kill_tree(group);
                InterruptStage::KillSent(now + STAGE_TIMEOUT)
            }
            step => step,
        }
    }

    /// The next step about what a turn that has ended left in its session. The kernel gives the number to nobody
    /// else while a process is in the session.
    pub(crate) fn end_descendants(self, session: u32) -> InterruptStage {
        let now = Instant::now();
        match self {
            InterruptStage::Done => InterruptStage::Done,
            _ if !has_process_in_session(session) => InterruptStage::Done,
            InterruptStage::IntSent(_) | InterruptStage::TermSent(_) | InterruptStage::KillSent(_) => {
                signal_session(session, rustix::process::Signal::TERM);
                signal_session(session, rustix::process::Signal::CONT);
                InterruptStage::DescendantsTermSent(now + STAGE_TIMEOUT)
            }
            InterruptStage::DescendantsTermSent(until) if until <= now => {
                signal_session(session, rustix::process::Signal::KILL);
                InterruptStage::DescendantsKillSent(now + STAGE_TIMEOUT)
            }
            InterruptStage::DescendantsKillSent(until) if until <= now => InterruptStage::Done,
            step => step,
        }
    }
}

/// One that is gone meanwhile needs no signal.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    if let Ok(group) = i32::try_from(group) {
        killpg(Pid::from_raw(group), signal).ok();
    }
}
