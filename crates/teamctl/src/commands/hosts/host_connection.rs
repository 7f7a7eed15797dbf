//! A connection to a program on another machine: to `teamctl`, or to `sh` for an installation. The
//! program answers with lines of text, and some answers have binary data after the lines. Every
//! wait has a deadline. Every error names the host, and says what failed there.

use super::transport_command::{CtrlC, transport_command};
use platform::ExitHandle;
use platform::process_tree::descendants_of;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName};
use protocol::shell_quote::shell_quote;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::{Duration, Instant};

/// The longest line, and the longest part of other data, that is read at once, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// How many lines are read ahead. A host that prints more waits.
const MAX_UNREAD_LINES: usize = 16;
/// How much of what the transport prints to standard error is kept, in bytes.
const MAX_STDERR_BYTES: u64 = 1 << 16;
/// How long the transport may take to end after its streams are closed.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the caller waits for an answer, from now on.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerDeadline {
    start: Instant,
    timeout: Duration,
}

impl AnswerDeadline {
    pub(super) fn after(timeout: Duration) -> AnswerDeadline {
        AnswerDeadline { start: Instant::now(), timeout }
    }

    /// How long the caller still waits.
    fn remaining(&self) -> Duration {
        self.timeout.saturating_sub(self.elapsed())
    }

    /// How long it is since the deadline was made.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// An open connection. Dropping it ends the transport.
#[derive(Debug)]
pub(super) struct HostConnection {
    host: HostName,
    /// The transport's command, for people.
    command: String,
    child: Child,
    /// `None` after it was closed.
    stdin: Option<ChildStdin>,
    /// Each with its newline, unless it is too long.
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    /// When the whole exchange must have ended.
    last_deadline: Option<AnswerDeadline>,
}

impl HostConnection {
    /// Starts the transport with a command line of plain words.
    pub(super) fn open(name: &HostName, host: &Host, words: &[&str]) -> Result<HostConnection, ErrorReport> {
        let mut command = transport_command(name, &host.connect, words, CtrlC::EndsTransport)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let quoted: Vec<String> = host.connect.iter().map(|word| shell_quote(word)).collect();
        let mut child = command.spawn().map_err(|error| {
            ErrorReport::new(
                ErrorKind::Io,
                format!("cannot reach {name}: cannot start {}: {error}", quoted[0]),
            )
        })?;
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let stderr = child.stderr.take().expect("standard error is a pipe");
        Ok(HostConnection {
            host: name.clone(),
            command: quoted.join(" "),
            stdin: child.stdin.take(),
            child,
            lines: read_lines(stdout),
            stderr: read_last_line(stderr),
            last_deadline: None,
        })
    }

    /// Sets a deadline for all answers together.
    pub(super) fn set_deadline(&mut self, deadline: AnswerDeadline) {
        self.last_deadline = Some(deadline);
    }

    /// Sends a line. If the connection is lost, the next read reports it.
    pub(super) fn send_line(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// Sends bytes. If the connection is lost, the next read reports it.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            stdin.write_all(bytes).ok();
        }
    }

    /// The stream to the host, for other data than lines.
    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Receives a line. `action` completes the error message "cannot ACTION HOST".
    ///
    /// # Errors
    ///
    /// `Timeout` after the deadline. If the transport has ended: `MissingPath` if the program was
    /// not found on the host, else `Io`.
    pub(super) fn receive_line(
        &mut self,
        action: &str,
        deadline: AnswerDeadline,
    ) -> Result<String, ErrorReport> {
        let line = self.receive_bytes(action, deadline)?;
        Ok(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())
    }

    /// Receives bytes up to the next newline, which is included. More than `MAX_LINE_BYTES` bytes
    /// without a newline are received in several parts. The errors are those of
    /// [`HostConnection::receive_line`].
    pub(super) fn receive_bytes(
        &mut self,
        action: &str,
        deadline: AnswerDeadline,
    ) -> Result<Vec<u8>, ErrorReport> {
        let last = self.last_deadline.filter(|last| last.remaining() < deadline.remaining());
        let deadline = last.unwrap_or(deadline);
        let remaining = deadline.remaining();
        if remaining.is_zero() {
            // `recv_timeout` prefers a line, and a host can print without end.
            return Err(self.timeout_error(action, deadline.timeout));
        }
        match self.lines.recv_timeout(remaining) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(self.timeout_error(action, deadline.timeout)),
            Err(RecvTimeoutError::Disconnected) => Err(self.end_error(action)),
        }
    }

    fn timeout_error(&mut self, action: &str, timeout: Duration) -> ErrorReport {
        let (host, command) = (&self.host, &self.command);
        let seconds = timeout.as_secs_f64();
        let message = format!("cannot {action} {host}: `{command}` gave no answer within {seconds} s");
        ErrorReport::new(ErrorKind::Timeout, message)
            .with_help(format!("see whether this ends: {command} true"))
    }

    fn end_error(&mut self, action: &str) -> ErrorReport {
        self.stdin = None;
        let status = self.end(END_TIMEOUT);
        let last_line = self.stderr.recv_timeout(END_TIMEOUT).unwrap_or_default();
        let HostConnection { host, command, .. } = self;
        let reason = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
        match status.and_then(|status| status.code()) {
            Some(126 | 127) => {
                let message = format!("cannot {action} {host}: there is no teamctl there{reason}");
                ErrorReport::new(ErrorKind::MissingPath, message).with_help(format!(
                    "to install it: teamctl hosts install {host}; if commands there do not find it in their PATH, \
                     write into [host.{host}]: teamctl = \"~/.local/bin/teamctl\""
                ))
            }
            _ => {
                let end = status.map_or_else(|| "closed its output".to_owned(), end_text);
                let message = format!("cannot {action} {host}: `{command}` {end}{reason}");
                ErrorReport::new(ErrorKind::Io, message)
                    .with_help(format!("to see why, type: {command} true"))
            }
        }
    }

    /// Waits until the transport ends, and kills it after this time. `None` if it was killed.
    fn end(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let has_ended = ExitHandle::open(self.child.id())
            .is_none_or(|process| process.exits_within(timeout).unwrap_or(false));
        if !has_ended {
            kill_with_descendants(&mut self.child);
        }
        self.child.wait().ok().filter(|_| has_ended)
    }
}

/// Kills the transport and all its descendants, such as the ssh that a wrapper script has started.
/// They are killed one by one, because the transport is in the process group of teamctl. It must
/// stay in this group: ssh can ask for a password only in the terminal's foreground.
fn kill_with_descendants(child: &mut Child) {
    let table = platform::system().processes().unwrap_or_default();
    let descendants = descendants_of(&table, &[child.id()]);
    child.kill().ok();
    for process in descendants.iter().filter(|process| process.pid != child.id()) {
        if let Ok(Some(handle)) = ExitHandle::open_started_at(process.pid, process.start) {
            handle.send_signal(Signal::KILL).ok();
        }
    }
}

impl Drop for HostConnection {
    fn drop(&mut self) {
        self.stdin = None;
        // The program on the host ends when its standard input is closed, and then the transport
        // ends too. A transport that has no connection yet does not end, so it is killed.
        self.end(Duration::from_millis(200));
    }
}

fn end_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended without an answer".to_owned(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    }
}

fn read_lines(stdout: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(MAX_UNREAD_LINES);
    std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut line = Vec::new();
            match (&mut stdout).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(length) if length > 0 => {}
                _ => return,
            }
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads the stream to its end and sends its last line that is not empty.
fn read_last_line(stderr: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut stderr = stderr;
        let mut bytes = Vec::new();
        stderr.by_ref().take(MAX_STDERR_BYTES).read_to_end(&mut bytes).ok();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let last_line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        sender.send(last_line.unwrap_or_default().to_owned()).ok();
        // The transport would block if its output was not read.
        std::io::copy(&mut stderr, &mut std::io::sink()).ok();
    });
    receiver
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A connection whose transport is this shell script.
    pub(in super::super) fn connect(script: &str) -> HostConnection {
        let host = Host {
            connect: ["sh", "-c", script, "sh"].map(str::to_owned).to_vec(),
            attach: None,
            root: None,
            teamctl: "teamctl".to_owned(),
            labels: Vec::new(),
            slots: None,
        };
        HostConnection::open(&HostName::parse("box").unwrap(), &host, &["sh"]).unwrap()
    }

    /// Prints empty lines without end, one for each read, and reports each read.
    struct EmptyLines(std::sync::mpsc::Sender<()>);

    impl Read for EmptyLines {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.send(()).ok();
            buffer[0] = b'\n';
            Ok(1)
        }
    }

    #[test]
    fn unread_lines_do_not_fill_the_memory() {
        let (sender, reads) = channel();
        let lines = read_lines(EmptyLines(sender));
        // One more line is read, and waits for a place.
        for _ in 0..=MAX_UNREAD_LINES {
            reads.recv_timeout(END_TIMEOUT).unwrap();
        }
        reads.recv_timeout(Duration::from_millis(100)).unwrap_err();
        assert_eq!(lines.recv_timeout(END_TIMEOUT).unwrap(), b"\n");
        reads.recv_timeout(END_TIMEOUT).unwrap();
    }

    #[test]
    fn output_without_end_does_not_move_the_deadline() {
        let mut connection = connect("exec yes");
        let deadline = AnswerDeadline::after(Duration::from_millis(300));
        let error = loop {
            if let Err(error) = connection.receive_line("reach", deadline) {
                break error;
            }
        };
        assert_eq!(error.kind, ErrorKind::Timeout);
    }

    #[test]
    fn many_answers_do_not_move_the_deadline_of_the_whole_exchange() {
        let mut connection = connect("exec yes");
        connection.set_deadline(AnswerDeadline::after(Duration::from_millis(300)));
        let error = loop {
            if let Err(error) = connection.receive_line("fetch x from", AnswerDeadline::after(END_TIMEOUT)) {
                break error;
            }
        };
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.starts_with("cannot fetch x from box: "), "{}", error.message);
    }

    #[test]
    fn killed_transport_takes_its_programs_with_it() {
        let mut connection = connect("sleep 3600 & echo $!; wait");
        let line = connection.receive_line("reach", AnswerDeadline::after(END_TIMEOUT)).unwrap();
        let sleep = ExitHandle::open(line.parse().unwrap()).unwrap();
        drop(connection);
        assert!(sleep.exits_within(END_TIMEOUT).unwrap());
    }
}
