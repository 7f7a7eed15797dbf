//! Counts the reads of other programs from a terminal.

use std::fmt::{self, Debug, Formatter};
use std::os::fd::{AsFd, BorrowedFd};

/// A source of events, one for each read from the terminal.
pub(crate) trait ReadEvents: AsFd {
    /// The number of events since the last call.
    fn take_count(&mut self) -> usize;
}

/// A watched terminal. The descriptor is readable after a read from the terminal.
pub struct TerminalReads(pub(crate) Box<dyn ReadEvents + Send>);

impl TerminalReads {
    /// The number of reads since the last call.
    pub fn take_count(&mut self) -> usize {
        self.0.take_count()
    }
}

impl AsFd for TerminalReads {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Debug for TerminalReads {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalReads").finish_non_exhaustive()
    }
}
