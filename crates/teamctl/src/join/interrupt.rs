//! Ending a turn that is not to go on: INT to its process group, as Ctrl-C would, after 2 s TERM, after 2 s more
//! KILL to it and all its descendants.

use super::descendants::kill_below;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(2);

/// How far it is.
#[derive(Debug)]
pub(super) enum Interrupt {
    /// It was asked; until then.
    Asked(Instant),
    /// It was told; until then.
    Told(Instant),
    /// It was killed, and what is left of it too, until it is gone.
    Killed(Instant),
}

impl Interrupt {
    /// Asks. `group` is led by a child of ours that was not reaped yet.
    pub(super) fn ask(group: u32) -> Interrupt {
        signal(group, Signal::SIGINT);
        Interrupt::Asked(Instant::now() + PATIENCE)
    }

    /// When to press on.
    pub(super) fn until(&self) -> Instant {
        let (Interrupt::Asked(until) | Interrupt::Told(until) | Interrupt::Killed(until)) = self;
        *until
    }

    /// The next step, where its time has come. `group` as above.
    pub(super) fn press(self, group: u32) -> Interrupt {
        let now = Instant::now();
        match self {
            Interrupt::Asked(until) if until <= now => {
                signal(group, Signal::SIGTERM);
                // A stopped process takes TERM only once it goes on.
                signal(group, Signal::SIGCONT);
                Interrupt::Told(now + PATIENCE)
            }
            Interrupt::Told(until) | Interrupt::Killed(until) if until <= now => {
                kill_below(group);
                Interrupt::Killed(now + PATIENCE)
            }
            step => step,
        }
    }
}

/// One that is gone meanwhile needs no signal.
pub(super) fn signal(group: u32, signal: Signal) {
    if let Ok(group) = i32::try_from(group) {
        killpg(Pid::from_raw(group), signal).ok();
    }
}
