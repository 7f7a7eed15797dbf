//! The process of one turn: its input is written as it reads, and its end counts once nothing of it is left.

use super::interrupt::Interrupt;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::Write;
use std::process::{ChildStdin, ExitStatus};

/// The turn's process.
pub(super) struct Running {
    pub(super) pid: u32,
    pub(super) status: Option<ExitStatus>,
    pub(super) input: Option<Input>,
    pub(super) interrupt: Option<Interrupt>,
    /// The last lines, once all its output is read.
    pub(super) last: Option<String>,
}

impl Running {
    /// It has ended; if it was interrupted, with all that it left in its session.
    pub(super) fn is_over(&mut self) -> bool {
        if self.status.is_none() {
            return false;
        }
        self.interrupt = self.interrupt.take().map(|interrupt| interrupt.clear(self.pid));
        matches!(self.interrupt, None | Some(Interrupt::Over))
    }

    /// Whatever its time has come for.
    pub(super) fn go_on(&mut self) {
        if let Some(input) = self.input.take() {
            self.input = input.fed();
        }
        if self.status.is_none()
            && let Some(interrupt) = self.interrupt.take()
        {
            self.interrupt = Some(interrupt.press(self.pid));
        }
    }
}

/// What its standard input is still to get.
pub(super) struct Input {
    pub(super) pipe: ChildStdin,
    text: Vec<u8>,
    written: usize,
}

impl Input {
    /// None where there is nothing to write: the pipe is closed at once.
    pub(super) fn new(pipe: ChildStdin, text: String) -> Option<Input> {
        let flags = OFlag::from_bits_retain(fcntl(&pipe, FcntlArg::F_GETFL).ok()?);
        // Our end alone: it is another description than the program's.
        fcntl(&pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).ok()?;
        Input { pipe, text: text.into_bytes(), written: 0 }.fed()
    }

    /// Writes what the pipe takes; none when all is written, or nobody reads: then it is closed.
    fn fed(mut self) -> Option<Input> {
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
