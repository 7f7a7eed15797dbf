//! The program that is asked one question: its start, its pipes, and its end.

use super::answer_collector::AnswerCollector;
use super::caller_and_starter::AskCaller;
use super::decide_outcome::{FinishedProgram, WhyWaitEnded};
use crate::catch_signals::ShimSignals;
use crate::end_descendants::{end_all, reap};
use crate::poll_timeout;
use crate::start_child_processes::start_asked_program;
use crate::supervisor::DESCENDANT_GRACE;
use crate::turn_process::PendingStdin;
use crate::turns::output_tail::OutputTail;
use crate::turns::scan_output_for_session_and_usage::OutputScanner;
use crate::turns::turn_executor_trait::TurnCommand;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::teamctl_ask_setup_and_record::{AskSetup, AskShownOutput};
use protocol::token_and_cost_usage::Usage;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdout, ExitStatus};
use std::time::Instant;

/// How much is written to standard error at once; at most PIPE_BUF of POSIX systems.
const PROGRESS_BYTES: usize = 512;

/// A running program.
pub(super) struct AskedProgram {
    pid: u32,
    status: Option<ExitStatus>,
    /// The question, as far as it is still to be written to standard input.
    stdin: Option<PendingStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    shown_output: AskShownOutput,
    answer: AnswerCollector,
    stdout_tail: OutputTail,
    stderr_tail: OutputTail,
    scanner: OutputScanner,
}

impl AskedProgram {
    /// Starts the program.
    ///
    /// # Errors
    ///
    /// A sentence for people that says why the program was not started.
    pub(super) fn start(setup: &AskSetup, mut command: TurnCommand) -> Result<AskedProgram, String> {
        let mut child = start_asked_program(&setup.cwd, &setup.env, &command)?;
        let text = command.stdin.take().unwrap_or_default();
        let stdin = child.stdin.take().and_then(|pipe| PendingStdin::new(pipe, text));
        Ok(AskedProgram {
            pid: child.id(),
            status: None,
            stdin,
            stdout: child.stdout.take().filter(make_nonblocking),
            stderr: child.stderr.take().filter(make_nonblocking),
            shown_output: setup.shown_output,
            answer: AnswerCollector::new(setup.program.reply_key.clone()),
            stdout_tail: OutputTail::default(),
            stderr_tail: OutputTail::default(),
            scanner: OutputScanner::new(command.output_fields),
        })
    }

    /// Waits until the program exits, the time is up, the caller is gone, or a signal arrives.
    pub(super) fn wait(
        &mut self,
        signals: &ShimSignals,
        deadline: Option<Instant>,
        caller: &AskCaller,
    ) -> WhyWaitEnded {
        loop {
            let is_caller_gone = caller.is_gone() || self.poll(signals, deadline, caller);
            signals.drain();
            reap(&mut |pid, status| self.note_exit(pid, status));
            self.pump_pipes();
            if self.status.is_some() {
                return WhyWaitEnded::Exited;
            }
            if is_caller_gone || signals.take_interrupt() || signals.is_terminated() || signals.is_hung_up() {
                return WhyWaitEnded::Interrupted;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return WhyWaitEnded::TimedOut;
            }
        }
    }

    /// Ends every process that the program has started, and reads the rest of the output.
    pub(super) fn finish(
        mut self,
        signals: &ShimSignals,
        why: WhyWaitEnded,
    ) -> (FinishedProgram, ReportedFacts) {
        let mut status = self.status;
        let pid = self.pid;
        // `end_all` takes two closures that may not both borrow `self`.
        let mut note_exit = |exited: u32, exit: ExitStatus| {
            if exited == pid {
                status = Some(exit);
            }
        };
        end_all(signals, DESCENDANT_GRACE, &[], &mut note_exit, &mut || self.pump_pipes());
        self.pump_pipes();
        self.scanner.end_line();
        let facts = ReportedFacts {
            session_id: self.scanner.take_session_id(),
            usage: self.scanner.usage().map(|reading| reading.usage),
        };
        let stderr_lines = self.stderr_tail.take_text();
        let last_lines = if stderr_lines.is_empty() { self.stdout_tail.take_text() } else { stderr_lines };
        (FinishedProgram { why, status, answer: self.answer.finish(), last_lines }, facts)
    }

    fn note_exit(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.pid {
            self.status = Some(status);
        }
    }

    /// Waits until there is something to do. Returns whether the caller is gone.
    fn poll(&mut self, signals: &ShimSignals, deadline: Option<Instant>, caller: &AskCaller) -> bool {
        let mut fds = caller.poll_fds();
        let caller_fds = fds.len();
        fds.push(PollFd::new(signals.as_fd(), PollFlags::POLLIN));
        fds.extend(self.stdout.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.stderr.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.stdin.iter().map(|stdin| PollFd::new(stdin.pipe.as_fd(), PollFlags::POLLOUT)));
        poll(&mut fds, deadline.map_or(PollTimeout::NONE, poll_timeout::from_deadline)).ok();
        fds[..caller_fds].iter().any(|fd| fd.any().unwrap_or(false))
    }

    /// Copies what can be read and written at once.
    fn pump_pipes(&mut self) {
        self.stdin = self.stdin.take().and_then(PendingStdin::write_some);
        let (answer, tail, scanner) = (&mut self.answer, &mut self.stdout_tail, &mut self.scanner);
        let is_shown = self.shown_output == AskShownOutput::StdoutAndStderr;
        read_available(&mut self.stdout, &mut |bytes| {
            if is_shown {
                show_progress(bytes);
            }
            scanner.push(bytes);
            tail.push(bytes);
            answer.push(bytes);
        });
        let tail = &mut self.stderr_tail;
        read_available(&mut self.stderr, &mut |bytes| {
            tail.push(bytes);
            show_progress(bytes);
        });
    }
}

/// What the program has reported beside its answer.
#[derive(Debug, Default)]
pub(super) struct ReportedFacts {
    pub(super) session_id: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Copies the program's output `bytes` to the shim's standard error. Drops bytes that cannot be
/// written at once: a write that blocks would also delay the timeout.
fn show_progress(bytes: &[u8]) {
    let stderr = std::io::stderr();
    // A pipe that is ready takes this many bytes.
    for part in bytes.chunks(PROGRESS_BYTES) {
        let mut fds = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
        let is_ready = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        if !is_ready || stderr.lock().write_all(part).is_err() {
            return;
        }
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
