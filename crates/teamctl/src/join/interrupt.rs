//! Ending a turn that is not to go on: INT to its process group, as Ctrl-C would, after 2 s TERM, after 2 s more
//! KILL to it and all its descendants. What it leaves in its session ends too: TERM, after 2 s KILL.

use super::descendants::{kill_below, lives_in, signal_in};
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
    /// It has ended; what it left was told to, until then.
    RestTold(Instant),
    /// That was killed; it is waited for until then.
    RestKilled(Instant),
    /// Nothing is left, or nothing that can be ended.
    Over,
}

impl Interrupt {
    /// Asks. `group` is led by a child of ours that was not reaped yet.
    pub(super) fn ask(group: u32) -> Interrupt {
        signal(group, Signal::SIGINT);
        Interrupt::Asked(Instant::now() + PATIENCE)
    }

    /// When to press on.
    pub(super) fn until(&self) -> Option<Instant> {
        use Interrupt::{Asked, Killed, Over, RestKilled, RestTold, Told};
        match self {
            Asked(until) | Told(until) | Killed(until) | RestTold(until) | RestKilled(until) => Some(*until),
            Over => None,
        }
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

    /// The next step about what a turn that has ended left in its session. The kernel gives the number to nobody
    /// else while a process is in the session.
    pub(super) fn clear(self, session: u32) -> Interrupt {
        let now = Instant::now();
        match self {
            Interrupt::Over => Interrupt::Over,
            _ if !lives_in(session) => Interrupt::Over,
            Interrupt::Asked(_) | Interrupt::Told(_) | Interrupt::Killed(_) => {
                signal_in(session, rustix::process::Signal::TERM);
                signal_in(session, rustix::process::Signal::CONT);
                Interrupt::RestTold(now + PATIENCE)
            }
            Interrupt::RestTold(until) if until <= now => {
                signal_in(session, rustix::process::Signal::KILL);
                Interrupt::RestKilled(now + PATIENCE)
            }
            Interrupt::RestKilled(until) if until <= now => Interrupt::Over,
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
