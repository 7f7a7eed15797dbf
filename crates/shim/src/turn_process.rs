//! The process of one turn: its input is written as it reads, and its end counts once nothing of it is left.

use crate::turn_interrupt::InterruptStage;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::Write;
use std::process::{ChildStdin, ExitStatus};

/// The turn's process.
pub(crate) struct TurnProcess {
    pub(crate) pid: u32,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) input: Option<PendingStdin>,
    pub(crate) interrupt: Option<InterruptStage>,
    /// The last lines, once all its output is read.
    pub(crate) output_tail: Option<String>,
}

impl TurnProcess {
    /// It has ended; if it was interrupted, with all that it left in its session.
    pub(crate) fn is_finished(&mut self) -> bool {
        if self.status.is_none() {
            return false;
        }
        self.interrupt = self.interrupt.take().map(|interrupt| interrupt.end_descendants(self.pid));
        matches!(self.interrupt, None | Some(InterruptStage::Done))
    }

    /// Whatever its time has come for.
    pub(crate) fn advance(&mut self) {
        if let Some(input) = self.input.take() {
            self.input = input.write_some();
        }
        if self.status.is_none()
            && let Some(interrupt) = self.interrupt.take()
        {
            self.interrupt = Some(interrupt.escalate(self.pid));
        }
    }
}

/// What its standard input is still to get.
pub(crate) struct PendingStdin {
    pub(crate) pipe: ChildStdin,
    text: Vec<u8>,
    written: usize,
}

impl PendingStdin {
    /// None where there is nothing to write: the pipe is closed at once.
    pub(crate) fn new(pipe: ChildStdin, text: String) -> Option<PendingStdin> {
        let flags = OFlag::from_bits_retain(fcntl(&pipe, FcntlArg::F_GETFL).ok()?);
        // Our end alone: it is another description than the program's.
        fcntl(&pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).ok()?;
        PendingStdin { pipe, text: text.into_bytes(), written: 0 }.write_some()
    }

    /// Writes what the pipe takes; none when all is written, or nobody reads: then it is closed.
    fn write_some(mut self) -> Option<PendingStdin> {
        while self.written < self.text.len() {
            match self.pipe.write(&self.text[self.written..]) {
                Ok(0) => return None,
                Ok(written) => self.written += written,
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => return Some(self),
                Err(error) if error.raw_os_error() == Some(Errno::EINTR as i32) => {}
                Err(_) => return None,
            }
        }
        None
    }
}
