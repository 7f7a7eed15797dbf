//! The process of one turn, with its standard input, its interrupt and its exit.

use crate::signal_escalation::SignalStage;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::Write;
use std::process::{ChildStdin, ExitStatus};

pub(crate) struct TurnProcess {
    pub(crate) pid: u32,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdin: Option<PendingStdin>,
    pub(crate) interrupt: Option<SignalStage>,
    /// The last lines of the output. `None` until all output was read.
    pub(crate) output_tail: Option<String>,
}

impl TurnProcess {
    /// Whether the turn is finished, because the turn's process has exited. An interrupted turn is
    /// finished only when the other processes in its process session have ended too. After an
    /// interrupt, this function also sends signals to these processes, so it must be called
    /// repeatedly.
    pub(crate) fn is_finished(&mut self) -> bool {
        if self.status.is_none() {
            return false;
        }
        self.interrupt = self.interrupt.take().map(|interrupt| interrupt.end_descendants(self.pid));
        matches!(self.interrupt, None | Some(SignalStage::Done))
    }

    /// Writes to standard input, and goes to the next stage of an interrupt if the time has come.
    pub(crate) fn advance(&mut self) {
        if let Some(stdin) = self.stdin.take() {
            self.stdin = stdin.write_some();
        }
        if self.status.is_none()
            && let Some(interrupt) = self.interrupt.take()
        {
            self.interrupt = Some(interrupt.escalate(self.pid));
        }
    }
}

/// The text that is still to be written to standard input.
pub(crate) struct PendingStdin {
    pub(crate) pipe: ChildStdin,
    text: Vec<u8>,
    written: usize,
}

impl PendingStdin {
    /// Starts to write `text` to the program's standard input. Returns the text that the pipe did
    /// not take yet. Closes the pipe and returns `None` if the pipe took everything, or if writing
    /// failed.
    pub(crate) fn new(pipe: ChildStdin, text: String) -> Option<PendingStdin> {
        let flags = OFlag::from_bits_retain(fcntl(&pipe, FcntlArg::F_GETFL).ok()?);
        // Only the shim's end of the pipe becomes non-blocking. The program's end has a file
        // description of its own, so the program's reads still block.
        fcntl(&pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).ok()?;
        PendingStdin { pipe, text: text.into_bytes(), written: 0 }.write_some()
    }

    /// Writes as much text to standard input as the pipe takes without blocking. Returns the rest.
    /// Closes the pipe and returns `None` if everything is written, or if the program no longer
    /// reads.
    pub(crate) fn write_some(mut self) -> Option<PendingStdin> {
        while self.written < self.text.len() {
            match self.pipe.write(&self.text[self.written..]) {
                Ok(0) => return None,
                Ok(count) => self.written += count,
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => return Some(self),
                Err(error) if error.raw_os_error() == Some(Errno::EINTR as i32) => {}
                Err(_) => return None,
            }
        }
        None
    }
}
