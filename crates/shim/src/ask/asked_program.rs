//! The program that is asked one question: its start, its output, and its end.

use super::compose_record::{AskEnd, FinishedProgram};
use crate::catch_signals::ShimSignals;
use crate::child_process::start_asked_program;
use crate::end_descendants::{end_all, reap};
use crate::poll_timeout;
use crate::supervisor::DESCENDANT_GRACE;
use crate::turn_process::PendingStdin;
use crate::turns::output_tail::OutputTail;
use crate::turns::scan_output_for_session_and_usage::OutputScanner;
use crate::turns::turn_executor_trait::TurnCommand;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::ask_setup_and_record::{AskAttachment, AskSetup, MAX_ANSWER_BYTES};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdout, ExitStatus};
use std::time::Instant;

/// A running program.
pub(super) struct AskedProgram {
    pid: u32,
    status: Option<ExitStatus>,
    /// The question, as far as it is still to be written to standard input.
    stdin: Option<PendingStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: Vec<u8>,
    last_lines: OutputTail,
    scanner: OutputScanner,
}

impl AskedProgram {
    /// Starts the program.
    ///
    /// # Errors
    ///
    /// Why the program was not started, as a sentence for people.
    pub(super) fn start(setup: &AskSetup, mut command: TurnCommand) -> Result<AskedProgram, String> {
        let mut child = start_asked_program(&setup.record.options.cwd, &setup.env, &command)?;
        let text = command.stdin.take().unwrap_or_default();
        let stdin = child.stdin.take().and_then(|pipe| PendingStdin::new(pipe, text));
        Ok(AskedProgram {
            pid: child.id(),
            status: None,
            stdin,
            stdout: child.stdout.take().filter(make_nonblocking),
            stderr: child.stderr.take().filter(make_nonblocking),
            output: Vec::new(),
            last_lines: OutputTail::default(),
            scanner: OutputScanner::new(command.output_fields),
        })
    }

    /// Waits until the program exits, the time is up, or somebody wants it to end.
    pub(super) fn wait(
        &mut self,
        signals: &ShimSignals,
        deadline: Option<Instant>,
        attachment: AskAttachment,
    ) -> AskEnd {
        loop {
            let is_caller_gone = self.poll(signals, deadline, attachment);
            signals.drain();
            reap(&mut |pid, status| self.note_exit(pid, status));
            self.copy_available();
            if self.status.is_some() {
                return AskEnd::Exited;
            }
            if is_caller_gone || signals.take_interrupt() || signals.is_terminated() || signals.is_hung_up() {
                return AskEnd::Interrupted;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return AskEnd::TimedOut;
            }
        }
    }

    /// Ends every process that the program has started, and reads the rest of the output.
    pub(super) fn finish(mut self, signals: &ShimSignals, end: AskEnd) -> FinishedProgram {
        let mut status = self.status;
        let pid = self.pid;
        // The two closures need different parts of `self`.
        let mut note_exit = |exited: u32, exit: ExitStatus| {
            if exited == pid {
                status = Some(exit);
            }
        };
        end_all(signals, DESCENDANT_GRACE, &[], &mut note_exit, &mut || self.copy_available());
        self.copy_available();
        self.scanner.end_line();
        FinishedProgram {
            end,
            status,
            output: self.output,
            last_lines: self.last_lines.take_text(),
            session_id: self.scanner.take_session_id(),
            usage: self.scanner.usage().map(|reading| reading.usage),
        }
    }

    fn note_exit(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.pid {
            self.status = Some(status);
        }
    }

    /// Waits until there is something to do. Returns whether the caller is gone.
    fn poll(&mut self, signals: &ShimSignals, deadline: Option<Instant>, attachment: AskAttachment) -> bool {
        let caller = std::io::stdin();
        let watches_caller = attachment == AskAttachment::Foreground;
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        if watches_caller {
            fds.push(PollFd::new(caller.as_fd(), PollFlags::POLLIN));
        }
        fds.extend(self.stdout.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.stderr.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.stdin.iter().map(|stdin| PollFd::new(stdin.pipe.as_fd(), PollFlags::POLLOUT)));
        poll(&mut fds, deadline.map_or(PollTimeout::NONE, poll_timeout::from_deadline)).ok();
        watches_caller && fds[1].any().unwrap_or(false)
    }

    /// Copies what can be read and written at once.
    fn copy_available(&mut self) {
        self.stdin = self.stdin.take().and_then(PendingStdin::write_some);
        let (output, scanner) = (&mut self.output, &mut self.scanner);
        read_available(&mut self.stdout, &mut |bytes| {
            scanner.push(bytes);
            let space = (MAX_ANSWER_BYTES + 1).saturating_sub(output.len());
            output.extend_from_slice(&bytes[..bytes.len().min(space)]);
        });
        let last_lines = &mut self.last_lines;
        read_available(&mut self.stderr, &mut |bytes| {
            last_lines.push(bytes);
            std::io::stderr().write_all(bytes).ok();
        });
    }
}

fn make_nonblocking(pipe: &impl AsFd) -> bool {
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).is_ok()
}

/// Reads all that the pipe has. Closes the pipe at its end.
fn read_available<P: Read>(pipe: &mut Option<P>, handle: &mut dyn FnMut(&[u8])) {
    let mut buffer = [0; 16 << 10];
    while let Some(open) = pipe {
        match open.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(count) => handle(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(_) => *pipe = None,
        }
    }
}
