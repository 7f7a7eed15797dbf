//! The pseudo-terminal to which drivers and the processes of turns write. The shim copies their
//! output to the pane or to a log.
//!
//! One pseudo-terminal is used for the whole spawn. Background processes of a turn may still write
//! to it after the turn, so output is also copied between turns. No function of this module blocks.
//! If the pane does not take output, the shim keeps what it has read and reads no more. A program
//! that writes more then has to wait, as on any terminal.

mod end_of_output_sentinel;

use crate::output_log::OutputLogWriter;
use crate::poll_timeout;
use crate::turns::output_tail::OutputTail;
use crate::turns::scan_output_for_session_and_usage::{OutputFields, OutputScanner};
use end_of_output_sentinel::Sentinel;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, poll};
use protocol::token_and_cost_usage::UsageReading;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize, ttyname,
};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of bytes that one read takes at most.
const READ_BYTES: usize = 16 << 10;
/// How many reads one call of [`OutputPty::copy_available`] makes at most. The limit lets the
/// caller handle other events even if a program writes all the time.
const MAX_READS: usize = 16;
/// How long the shim waits for the rest of a program's output after the program has exited. The
/// wait takes this long only if a background process writes all the time, or if the pane takes no
/// output.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How much output is kept at most while the pane takes none, in bytes.
const MAX_PENDING_BYTES: usize = 1 << 20;
/// If the output of a turn is captured to find the agent's reply, at least this many bytes at its
/// end are kept. A reply is shorter, but other JSON lines may follow it.
const MAX_CAPTURED_BYTES: usize = 256 << 10;
/// The size of the terminal if there is no pane.
const HEADLESS_SIZE: Winsize = Winsize { ws_row: 50, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// Where the output goes.
#[derive(Debug)]
enum OutputSink {
    /// The shim's pane, through a non-blocking descriptor.
    Pane(OwnedFd),
    Log(OutputLogWriter),
    /// A pane that no longer exists.
    Closed,
}

/// Whether the output has ended at the start of a line or in the middle of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    Start,
    Middle,
}

/// The pseudo-terminal, its output, and the values to find in the output.
#[derive(Debug)]
pub(crate) struct OutputPty {
    master: OwnedFd,
    slave: OwnedFd,
    /// A second descriptor of the pseudo-terminal's slave. Through it the shim writes sentinels:
    /// texts that mark the end of a program's output. This descriptor is non-blocking, but the
    /// descriptors of the programs must block.
    sentinel_writer: OwnedFd,
    initial_termios: Termios,
    sink: OutputSink,
    /// Output that was read but not yet taken by the sink.
    pending: Vec<u8>,
    sentinel: Sentinel,
    tail: OutputTail,
    scanner: OutputScanner,
    /// The end of the captured output. `None` if no capture runs.
    captured: Option<Vec<u8>>,
    /// Whether the program's last output ended at the end of a line or within a line. `None` if the
    /// shim itself has written a line since, or if there was no output.
    program_line: Option<LinePosition>,
}

impl OutputPty {
    /// Creates a pseudo-terminal whose output goes to the shim's standard output.
    pub(crate) fn to_pane() -> io::Result<OutputPty> {
        let mut options = File::options();
        options.append(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
        let pane = match open_stdout(&options) {
            Ok(file) => file.into(),
            // Standard output is a socket and not a terminal. A terminal can be opened a second
            // time to get a non-blocking descriptor, but a socket cannot. The existing descriptor
            // stays blocking, because other processes may share it. So a write may block here.
            Err(_) => io::stdout().as_fd().try_clone_to_owned()?,
        };
        OutputPty::with_sink(OutputSink::Pane(pane))
    }

    /// Creates a pseudo-terminal whose output goes to the log at `path`.
    pub(crate) fn to_log(path: &Path) -> io::Result<OutputPty> {
        let log = OutputLogWriter::open(path).map_err(|error| io::Error::other(error.message))?;
        OutputPty::with_sink(OutputSink::Log(log))
    }

    fn with_sink(sink: OutputSink) -> io::Result<OutputPty> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        platform::unix_sockets_and_peers::set_close_on_exec(&master)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let (slave, sentinel_writer) = (open_slave(&master)?, open_slave(&master)?);
        set_nonblocking(&master)?;
        set_nonblocking(&sentinel_writer)?;
        let mut initial_termios = tcgetattr(&slave)?;
        // LF is not converted to CR LF here, because the pane converts LF itself, and a log must
        // contain no CR.
        initial_termios.output_modes -= OutputModes::OPOST;
        let terminal = OutputPty {
            master,
            slave,
            sentinel_writer,
            initial_termios,
            sink,
            pending: Vec::new(),
            sentinel: Sentinel::default(),
            tail: OutputTail::default(),
            scanner: OutputScanner::new(OutputFields::default()),
            captured: None,
            program_line: None,
        };
        terminal.resize();
        terminal.reset_modes();
        Ok(terminal)
    }

    /// Gives the pseudo-terminal the size of the pane.
    pub(crate) fn resize(&self) {
        let size = match &self.sink {
            OutputSink::Pane(pane) => tcgetwinsize(pane).unwrap_or(HEADLESS_SIZE),
            OutputSink::Log(_) | OutputSink::Closed => HEADLESS_SIZE,
        };
        // This sends no SIGWINCH, because the pseudo-terminal has no foreground process group.
        tcsetwinsize(&self.slave, size).ok();
    }

    /// Two descriptors for a program: its standard output and its standard error.
    pub(crate) fn stdio_pair(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        Ok((self.slave.try_clone()?, self.slave.try_clone()?))
    }

    /// Prepares for the output of a new program. `fields` says which values to find in the output.
    pub(crate) fn start_program_output(&mut self, fields: OutputFields) {
        self.reset_modes();
        self.tail.take_text();
        self.scanner = OutputScanner::new(fields);
    }

    /// Starts a capture of the output.
    pub(crate) fn start_capture(&mut self) {
        self.captured = Some(Vec::new());
    }

    /// Ends the capture. Returns the captured output; only its last part is kept.
    pub(crate) fn take_captured(&mut self) -> Vec<u8> {
        self.captured.take().unwrap_or_default()
    }

    /// Restores the terminal modes that a program may have changed.
    fn reset_modes(&self) {
        tcsetattr(&self.slave, OptionalActions::Now, &self.initial_termios).ok();
    }

    /// The session id that was found in the output. The id is returned only once.
    pub(crate) fn take_session_id(&mut self) -> Option<String> {
        self.scanner.take_session_id()
    }

    /// The usage that the output has reported so far.
    pub(crate) fn usage(&self) -> Option<UsageReading> {
        self.scanner.usage()
    }

    /// The descriptor and the event to wait for before [`OutputPty::copy_available`] is called
    /// again.
    pub(crate) fn watched_descriptor(&self) -> (BorrowedFd<'_>, PollFlags) {
        match &self.sink {
            OutputSink::Pane(pane) if !self.pending.is_empty() => (pane.as_fd(), PollFlags::POLLOUT),
            _ => (self.master.as_fd(), PollFlags::POLLIN),
        }
    }

    /// Copies the output that is available, as far as the sink takes it.
    pub(crate) fn copy_available(&mut self) {
        for _ in 0..MAX_READS {
            self.flush_pending();
            if !self.pending.is_empty() || !self.read_block() {
                return;
            }
        }
        self.flush_pending();
    }

    /// Prints a line of the shim itself. It starts on a new line and has the default colours.
    pub(crate) fn print_line(&mut self, text: &str) {
        let position = self.program_line.take();
        let newline = if position == Some(LinePosition::Middle) { "\n" } else { "" };
        let reset =
            if position.is_some() && matches!(self.sink, OutputSink::Pane(_)) { "\x1b[0m" } else { "" };
        self.pending.extend_from_slice(format!("{reset}{newline}{text}\n").as_bytes());
        self.flush_pending();
    }

    /// Copies the rest of the output of a program that has exited. Returns the last lines of that
    /// output.
    ///
    /// Even if the master of the pseudo-terminal has nothing to read, output may still be on its
    /// way. A worker thread of the kernel passes output from the slave to the master. So the shim
    /// writes a sentinel, a unique text, to the slave. When the sentinel arrives at
    /// the master, all earlier output has arrived too.
    pub(crate) fn drain_and_take_tail(&mut self) -> String {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        self.sentinel.issue();
        while self.sentinel.is_awaited()
            && Instant::now() < deadline
            && self.pending.len() < MAX_PENDING_BYTES
        {
            if !self.sentinel.unwritten().is_empty()
                && let Ok(written) = nix::unistd::write(&self.sentinel_writer, self.sentinel.unwritten())
            {
                self.sentinel.note_written(written);
            }
            self.flush_pending();
            if !self.read_block() && self.sentinel.is_awaited() {
                wait_readable(&self.master, deadline);
            }
        }
        self.sentinel.discard_unwritten();
        self.flush_pending();
        self.scanner.end_line();
        self.tail.take_text()
    }

    /// Reads a block of output. Returns false if no output is available.
    fn read_block(&mut self) -> bool {
        let mut buffer = [0; READ_BYTES];
        let Ok(count @ 1..) = nix::unistd::read(&self.master, &mut buffer) else { return false };
        let output = self.sentinel.strip(&buffer[..count]);
        self.tail.push(&output);
        if let Some(captured) = &mut self.captured {
            captured.extend_from_slice(&output);
            let excess =
                if captured.len() > 2 * MAX_CAPTURED_BYTES { captured.len() - MAX_CAPTURED_BYTES } else { 0 };
            captured.drain(..excess);
        }
        self.scanner.push(&output);
        self.pending.extend_from_slice(&output);
        if let Some(last_byte) = output.last() {
            self.program_line =
                Some(if *last_byte == b'\n' { LinePosition::Start } else { LinePosition::Middle });
        }
        true
    }

    /// Writes as much of the pending output as the sink takes.
    fn flush_pending(&mut self) {
        while !self.pending.is_empty() {
            let taken_bytes = match &self.sink {
                OutputSink::Log(log) => {
                    log.append(&self.pending);
                    self.pending.len()
                }
                OutputSink::Closed => self.pending.len(),
                OutputSink::Pane(pane) => match nix::unistd::write(pane, &self.pending) {
                    Ok(count) => count,
                    Err(Errno::EAGAIN) => return,
                    Err(Errno::EINTR) => continue,
                    Err(_) => {
                        self.sink = OutputSink::Closed;
                        continue;
                    }
                },
            };
            self.pending.drain(..taken_bytes);
        }
        // Memory that was used for a long output is freed.
        self.pending.shrink_to(READ_BYTES);
    }
}

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

fn wait_readable(fd: &OwnedFd, deadline: Instant) {
    poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], poll_timeout::from_deadline(deadline)).ok();
}

/// Opens the terminal on standard output again, so that its flags are not shared with other
/// processes.
fn open_stdout(options: &OpenOptions) -> io::Result<File> {
    let path = ttyname(io::stdout(), Vec::new())?;
    options.open(OsStr::from_bytes(path.as_bytes()))
}

/// Opens the slave of a pseudo-terminal.
fn open_slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    let path = ptsname(master, Vec::new())?;
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
    Ok(options.open(OsStr::from_bytes(path.as_bytes()))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A terminal whose output goes to a log.
    fn log_terminal() -> (tempfile::TempDir, OutputPty) {
        let dir = tempfile::tempdir().unwrap();
        let terminal = OutputPty::to_log(&dir.path().join("logs/ann.log")).unwrap();
        (dir, terminal)
    }

    fn run_script(terminal: &OutputPty, script: &str) {
        let (out, err) = terminal.stdio_pair().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(out).stderr(err);
        shell.status().unwrap();
    }

    #[test]
    fn complete_output_is_available_when_the_program_has_ended() {
        let (dir, mut terminal) = log_terminal();
        for round in 0..50 {
            terminal.start_program_output(OutputFields::default());
            run_script(&terminal, &format!("echo out {round}; echo err {round} >&2; printf end"));
            assert_eq!(terminal.drain_and_take_tail(), format!("out {round}\nerr {round}\nend"));
            terminal.print_line("── over");
        }
        let text = std::fs::read_to_string(dir.path().join("logs/ann.log")).unwrap();
        assert!(text.starts_with("out 0\nerr 0\nend\n── over\nout 1\n"), "{text}");
        assert!(
            !text.contains(['\0', '\r', '\x1b']),
            "the log has no sentinel, no CR and no color of the shim"
        );
    }

    #[test]
    fn program_sees_a_terminal_whose_settings_are_reset_for_the_next_program() {
        let (_dir, mut terminal) = log_terminal();
        terminal.start_program_output(OutputFields::default());
        run_script(&terminal, "test -t 1 && test -t 2 && echo yes; stty opost onlcr <&1; stty size <&1");
        assert_eq!(terminal.drain_and_take_tail(), "yes\n50 120");
        terminal.start_program_output(OutputFields::default());
        run_script(&terminal, "stty -a <&2 | grep -o -- -opost");
        assert_eq!(terminal.drain_and_take_tail(), "-opost");
    }

    #[test]
    fn turn_does_not_wait_for_the_lost_sentinel_of_an_earlier_turn() {
        let (_dir, mut terminal) = log_terminal();
        // The terminal's output is stopped, so that it takes no sentinel and returns none.
        rustix::termios::tcflow(&terminal.slave, rustix::termios::Action::OOff).unwrap();
        terminal.start_program_output(OutputFields::default());
        assert_eq!(terminal.drain_and_take_tail(), "");
        rustix::termios::tcflow(&terminal.slave, rustix::termios::Action::OOn).unwrap();
        terminal.start_program_output(OutputFields::default());
        run_script(&terminal, "echo out");
        assert_eq!(terminal.drain_and_take_tail(), "out");
        assert!(!terminal.sentinel.is_awaited(), "the turn's own sentinel was read, and no other is awaited");
    }

    #[test]
    fn session_id_is_found_in_the_output() {
        let (_dir, mut terminal) = log_terminal();
        terminal.start_program_output(OutputFields {
            session_key: Some("thread_id".to_owned()),
            usage_paths: None,
        });
        run_script(
            &terminal,
            "echo hello; echo '{\"a\":{\"thread_id\":\"x-1\"}}'; echo '{\"thread_id\":\"x-2\"}'",
        );
        terminal.drain_and_take_tail();
        assert_eq!(terminal.take_session_id().as_deref(), Some("x-1"));
        terminal.start_program_output(OutputFields::default());
        run_script(&terminal, "echo '{\"thread_id\":\"x-3\"}'");
        terminal.drain_and_take_tail();
        assert_eq!(terminal.take_session_id(), None);
    }

    #[test]
    fn pane_that_reads_nothing_blocks_only_the_program() {
        let (shim_end, pane_end) = std::os::unix::net::UnixStream::pair().unwrap();
        shim_end.set_nonblocking(true).unwrap();
        let mut terminal = OutputPty::with_sink(OutputSink::Pane(shim_end.into())).unwrap();
        let (out, err) = terminal.stdio_pair().unwrap();
        let mut yes = Command::new("yes").stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap();
        while terminal.watched_descriptor().1 == PollFlags::POLLIN {
            wait_readable(&terminal.master, Instant::now() + DRAIN_TIMEOUT);
            terminal.copy_available();
        }
        assert!(terminal.pending.len() < MAX_PENDING_BYTES, "output is not read while too much is pending");
        yes.kill().unwrap();
        yes.wait().unwrap();
        drop(pane_end);
        // `pane_end` may still be open for a moment: a process that another test forks has a copy
        // of it until the `exec`. So the test waits.
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while !matches!(terminal.sink, OutputSink::Closed) && Instant::now() < deadline {
            terminal.copy_available();
        }
        assert!(matches!(terminal.sink, OutputSink::Closed) && terminal.pending.is_empty());
    }
}
