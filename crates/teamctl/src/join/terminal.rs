//! The pseudo-terminal that programs write to, and where their output goes from there: the pane, or a log.
//!
//! One for the whole life. What a turn leaves in the background goes on writing to it, and is copied between the
//! turns too. Nothing here waits for a reader: what the pane does not take yet is kept, and no more is read until it
//! does, so that the writer waits, as it would at a terminal of its own.

mod mark;

use crate::record::BoundedLog;
use crate::teammate::{Last, Tells, Told};
use mark::Mark;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::usage::UsageReading;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Read at once.
const BLOCK: usize = 16 << 10;
/// Reads at a stretch; then others have their turn.
const STRETCH: usize = 16;
/// How long the end of an output is waited for. Only a program in the background that never stops writing, or a pane
/// that nobody reads, can use it up.
const DRAIN: Duration = Duration::from_secs(1);
/// The most that is kept for a pane that takes nothing, bytes.
const KEPT: usize = 1 << 20;
/// So much of an output is kept for whoever listens, bytes; lines of JSON take their share of it.
const HEARD: usize = 256 << 10;
/// Where there is no pane to be as wide as.
const SIZE: Winsize = Winsize { ws_row: 50, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// Where the output goes.
#[derive(Debug)]
enum Sink {
    /// Our pane, by a description of our own that does not block.
    Pane(OwnedFd),
    Log(BoundedLog),
    /// A pane that is no more.
    Gone,
}

/// A place in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Beginning,
    Middle,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
    /// Another description of the slave's, for marks alone: it does not block, and the programs' must.
    marks: OwnedFd,
    plain: Termios,
    sink: Sink,
    /// Read, and not yet taken by the sink.
    kept: Vec<u8>,
    mark: Mark,
    last: Last,
    told: Told,
    /// What a program printed, where somebody listens; the end of it.
    heard: Option<Vec<u8>>,
    /// Where a program's output stands, since our own last line.
    theirs: Option<At>,
}

impl Terminal {
    /// One whose output goes to our own standard output.
    pub(super) fn of_the_pane() -> io::Result<Terminal> {
        let mut own = File::options();
        own.append(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
        let pane = match own.open("/proc/self/fd/1") {
            Ok(file) => file.into(),
            // A socket can't be opened again; poll says whether it takes something.
            Err(_) => io::stdout().as_fd().try_clone_to_owned()?,
        };
        Terminal::with(Sink::Pane(pane))
    }

    /// One whose output goes to the log at `path`.
    pub(super) fn of_the_log(path: &Path) -> io::Result<Terminal> {
        let log = BoundedLog::at(path).map_err(|fault| io::Error::other(fault.message))?;
        Terminal::with(Sink::Log(log))
    }

    fn with(sink: Sink) -> io::Result<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let (slave, marks) = (ioctl_tiocgptpeer(&master, flags)?, ioctl_tiocgptpeer(&master, flags)?);
        unblocked(&master)?;
        unblocked(&marks)?;
        let mut plain = tcgetattr(&slave)?;
        // The pane makes CR LF of LF itself, and a log wants none.
        plain.output_modes -= OutputModes::OPOST;
        let terminal = Terminal {
            master,
            slave,
            marks,
            plain,
            sink,
            kept: Vec::new(),
            mark: Mark::default(),
            last: Last::default(),
            told: Told::new(Tells::default()),
            heard: None,
            theirs: None,
        };
        terminal.resize();
        terminal.reset();
        Ok(terminal)
    }

    /// As wide and high as the pane.
    pub(super) fn resize(&self) {
        let size = match &self.sink {
            Sink::Pane(pane) => tcgetwinsize(pane).unwrap_or(SIZE),
            Sink::Log(_) | Sink::Gone => SIZE,
        };
        // The foreground of this terminal is nobody: the programs look for themselves.
        tcsetwinsize(&self.slave, size).ok();
    }

    /// What a program writes to, twice: output and errors.
    pub(super) fn ends(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        Ok((self.slave.try_clone()?, self.slave.try_clone()?))
    }

    /// From here on it is another program's output, which may tell something.
    pub(super) fn begin(&mut self, tells: Tells) {
        self.reset();
        self.last.take();
        self.told = Told::new(tells);
    }

    /// What is printed from now on is kept, until it is asked for.
    pub(super) fn listen(&mut self) {
        self.heard = Some(Vec::new());
    }

    /// What was printed since, the end of it where that is long.
    pub(super) fn heard(&mut self) -> Vec<u8> {
        self.heard.take().unwrap_or_default()
    }

    /// Undoes what a program has done to the terminal's modes.
    fn reset(&self) {
        tcsetattr(&self.slave, OptionalActions::Now, &self.plain).ok();
    }

    /// The session that the output told, once.
    pub(super) fn session(&mut self) -> Option<String> {
        self.told.session()
    }

    /// What the program has used up, as far as its output told.
    pub(super) fn used(&self) -> Option<UsageReading> {
        self.told.used()
    }

    /// What to wait for until [`Terminal::copy`] can do something.
    pub(super) fn beside(&self) -> (BorrowedFd<'_>, PollFlags) {
        match &self.sink {
            Sink::Pane(pane) if !self.kept.is_empty() => (pane.as_fd(), PollFlags::POLLOUT),
            _ => (self.master.as_fd(), PollFlags::POLLIN),
        }
    }

    /// Copies what is there, as far as the sink takes it.
    pub(super) fn copy(&mut self) {
        for _ in 0..STRETCH {
            self.hand_on();
            if !self.kept.is_empty() || !self.read() {
                return;
            }
        }
        self.hand_on();
    }

    /// A line of our own, at the beginning of a line and in plain colours.
    pub(super) fn say(&mut self, text: &str) {
        let theirs = self.theirs.take();
        let newline = if theirs == Some(At::Middle) { "\n" } else { "" };
        let plain = if theirs.is_some() && matches!(self.sink, Sink::Pane(_)) { "\x1b[0m" } else { "" };
        self.kept.extend_from_slice(format!("{plain}{newline}{text}\n").as_bytes());
        self.hand_on();
    }

    /// Copies what the program wrote that has ended, all of it, and gives its last lines.
    ///
    /// What was written to the slave is not at once to be read from the master: the kernel hands it over by a worker of
    /// its own, so an empty master proves nothing. A mark written now comes out behind all that.
    pub(super) fn drain(&mut self) -> String {
        let until = Instant::now() + DRAIN;
        self.mark.set();
        while self.mark.is_due() && Instant::now() < until && self.kept.len() < KEPT {
            if !self.mark.unwritten().is_empty()
                && let Ok(written) = nix::unistd::write(&self.marks, self.mark.unwritten())
            {
                self.mark.written(written);
            }
            self.hand_on();
            if !self.read() && self.mark.is_due() {
                readable(&self.master, until);
            }
        }
        self.mark.forget_unwritten();
        self.hand_on();
        self.told.end();
        self.last.take()
    }

    /// False when there is nothing now.
    fn read(&mut self) -> bool {
        let mut bytes = [0; BLOCK];
        let Ok(read @ 1..) = nix::unistd::read(&self.master, &mut bytes) else { return false };
        let output = self.mark.without(&bytes[..read]);
        self.last.push(&output);
        if let Some(heard) = &mut self.heard {
            heard.extend_from_slice(&output);
            let over = if heard.len() > 2 * HEARD { heard.len() - HEARD } else { 0 };
            heard.drain(..over);
        }
        self.told.push(&output);
        self.kept.extend_from_slice(&output);
        if let Some(last) = output.last() {
            self.theirs = Some(if *last == b'\n' { At::Beginning } else { At::Middle });
        }
        true
    }

    /// To the sink, as much as it takes now.
    fn hand_on(&mut self) {
        while !self.kept.is_empty() {
            let taken = match &self.sink {
                Sink::Log(log) => {
                    log.add(&self.kept);
                    self.kept.len()
                }
                Sink::Gone => self.kept.len(),
                Sink::Pane(pane) => match nix::unistd::write(pane, &self.kept) {
                    Ok(written) => written,
                    Err(Errno::EAGAIN) => return,
                    Err(Errno::EINTR) => continue,
                    Err(_) => {
                        self.sink = Sink::Gone;
                        continue;
                    }
                },
            };
            self.kept.drain(..taken);
        }
        // What a long stretch has made large is not kept for the whole life.
        self.kept.shrink_to(BLOCK);
    }
}

fn unblocked(fd: &OwnedFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

fn readable(fd: &OwnedFd, until: Instant) {
    let left = until.saturating_duration_since(Instant::now()).as_millis() + 1;
    let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], timeout).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn log() -> (tempfile::TempDir, Terminal) {
        let dir = tempfile::tempdir().unwrap();
        let terminal = Terminal::of_the_log(&dir.path().join("logs/ann.log")).unwrap();
        (dir, terminal)
    }

    fn run(terminal: &Terminal, script: &str) {
        let (out, err) = terminal.ends().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(out).stderr(err);
        shell.status().unwrap();
    }

    #[test]
    fn all_that_a_program_wrote_is_there_when_it_has_ended() {
        let (dir, mut terminal) = log();
        for round in 0..50 {
            terminal.begin(Tells::default());
            run(&terminal, &format!("echo out {round}; echo err {round} >&2; printf end"));
            assert_eq!(terminal.drain(), format!("out {round}\nerr {round}\nend"));
            terminal.say("── over");
        }
        let text = std::fs::read_to_string(dir.path().join("logs/ann.log")).unwrap();
        assert!(text.starts_with("out 0\nerr 0\nend\n── over\nout 1\n"), "{text}");
        assert!(!text.contains(['\0', '\r', '\x1b']), "no mark, no CR, no colour of ours");
    }

    #[test]
    fn a_program_sees_a_terminal_and_can_not_spoil_it_for_the_next() {
        let (_dir, mut terminal) = log();
        terminal.begin(Tells::default());
        run(&terminal, "test -t 1 && test -t 2 && echo yes; stty opost onlcr <&1; stty size <&1");
        assert_eq!(terminal.drain(), "yes\n50 120");
        terminal.begin(Tells::default());
        run(&terminal, "stty -a <&2 | grep -o -- -opost");
        assert_eq!(terminal.drain(), "-opost");
    }

    #[test]
    fn what_one_turn_could_not_wait_for_makes_no_later_one_wait() {
        let (_dir, mut terminal) = log();
        // Output is stopped: the terminal takes no mark, and gives none out.
        rustix::termios::tcflow(&terminal.slave, rustix::termios::Action::OOff).unwrap();
        terminal.begin(Tells::default());
        assert_eq!(terminal.drain(), "");
        rustix::termios::tcflow(&terminal.slave, rustix::termios::Action::OOn).unwrap();
        terminal.begin(Tells::default());
        run(&terminal, "echo out");
        assert_eq!(terminal.drain(), "out");
        assert!(!terminal.mark.is_due(), "its own mark has come out, and no other is waited for");
    }

    #[test]
    fn a_session_is_found_in_the_output() {
        let (_dir, mut terminal) = log();
        terminal.begin(Tells { session: Some("thread_id".to_owned()), used: None });
        run(&terminal, "echo hello; echo '{\"a\":{\"thread_id\":\"x-1\"}}'; echo '{\"thread_id\":\"x-2\"}'");
        terminal.drain();
        assert_eq!(terminal.session().as_deref(), Some("x-1"));
        terminal.begin(Tells::default());
        run(&terminal, "echo '{\"thread_id\":\"x-3\"}'");
        terminal.drain();
        assert_eq!(terminal.session(), None);
    }

    #[test]
    fn a_pane_that_takes_nothing_stops_nobody_but_the_writer() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut terminal = Terminal::with(Sink::Pane(near.into())).unwrap();
        let (out, err) = terminal.ends().unwrap();
        let mut yes = Command::new("yes").stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap();
        while terminal.beside().1 == PollFlags::POLLIN {
            readable(&terminal.master, Instant::now() + DRAIN);
            terminal.copy();
        }
        assert!(terminal.kept.len() < KEPT, "it is not read any further");
        yes.kill().unwrap();
        yes.wait().unwrap();
        drop(far);
        terminal.copy();
        assert!(matches!(terminal.sink, Sink::Gone) && terminal.kept.is_empty());
    }
}
