//! Looking at a lock that somebody holds, until it is free or proves abandoned.

use super::grip::{Grip, Reached, WINDOW, has_mark, is_marked, reach};
use super::{SECOND_LOOK, STALE, Stamp};
use crate::directory::{Directory, file_type};
use crate::error::Error;
use nix::sys::stat::SFlag;
use std::time::Instant;

/// What a look at a held lock says.
pub(super) enum Look {
    Gone,
    Held,
    Abandoned,
}

/// Remembers since when a lock has not changed, by a clock that does not jump.
pub(super) struct Watch {
    pub(super) seen: Option<(Stamp, Instant)>,
    odd: bool,
    /// On one that was found abandoned, so that of ours one alone takes it away.
    grip: Option<Grip>,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { seen: None, odd: false, grip: None }
    }

    #[cfg(test)]
    pub(super) fn having_seen(stamp: Stamp) -> Watch {
        Watch { seen: Some((stamp, Instant::now())), ..Watch::new() }
    }

    pub(super) fn look(&mut self, dir: &Directory, name: &str) -> Result<Look, Error> {
        self.grip = None;
        let Some(stat) = dir.stat(name)? else { return Ok(Look::Gone) };
        self.odd = file_type(&stat) != SFlag::S_IFDIR;
        let stamp = Stamp::of(&stat);
        let since = match self.seen {
            Some((seen, since)) if seen == stamp => since,
            _ => Instant::now(),
        };
        self.seen = Some((stamp, since));
        let watched = since.elapsed();
        let stale = watched >= STALE || (stamp.is_old() && watched >= SECOND_LOOK);
        let marked = is_marked(&stat);
        // Where stamps are whole seconds the one before may have had the same.
        let window = if stamp.nanoseconds == 0 { SECOND_LOOK * 4 } else { WINDOW };
        if self.odd || !(stale || marked && watched >= window) {
            return Ok(Look::Held);
        }
        Ok(match reach(dir, name, stamp) {
            // One that has no descriptors holds without a grip, and has taken the mark off.
            Reached::Got(grip) if !stale && !has_mark(&grip) => Look::Held,
            Reached::Got(grip) => {
                self.grip = Some(grip);
                Look::Abandoned
            }
            // One of ours that was stopped for so long. What is not marked another of ours is taking away, unless that
            // one was stopped, too, or before it could set the mark.
            Reached::Held if stale && (marked || watched >= STALE) => Look::Abandoned,
            Reached::Unknown if stale => Look::Abandoned,
            Reached::Held | Reached::Unknown => Look::Held,
        })
    }

    pub(super) fn why(&self) -> &'static str {
        if self.odd { "it is no directory, so no lock of the usual kind" } else { "another program holds it" }
    }
}
