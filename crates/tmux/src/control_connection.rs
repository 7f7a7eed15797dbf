//! A control connection: a tmux client in control mode. This is the usual way in which commands
//! reach the tmux server.
//!
//! The client is attached to a hidden session of its own, so that it does not affect the size, the
//! focus or the environment of the user's sessions. The hidden session ends when teamd exits, see
//! [`crate::control_client_process`].
//!
//! A client whose output is not read prevents the server from exiting. So a thread reads the output
//! all the time. The calling thread writes the commands itself, because the switch to a writer
//! thread could take long on a busy machine.
//!
//! After each command list the connection lets tmux print a nonce, a random word. The reply to the
//! list is what tmux printed before the nonce.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::control_client_process::{ControlClient, ServerStart, StartedClient};
use crate::control_parser::{BlockOrigin, BlockStatus, ControlBlock, ControlEvent, ControlParser};
use crate::deadline::Deadline;
use crate::if_shell::print_command;
use crate::report_disconnect_or_foreign_use::{NoticeSender, ServerNotice};
use crate::server_address_and_program::TmuxEndpoint;
use crate::{Error, nonce};

/// An open connection. Drop ends its client and its hidden session, and sends no notice.
pub(crate) struct ControlConnection {
    client: ControlClient,
    /// The client's standard input. It is non-blocking: a write takes only as many bytes as there
    /// is room for in the pipe.
    input: ChildStdin,
    blocks: Receiver<ControlBlock>,
    status: Arc<ConnectionStatus>,
}

/// State that the reader thread shares with the owner of the connection.
#[derive(Default)]
struct ConnectionStatus {
    /// The client's output has ended, or the connection was dropped.
    closed: AtomicBool,
    /// tmux's last error message, except errors of commands that were sent over this connection. If
    /// the client did not start, the message says why.
    error: Mutex<Option<String>>,
}

impl ControlConnection {
    /// Starts a control client. Only the first reply shows that the connection works.
    ///
    /// # Errors
    ///
    /// `ProgramNotStarted`; `InvalidArgument` if a word contains NUL.
    pub(crate) fn open(
        tmux: &TmuxEndpoint,
        start: ServerStart,
        notices: &NoticeSender,
    ) -> Result<ControlConnection, Error> {
        let StartedClient { client, stdin: input, stdout } = ControlClient::start(tmux, start)?;
        set_nonblocking(&input).map_err(|errno| tmux.start_error(errno.into()))?;
        let (sender, blocks) = channel();
        let status = Arc::new(ConnectionStatus::default());
        let reader = ControlReader { status: status.clone(), blocks: sender, notices: notices.clone() };
        let thread = thread::Builder::new().name("tmux reader".to_owned());
        thread.spawn(move || reader.run_thread(stdout)).map_err(|source| tmux.start_error(source))?;
        Ok(ControlConnection { client, input, blocks, status })
    }

    /// Whether the client's output has not ended yet.
    pub(crate) fn is_open(&self) -> bool {
        !self.status.closed.load(Ordering::Acquire)
    }

    /// Sends all command lists in one write, and waits for the reply to each list. If one list
    /// fails, the lists after it still run.
    ///
    /// # Errors
    ///
    /// After `Timeout` and `Disconnected` the connection is unusable. `InvalidArgument` if a word
    /// contains NUL; in this case nothing was sent.
    pub(crate) fn run(
        &mut self,
        command_lists: &[CommandList],
        deadline: Deadline,
    ) -> Result<Vec<CommandReply>, Error> {
        let nonces: Vec<String> = command_lists.iter().map(|_| nonce::generate()).collect();
        let mut lines = String::new();
        for (command_list, nonce) in command_lists.iter().zip(&nonces) {
            lines.extend([
                &command_list.to_command_line()?,
                "\n",
                &print_command(nonce).to_command_line()?,
                "\n",
            ]);
        }
        self.write(lines.as_bytes(), deadline)?;
        nonces.iter().map(|nonce| self.read_reply(nonce, deadline)).collect()
    }

    /// Writes all of `lines`. If the server is stopped, this waits until the deadline.
    fn write(&mut self, mut lines: &[u8], deadline: Deadline) -> Result<(), Error> {
        while !lines.is_empty() {
            match self.input.write(lines) {
                Ok(written) => lines = &lines[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_until_writable(deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(deadline.disconnect_error()),
            }
        }
        Ok(())
    }

    /// Waits until the client reads from its input, or until the deadline.
    fn wait_until_writable(&self, deadline: Deadline) -> Result<(), Error> {
        let remaining =
            Timespec::try_from(deadline.remaining_time()).map_err(|_| deadline.timeout_error())?;
        match poll(&mut [PollFd::new(&self.input, PollFlags::OUT)], Some(&remaining)) {
            Ok(0) => Err(deadline.timeout_error()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(_) => Err(deadline.disconnect_error()),
        }
    }

    /// Collects blocks until a block is the nonce. The blocks before it are the reply.
    fn read_reply(&mut self, nonce: &str, deadline: Deadline) -> Result<CommandReply, Error> {
        let mut reply = CommandReply::new(deadline.action());
        loop {
            match self.blocks.recv_timeout(deadline.remaining_time()) {
                Ok(block) if block.text() == nonce.as_bytes() => return Ok(reply),
                Ok(block) => reply.add_block(block),
                Err(RecvTimeoutError::Timeout) => return Err(deadline.timeout_error()),
                Err(RecvTimeoutError::Disconnected) => return Err(deadline.disconnect_error()),
            }
        }
    }

    /// Kills the client. Returns why the connection ended: tmux's error message, or what the client
    /// printed on standard error. If there is neither, returns a general text.
    pub(crate) fn close_reason(&mut self) -> String {
        let printed = self.client.kill();
        // The reader thread closes the channel `blocks` when it has read all output of the client.
        // Only then is the error message complete.
        while self.blocks.recv_timeout(Duration::from_millis(500)).is_ok() {}
        let error = self.status.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        match error {
            Some(message) => message,
            None if printed.is_empty() => "it closed the connection".to_owned(),
            None => printed,
        }
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        // This comes before the client ends, so that the reader thread sends no notice.
        self.status.closed.store(true, Ordering::Release);
    }
}

/// Makes writes to `input` return instead of block.
fn set_nonblocking(input: &ChildStdin) -> Result<(), Errno> {
    fcntl_setfl(input, fcntl_getfl(input)? | OFlags::NONBLOCK)
}

/// The reader thread's half of a connection.
struct ControlReader {
    status: Arc<ConnectionStatus>,
    blocks: Sender<ControlBlock>,
    notices: NoticeSender,
}

impl ControlReader {
    /// Reads the client's output to its end. The line `%exit` is not taken as the end of the
    /// connection, because a pane or a hook can print it too.
    fn run_thread(self, stdout: impl Read) {
        self.read_lines(&mut BufReader::new(stdout));
        if !self.status.closed.swap(true, Ordering::AcqRel) {
            self.notices.notify(ServerNotice::Disconnected);
        }
    }

    fn read_lines(&self, stdout: &mut impl BufRead) {
        let mut parser = ControlParser::default();
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            match parser.push_line(line.strip_suffix(b"\n").unwrap_or(&line)) {
                Some(ControlEvent::Block(block)) => self.handle_block(block),
                Some(ControlEvent::OwnSessionsUsed) => self.notices.notify(ServerNotice::OwnSessionsUsed),
                None => {}
            }
            line.clear();
        }
    }

    fn handle_block(&self, block: ControlBlock) {
        match (block.origin, block.outcome) {
            // This fails only if the connection has been dropped.
            (BlockOrigin::OwnCommand, _) => drop(self.blocks.send(block)),
            (BlockOrigin::Other, BlockStatus::Error) => {
                let message = String::from_utf8_lossy(&block.text()).into_owned();
                *self.status.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
            }
            (BlockOrigin::Other, BlockStatus::Ok) => {}
        }
    }
}
