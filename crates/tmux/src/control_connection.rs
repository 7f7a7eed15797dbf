//! One control-mode client: how commands usually reach the server.
//!
//! The client sits in a hidden session of its own, so that it has no say in the size, the focus or the environment
//! of the user's. That session ends with us, however we end: see [`Client`]. A reader thread never waits for anybody: a
//! client that is not read would keep the server from ever ending. What is written goes there without a thread between, whose
//! turn would have to come where the processors are busy. After every script goes a word that nobody else can know; the answer
//! is what came before its echo.

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

use crate::address::TmuxEndpoint;
use crate::command_list::CommandList;
use crate::control_client::{ControlClient, ServerStart};
use crate::control_parser::{BlockOrigin, BlockStatus, ControlBlock, ControlEvent, ControlParser};
use crate::deadline::Deadline;
use crate::guarded_command::print_command;
use crate::reply::CommandReply;
use crate::server::{NoticeSender, ServerNotice};
use crate::{Error, nonce};

/// An open connection. Dropped, it takes its client and its hidden session along, and tells nobody.
pub(crate) struct ControlConnection {
    client: ControlClient,
    /// Takes what it has room for, and does not wait.
    input: ChildStdin,
    blocks: Receiver<ControlBlock>,
    status: Arc<ConnectionStatus>,
}

/// What the reader thread leaves for the owner to find.
#[derive(Default)]
struct ConnectionStatus {
    closed: AtomicBool,
    /// The last error that no command of ours caused: why the client did not start.
    error: Mutex<Option<String>>,
}

impl ControlConnection {
    /// Starts a client. That it works is known only after a first answer.
    ///
    /// # Errors
    /// `Run`, or `Invalid` for a script that cannot be spelled.
    pub(crate) fn open(
        tmux: &TmuxEndpoint,
        start: ServerStart,
        herald: &NoticeSender,
    ) -> Result<ControlConnection, Error> {
        let (client, stdin, stdout) = ControlClient::start(tmux, start)?;
        let input = stdin.ok_or_else(|| tmux.start_error(ErrorKind::BrokenPipe.into()))?;
        set_nonblocking(&input).map_err(|errno| tmux.start_error(errno.into()))?;
        let (sender, blocks) = channel();
        let line = Arc::new(ConnectionStatus::default());
        let reader = ControlReader { status: line.clone(), blocks: sender, herald: herald.clone() };
        let thread = thread::Builder::new().name("tmux reader".to_owned());
        thread.spawn(move || reader.run_thread(stdout)).map_err(|source| tmux.start_error(source))?;
        Ok(ControlConnection { client, input, blocks, status: line })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.status.closed.load(Ordering::Acquire)
    }

    /// Sends scripts in one breath, and waits for all that each of them printed. One that fails does not keep those behind
    /// it from being run.
    ///
    /// # Errors
    /// `Timeout` or `Lost`, after which the connection is of no use; `Invalid` for a script that cannot be spelled: then
    /// none is sent.
    pub(crate) fn run(
        &mut self,
        scripts: &[CommandList],
        deadline: Deadline,
    ) -> Result<Vec<CommandReply>, Error> {
        let words: Vec<String> = scripts.iter().map(|_| nonce::generate()).collect();
        let mut lines = String::new();
        for (script, word) in scripts.iter().zip(&words) {
            lines.extend([&script.to_command_line()?, "\n", &print_command(word).to_command_line()?, "\n"]);
        }
        self.write(lines.as_bytes(), deadline)?;
        words.iter().map(|word| self.read_reply(word, deadline)).collect()
    }

    /// A stopped server can hold it up, until the deadline.
    fn write(&mut self, mut lines: &[u8], deadline: Deadline) -> Result<(), Error> {
        while !lines.is_empty() {
            match self.input.write(lines) {
                Ok(taken) => lines = &lines[taken..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_until_writable(deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(deadline.disconnect_error()),
            }
        }
        Ok(())
    }

    fn wait_until_writable(&self, deadline: Deadline) -> Result<(), Error> {
        let left = Timespec::try_from(deadline.remaining_time()).map_err(|_| deadline.timeout_error())?;
        match poll(&mut [PollFd::new(&self.input, PollFlags::OUT)], Some(&left)) {
            Ok(0) => Err(deadline.timeout_error()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(_) => Err(deadline.disconnect_error()),
        }
    }

    fn read_reply(&mut self, word: &str, deadline: Deadline) -> Result<CommandReply, Error> {
        let mut reply = CommandReply::default();
        loop {
            match self.blocks.recv_timeout(deadline.remaining_time()) {
                Ok(block) if block.text() == word.as_bytes() => return Ok(reply),
                Ok(block) => reply.add_block(block),
                Err(RecvTimeoutError::Timeout) => return Err(deadline.timeout_error()),
                Err(RecvTimeoutError::Disconnected) => return Err(deadline.disconnect_error()),
            }
        }
    }

    /// Why the connection ended, as far as tmux has told.
    pub(crate) fn close_reason(&mut self) -> String {
        let printed = self.client.kill();
        // Until the reader is at the end: what could not be written was known before it.
        while self.blocks.recv_timeout(Duration::from_millis(500)).is_ok() {}
        let said = self.status.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        match said {
            Some(said) => said,
            None if printed.is_empty() => "it closed the connection".to_owned(),
            None => printed,
        }
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        // Before the client ends, so that the reader takes its end for ours.
        self.status.closed.store(true, Ordering::Release);
    }
}

fn set_nonblocking(input: &ChildStdin) -> Result<(), Errno> {
    fcntl_setfl(input, fcntl_getfl(input)? | OFlags::NONBLOCK)
}

struct ControlReader {
    status: Arc<ConnectionStatus>,
    blocks: Sender<ControlBlock>,
    herald: NoticeSender,
}

impl ControlReader {
    /// To the end of the client's output, which is the only end that counts: `%exit` can be spoofed.
    fn run_thread(self, stdout: Option<impl Read>) {
        if let Some(stdout) = stdout {
            self.read_lines(&mut BufReader::new(stdout));
        }
        if !self.status.closed.swap(true, Ordering::AcqRel) {
            self.herald.notify(ServerNotice::Disconnected);
        }
    }

    fn read_lines(&self, stdout: &mut impl BufRead) {
        let mut wire = ControlParser::default();
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            match wire.push_line(line.strip_suffix(b"\n").unwrap_or(&line)) {
                Some(ControlEvent::Block(block)) => self.handle_block(block),
                Some(ControlEvent::Changed) => self.herald.notify(ServerNotice::Changed),
                None => {}
            }
            line.clear();
        }
    }

    fn handle_block(&self, block: ControlBlock) {
        match (block.origin, block.outcome) {
            // Nobody listens once the owner has dropped it.
            (BlockOrigin::OwnCommand, _) => drop(self.blocks.send(block)),
            (BlockOrigin::Other, BlockStatus::Error) => {
                let said = String::from_utf8_lossy(&block.text()).into_owned();
                *self.status.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }
            (BlockOrigin::Other, BlockStatus::Ok) => {}
        }
    }
}
