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

use crate::address::Tmux;
use crate::client::{Client, Start};
use crate::deadline::Deadline;
use crate::guard::say;
use crate::reply::Reply;
use crate::script::Script;
use crate::server::{Herald, Notice};
use crate::wire::{Block, Heard, Origin, Outcome, Wire};
use crate::{Error, nonce};

/// An open connection. Dropped, it takes its client and its hidden session along, and tells nobody.
pub(crate) struct Control {
    client: Client,
    /// Takes what it has room for, and does not wait.
    input: ChildStdin,
    blocks: Receiver<Block>,
    line: Arc<Line>,
}

/// What the reader thread leaves for the owner to find.
#[derive(Default)]
struct Line {
    over: AtomicBool,
    /// The last error that no command of ours caused: why the client did not start.
    complaint: Mutex<Option<String>>,
}

impl Control {
    /// Starts a client. That it works is known only after a first answer.
    ///
    /// # Errors
    /// `Run`, or `Invalid` for a script that cannot be spelled.
    pub(crate) fn open(tmux: &Tmux, start: Start, herald: &Herald) -> Result<Control, Error> {
        let (client, stdin, stdout) = Client::start(tmux, start)?;
        let input = stdin.ok_or_else(|| tmux.not_run(ErrorKind::BrokenPipe.into()))?;
        set_nonblocking(&input).map_err(|errno| tmux.not_run(errno.into()))?;
        let (sender, blocks) = channel();
        let line = Arc::new(Line::default());
        let reader = Reader { line: line.clone(), blocks: sender, herald: herald.clone() };
        let thread = thread::Builder::new().name("tmux reader".to_owned());
        thread.spawn(move || reader.run(stdout)).map_err(|source| tmux.not_run(source))?;
        Ok(Control { client, input, blocks, line })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.line.over.load(Ordering::Acquire)
    }

    /// Sends scripts in one breath, and waits for all that each of them printed. One that fails does not keep those behind
    /// it from being run.
    ///
    /// # Errors
    /// `Timeout` or `Lost`, after which the connection is of no use; `Invalid` for a script that cannot be spelled: then
    /// none is sent.
    pub(crate) fn ask(&mut self, scripts: &[Script], deadline: Deadline) -> Result<Vec<Reply>, Error> {
        let words: Vec<String> = scripts.iter().map(|_| nonce::fresh()).collect();
        let mut lines = String::new();
        for (script, word) in scripts.iter().zip(&words) {
            lines.extend([&script.line()?, "\n", &say(word).line()?, "\n"]);
        }
        self.write(lines.as_bytes(), deadline)?;
        words.iter().map(|word| self.collect(word, deadline)).collect()
    }

    /// A stopped server can hold it up, until the deadline.
    fn write(&mut self, mut lines: &[u8], deadline: Deadline) -> Result<(), Error> {
        while !lines.is_empty() {
            match self.input.write(lines) {
                Ok(taken) => lines = &lines[taken..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room(deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(deadline.lost()),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self, deadline: Deadline) -> Result<(), Error> {
        let left = Timespec::try_from(deadline.left()).map_err(|_| deadline.passed())?;
        match poll(&mut [PollFd::new(&self.input, PollFlags::OUT)], Some(&left)) {
            Ok(0) => Err(deadline.passed()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(_) => Err(deadline.lost()),
        }
    }

    fn collect(&mut self, word: &str, deadline: Deadline) -> Result<Reply, Error> {
        let mut reply = Reply::default();
        loop {
            match self.blocks.recv_timeout(deadline.left()) {
                Ok(block) if block.text() == word.as_bytes() => return Ok(reply),
                Ok(block) => reply.take(block),
                Err(RecvTimeoutError::Timeout) => return Err(deadline.passed()),
                Err(RecvTimeoutError::Disconnected) => return Err(deadline.lost()),
            }
        }
    }

    /// Why the connection ended, as far as tmux has told.
    pub(crate) fn cause(&mut self) -> String {
        let printed = self.client.end();
        // Until the reader is at the end: what could not be written was known before it.
        while self.blocks.recv_timeout(Duration::from_millis(500)).is_ok() {}
        let said = self.line.complaint.lock().unwrap_or_else(PoisonError::into_inner).take();
        match said {
            Some(said) => said,
            None if printed.is_empty() => "it closed the connection".to_owned(),
            None => printed,
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Before the client ends, so that the reader takes its end for ours.
        self.line.over.store(true, Ordering::Release);
    }
}

fn set_nonblocking(input: &ChildStdin) -> Result<(), Errno> {
    fcntl_setfl(input, fcntl_getfl(input)? | OFlags::NONBLOCK)
}

struct Reader {
    line: Arc<Line>,
    blocks: Sender<Block>,
    herald: Herald,
}

impl Reader {
    /// To the end of the client's output, which is the only end that counts: `%exit` can be spoofed.
    fn run(self, stdout: Option<impl Read>) {
        if let Some(stdout) = stdout {
            self.read(&mut BufReader::new(stdout));
        }
        if !self.line.over.swap(true, Ordering::AcqRel) {
            self.herald.tell(Notice::Lost);
        }
    }

    fn read(&self, stdout: &mut impl BufRead) {
        let mut wire = Wire::default();
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            match wire.line(line.strip_suffix(b"\n").unwrap_or(&line)) {
                Some(Heard::Block(block)) => self.block(block),
                Some(Heard::Hint) => self.herald.tell(Notice::Changed),
                None => {}
            }
            line.clear();
        }
    }

    fn block(&self, block: Block) {
        match (block.origin, block.outcome) {
            // Nobody listens once the owner has dropped it.
            (Origin::Ours, _) => drop(self.blocks.send(block)),
            (Origin::Foreign, Outcome::Failed) => {
                let said = String::from_utf8_lossy(&block.text()).into_owned();
                *self.line.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }
            (Origin::Foreign, Outcome::Done) => {}
        }
    }
}
