//! One control-mode client: how commands usually reach the server.
//!
//! The client sits in a hidden session of its own, so that it has no say in the size, the focus or the environment
//! of the user's. That session ends with us, however we end: see [`Client`]. A writer thread takes whole lines, a reader
//! thread never waits for anybody: a client that is not read would keep the server from ever ending. After every
//! script goes a word that nobody else can know; the answer is what came before its echo.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

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
    /// To the writer thread, which closes the client's input when this is dropped.
    input: Sender<Vec<u8>>,
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
        let (input, commands) = channel();
        let (sender, blocks) = channel();
        let line = Arc::new(Line::default());
        let reader = Reader { line: line.clone(), blocks: sender, herald: herald.clone() };
        let control = Control { client, input, blocks, line };
        let threads = thread("tmux writer", move || write(stdin, &commands))
            .and_then(|()| thread("tmux reader", move || reader.run(stdout)));
        threads.map_err(|source| tmux.not_run(source))?;
        Ok(control)
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
    pub(crate) fn ask<const N: usize>(
        &mut self,
        scripts: &[Script; N],
        deadline: Deadline,
    ) -> Result<[Reply; N], Error> {
        let words = scripts.each_ref().map(|_| nonce::fresh());
        let mut lines = String::new();
        for (script, word) in scripts.iter().zip(&words) {
            lines.extend([&script.line()?, "\n", &say(word).line()?, "\n"]);
        }
        self.input.send(lines.into_bytes()).map_err(|_| deadline.lost())?;
        Reply::each(&words, |word| self.collect(word, deadline))
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
        let said = self.line.complaint.lock().unwrap_or_else(PoisonError::into_inner).take();
        let printed = self.client.end();
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

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Ends when the connection is dropped, or when the client no longer reads. A stopped server can hold it up; nobody
/// waits for it.
fn write(stdin: Option<ChildStdin>, commands: &Receiver<Vec<u8>>) {
    let Some(mut stdin) = stdin else { return };
    for lines in commands {
        if stdin.write_all(&lines).is_err() {
            return;
        }
    }
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
