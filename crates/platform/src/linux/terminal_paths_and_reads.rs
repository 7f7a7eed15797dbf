//! Pseudo-terminals: their paths, and who reads from them.

use crate::TerminalReads;
use crate::terminal_read_counter::ReadEvents;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::path::{Path, PathBuf};

/// Pseudo-terminals have the major device numbers 136 to 143, with 256 terminals for each.
pub(super) fn path(device: u32) -> Option<PathBuf> {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    (136..=143).contains(&major).then(|| PathBuf::from(format!("/dev/pts/{}", (major - 136) * 256 + minor)))
}

/// inotify reports each read from a terminal.
pub(super) fn watch_reads(device: &Path) -> Option<TerminalReads> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
    inotify.add_watch(device, AddWatchFlags::IN_ACCESS).ok()?;
    Some(TerminalReads(Box::new(inotify)))
}

impl ReadEvents for Inotify {
    fn take_count(&mut self) -> usize {
        let mut reads = 0;
        loop {
            match self.read_events() {
                Ok(events) => reads += events.len(),
                Err(Errno::EINTR) => {}
                Err(_) => return reads,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_follows_the_device_number() {
        assert_eq!(path((136 << 8) | 300 & 0xff | (256 << 12)), Some("/dev/pts/300".into()));
        assert_eq!(path((137 << 8) | 3), Some("/dev/pts/259".into()));
        assert_eq!(path((4 << 8) | 1), None, "a virtual console");
    }
}
