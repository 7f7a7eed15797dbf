//! The shim's end of the socket between the shim and a driver (`teamd-acp`), which drives a program
//! that speaks the Agent Client Protocol. Each message is JSON on one line
//! (`protocol::acp_driver_protocol`). No function of this module blocks.

use nix::poll::PollFlags;
use protocol::acp_driver_protocol::{FromDriver, MAX_DRIVER_LINE_BYTES, ToDriver};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The number of bytes that one read takes at most.
const READ_BYTES: usize = 16 << 10;

/// The shim's end of the socket.
#[derive(Debug)]
pub(crate) struct DriverStream {
    stream: UnixStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    is_closed: bool,
}

impl DriverStream {
    /// Creates a pair of sockets: the shim's end, and the end that becomes the driver's standard
    /// input.
    pub(crate) fn pair() -> std::io::Result<(DriverStream, OwnedFd)> {
        let (shim_end, driver_end) = UnixStream::pair()?;
        shim_end.set_nonblocking(true)?;
        Ok((
            DriverStream { stream: shim_end, outgoing: Vec::new(), incoming: Vec::new(), is_closed: false },
            driver_end.into(),
        ))
    }

    /// The descriptor to watch and the events to watch for. `None` if no more messages can arrive.
    pub(crate) fn watched_descriptor(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let write = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
        (!self.is_closed).then(|| (self.stream.as_fd(), PollFlags::POLLIN | write))
    }

    pub(crate) fn send(&mut self, message: &ToDriver) {
        // A message contains only texts and numbers, so it can always be written as JSON.
        self.outgoing.extend(serde_json::to_vec(message).unwrap_or_default());
        self.outgoing.push(b'\n');
        self.flush();
    }

    /// Writes as many bytes as the socket takes without blocking. Write errors are ignored, because
    /// the shim learns from SIGCHLD that the driver has exited.
    pub(crate) fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            match (&self.stream).write(&self.outgoing) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.outgoing.clear(),
            }
        }
        self.outgoing.shrink_to(READ_BYTES);
    }

    /// Returns the messages that have arrived. After an invalid message the shim reads nothing more
    /// from the socket, because the program at the other end is not a driver of teamd.
    pub(crate) fn read_messages(&mut self) -> Vec<FromDriver> {
        let mut buffer = [0; READ_BYTES];
        while !self.is_closed {
            match (&self.stream).read(&mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => self.incoming.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
        }
        let complete_bytes =
            self.incoming.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
        let lines: Vec<u8> = self.incoming.drain(..complete_bytes).collect();
        self.incoming.shrink_to(READ_BYTES);
        let messages = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let messages: Vec<Option<FromDriver>> =
            messages.map(|line| serde_json::from_slice(line).ok()).collect();
        self.is_closed |= self.incoming.len() > MAX_DRIVER_LINE_BYTES || messages.contains(&None);
        messages.into_iter().map_while(|message| message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::acp_driver_protocol::TurnEndReason;

    #[test]
    fn message_is_returned_when_its_line_is_complete() {
        let (mut stream, driver_end) = DriverStream::pair().unwrap();
        let mut driver_end = UnixStream::from(driver_end);
        driver_end
            .write_all(b"{\"turn_ended\":{\"end_reason\":\"completed\"}}\n{\"turn_ended\":{\"end_reason\"")
            .unwrap();
        assert_eq!(
            stream.read_messages(),
            [FromDriver::TurnEnded {
                end_reason: TurnEndReason::Completed,
                reply: String::new(),
                usage: None
            }]
        );
        assert_eq!(stream.read_messages(), []);
        driver_end.write_all(b":\"cancelled\"}}\n").unwrap();
        assert_eq!(
            stream.read_messages(),
            [FromDriver::TurnEnded {
                end_reason: TurnEndReason::Cancelled,
                reply: String::new(),
                usage: None
            }]
        );
        driver_end.write_all(b"{\"turn_ended\":{\"end_reason\":\"completed\"}}\nhello\n").unwrap();
        assert_eq!(
            stream.read_messages(),
            [FromDriver::TurnEnded {
                end_reason: TurnEndReason::Completed,
                reply: String::new(),
                usage: None
            }]
        );
        assert!(stream.watched_descriptor().is_none(), "nothing is read after an invalid message");
    }

    #[test]
    fn long_message_is_queued_without_blocking_until_it_is_read() {
        let (mut stream, driver_end) = DriverStream::pair().unwrap();
        let text = "x".repeat(4 << 20);
        stream.send(&ToDriver::Prompt { text: text.clone(), prefix: String::new() });
        assert!(
            !stream.outgoing.is_empty()
                && stream.watched_descriptor().unwrap().1.contains(PollFlags::POLLOUT)
        );
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            std::io::BufRead::read_line(
                &mut std::io::BufReader::new(UnixStream::from(driver_end)),
                &mut line,
            )
            .unwrap();
            line
        });
        while !stream.outgoing.is_empty() {
            stream.flush();
            std::thread::yield_now();
        }
        let message: ToDriver = serde_json::from_str(&reader.join().unwrap()).unwrap();
        assert_eq!(message, ToDriver::Prompt { text, prefix: String::new() });
    }
}
